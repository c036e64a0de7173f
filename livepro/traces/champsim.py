"""ChampSim's traces: 64 bytes for each instruction, little-endian, without a header.

The layout is that of `input_instr` in ChampSim's inc/trace_instruction.h: u64 ip; u8 is_branch,
branch_taken; u8 destination_registers[2], source_registers[4]; u64 destination_memory[2],
source_memory[4]; 0 stands for none. The type of a branch is not in it: ChampSim deduces it from
the registers (inc/instruction.h), of which it knows the stack pointer (6), the flags (25) and the
instruction pointer (26). So branches have exactly the registers from which their type follows
(`BRANCH_REGISTERS`); all other instructions have their own.

An instruction with more than 4 loads or 2 stores is followed by further records with the same ip: no
other instruction that is no branch can be followed by itself.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.engines.stream.blocks import FLOWS
from livepro.isa.operands import RegisterKind
from livepro.model import Flow

SP, FLAGS, IP = 6, 25, 26
OTHER = 255
"""The register that stands for what an indirect branch read if it read memory only."""

_NUMBERS = {"RDI": 3, "RSI": 4, "RBP": 5, "RSP": 6, "RBX": 7, "RDX": 8, "RCX": 9, "RAX": 10}
_NUMBERS.update({f"R{n}": n + 3 for n in range(8, 16)})
# As Pin numbers them, in whose numbers ChampSim's own tracer writes; what follows is livepro's.
_NUMBERS.update({name: 19 + n for n, name in enumerate(("CS", "SS", "DS", "ES", "FS", "GS"))})
_NUMBERS.update({"RIP": IP, "EIP": IP})
_NUMBERS.update({f"ZMM{n}": 64 + n for n in range(32)})
_NUMBERS.update({f"K{n}": 100 + n for n in range(8)})
_NUMBERS.update({f"ST{n}": 110 + n for n in range(8)})
_NUMBERS.update({f"MM{n}": 120 + n for n in range(8)})
_NUMBERS.update({f"R{n}": 128 + n for n in range(16, 32)})
# AArch64's.
_NUMBERS.update({"SP": SP})
_NUMBERS.update({f"Z{n}": 64 + n for n in range(32)})
_NUMBERS.update({f"X{n}": 160 + n for n in range(31)})
_NUMBERS.update({f"P{n}": 200 + n for n in range(16)})

_FLAG_NAMES = ("RFLAGS", "EFLAGS", "FLAGS", "NZCV")

CONDITIONAL, ALWAYS, NONE = 0, 1, 2
_KINDS = {
    Flow.BRANCH: CONDITIONAL,
    **dict.fromkeys((Flow.JUMP, Flow.CALL, Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL, Flow.RETURN), ALWAYS),
}
KIND_OF_FLOW = np.array([_KINDS.get(flow, NONE) for flow in FLOWS], np.uint8)


def number(register) -> int:
    """ChampSim's number of a register, 0 for one that it need not know."""
    if register.kind is RegisterKind.OTHER and (
        register.whole in _FLAG_NAMES or register.name in _FLAG_NAMES
    ):
        return FLAGS
    return _NUMBERS.get(register.whole, 0)


def registers(operands, flow):
    """The (destinations, sources) of an instruction: at most 2 and 4 numbers."""
    reads = list(dict.fromkeys(n for n in map(number, operands.reads) if n))
    writes = list(dict.fromkeys(n for n in map(number, operands.writes) if n))
    others = [n for n in reads if n not in (SP, FLAGS, IP)]
    if flow is Flow.JUMP:
        return [IP], []
    if flow is Flow.BRANCH:
        own = [n for n in writes if n not in (SP, FLAGS, IP)]  # loop: rcx
        return [IP, *own[:1]], [IP, *([FLAGS] if not others or FLAGS in reads else []), *others[:2]]
    if flow is Flow.CALL:
        return [IP, SP], [IP, SP]
    if flow is Flow.INDIRECT_JUMP:
        return [IP], others[:4] or [OTHER]
    if flow is Flow.INDIRECT_CALL:
        return [IP, SP], [IP, SP, *(others[:2] or [OTHER])]
    if flow is Flow.RETURN:
        return [IP, SP], [SP]
    return [n for n in writes if n != IP][:2], reads[:4]


class Templates:
    """Records of a process's instructions as far as they are static (uint64, 8 words each), by index."""

    def __init__(self, isa, blocks) -> None:
        self._isa = isa
        self._blocks = blocks
        self._known = {}
        self._done = self._instructions = 0
        self.words = np.zeros((1024, 8), np.uint64)

    def grow(self) -> None:
        """Take note of instructions met since. The engine's thread adds blocks meanwhile: each is whole once
        it is among `blocks`, which the tables' arrays are not."""
        blocks, at = self._blocks, self._instructions
        for number in range(self._done, len(blocks)):
            sizes, code, address = blocks.sizes[number], blocks.codes[number], blocks.addresses[number]
            if at + len(sizes) > len(self.words):
                grown = np.zeros((2 * (at + len(sizes)), 8), np.uint64)
                grown[:at] = self.words[:at]
                self.words = grown
            place = 0
            for size in sizes:
                self.words[at, 0] = address + place
                self.words[at, 1] = self._static(code[place : place + size])
                place += size
                at += 1
            self._done = number + 1
        self._instructions = at

    def _static(self, code):
        found = self._known.get(code)
        if found is None:
            flow = self._isa.describe(code).flow
            writes, reads = registers(self._isa.operands(code), flow)
            branch = int(KIND_OF_FLOW[FLOWS.index(flow)] != NONE)
            fields = bytes([branch, 0, *writes, *[0] * (2 - len(writes)), *reads, *[0] * (4 - len(reads))])
            found = self._known[code] = int.from_bytes(fields, "little")
        return found


@njit(nogil=True, cache=True)
def records(what, index, where, count, templates, nbytes, kinds, state, pending, out):
    """Put records into `out` (uint64, 8 words each); how many are whole. The last one is in `pending`:
    `state` has whether there is one, its loads and stores, the kind of its branch and what is behind it."""
    row = -1
    loads, stores, kind, behind = state[1], state[2], state[3], state[4]
    if state[0]:
        row = 0
        for k in range(8):
            out[0, k] = pending[k]
    for e in range(count):
        does = what[e]
        if does == 0 or does == 5:
            i = index[e]
            if kind == 1 or (kind == 0 and where[e] != behind):
                out[row, 1] |= np.uint64(256)
            row += 1
            for k in range(2):
                out[row, k] = templates[i, k]
            for k in range(2, 8):
                out[row, k] = 0
            loads, stores = 0, 0
            kind = kinds[i]
            behind = where[e] + nbytes[i]
        elif does == 4:
            if kind == 1 or (kind == 0 and where[e] != behind):
                out[row, 1] |= np.uint64(256)
            kind = 2
        else:
            if row < 0:
                continue
            if (does == 1 and loads == 4) or (does != 1 and stores == 2):
                i = index[e]
                row += 1
                for k in range(2):
                    out[row, k] = templates[i, k]
                for k in range(2, 8):
                    out[row, k] = 0
                loads, stores = 0, 0
            if does == 1:
                out[row, 4 + loads] = np.uint64(where[e])
                loads += 1
            else:
                out[row, 2 + stores] = np.uint64(where[e])
                stores += 1
    if row >= 0:
        for k in range(8):
            pending[k] = out[row, k]
        state[0] = 1
    state[1], state[2], state[3], state[4] = loads, stores, kind, behind
    return max(row, 0)


class ChampSimWriter:
    """Writes one thread's trace."""

    def __init__(self, output, templates) -> None:
        self._output = output
        self._templates = templates
        self._state = np.array([0, 0, 0, NONE, 0], np.int64)
        self._pending = np.zeros(8, np.uint64)
        self._rows = np.zeros((0, 8), np.uint64)

    def put(self, events, tables) -> None:
        """The next events."""
        if len(self._rows) < events.count + 2:
            self._rows = np.zeros((events.count + 2, 8), np.uint64)
        whole = records(
            *(events.what, events.index, events.where, events.count, self._templates.words),
            *(tables.bytes, KIND_OF_FLOW[tables.flow], self._state, self._pending, self._rows),
        )
        if whole:
            self._output.write(memoryview(self._rows[:whole]).cast("B"))

    def close(self) -> None:
        """Write the last record, a branch that leads nowhere any more as it does always or never."""
        if self._state[0]:
            if self._state[3] == ALWAYS:
                self._pending[1] |= np.uint64(256)
            self._output.write(self._pending.tobytes())
            self._state[0] = 0
