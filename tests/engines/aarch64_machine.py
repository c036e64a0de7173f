"""Runs AArch64 code on the host: a processor (unicorn), code caches linked as the engine does, and
what a program can see of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import unicorn
from unicorn import arm64_const as names

from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import BACKEND, encode
from livepro.engines.translate.translator.aarch64.emitter import Emitter
from livepro.engines.translate.translator.aarch64.machine import OWN_BASE
from livepro.engines.translate.translator.aarch64.source import Reader, Text
from livepro.engines.translate.translator.emitted import Check, Emitted
from livepro.engines.translate.translator.source import SourceBlock

PC = 0xAAAA_0000_1000
"""Where the program's code is."""
CACHE = 0xAAAA_2000_0000
AREA = 0x2000_0000_0000
DATA = 0x7000_0000
STACK = 0xFFFF_0000_0000
MEMORY = 0xAAAA_4000_0000
"""Memory for the program's loads and stores."""
SLOT = 3
FAR_SLOT = 5000
"""A slot whose counter is out of a plain load's reach."""

CHUNK = layout.RECORDS_END - 0x1000
"""Where the thread's records begin in its area."""

GENERAL = [getattr(names, f"UC_ARM64_REG_X{n}") for n in range(31)]
VECTORS = [getattr(names, f"UC_ARM64_REG_Q{n}") for n in range(32)]


@dataclass
class State:
    """What a program can see: registers, flags, memory; and where it is."""

    general: list[int] = field(default_factory=lambda: [0x0111_0000_0000_0101 * (n + 1) for n in range(31)])
    vectors: list[int] = field(default_factory=lambda: [0x1234_5678 * (n + 1) << 64 | n for n in range(32)])
    sp: int = STACK + 0x8000
    flags: int = 0x6000_0000
    memory: bytes = bytes(range(256)) * 16
    pc: int = PC


class Machine:
    """A processor with the program's code, its memory, and the translator's."""

    def __init__(self, code: bytes, state: State) -> None:
        self.uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM, names.UC_CPU_ARM64_MAX)
        for base, size in (
            ((PC & -0x1000) - 0x1000, 0x5000),
            (CACHE, 0x4000),
            (DATA, 0x9_0000),
            (STACK, 0x10000),
        ):
            self.uc.mem_map(base, size)
        self.uc.mem_map(AREA, layout.COUNTERS + 0x20000)
        self.uc.mem_map(AREA + CHUNK, 0x1000 + layout.RECORDS_MORE)
        self.uc.mem_map(MEMORY, 0x2000)
        self.uc.mem_write(PC, code)
        self.uc.mem_write(MEMORY, state.memory)
        self.uc.reg_write_batch([*zip(GENERAL, state.general, strict=True)])
        for register, value in zip(VECTORS, state.vectors, strict=True):
            self.uc.reg_write(register, value)
        self.uc.reg_write(names.UC_ARM64_REG_SP, state.sp)
        self.uc.reg_write(names.UC_ARM64_REG_NZCV, state.flags)

    def run(
        self, start: int, *ends: int, seen: dict[int, list[State]] | None = None, limit: int = 5000
    ) -> None:
        """Execute from `start` until one of `ends` is about to be.

        `seen` has addresses at which to note the state each time they are come to.
        """
        begun = False

        def stop(uc: unicorn.Uc, address: int, size: int, data: object) -> None:
            nonlocal begun
            if seen is not None and address in seen:
                seen[address].append(self.state())
            if begun and address in ends:
                uc.emu_stop()
            begun = True

        hook = self.uc.hook_add(unicorn.UC_HOOK_CODE, stop)
        try:
            self.uc.emu_start(start, 0, count=limit)
        finally:
            self.uc.hook_del(hook)
        assert self.uc.reg_read(names.UC_ARM64_REG_PC) in ends

    def lend(self, state: State) -> None:
        """Let the register that leads to the area lead there."""
        self.uc.mem_write(AREA + OWN_BASE, state.general[encode.BASE].to_bytes(8, "little"))
        self.uc.reg_write(GENERAL[encode.BASE], AREA)

    def state(self) -> State:
        """What the program sees now."""
        read = self.uc.reg_read
        general = [read(register) for register in GENERAL]
        if general[encode.BASE] == AREA:
            general[encode.BASE] = self.word(AREA + OWN_BASE)
        return State(
            general=general,
            vectors=[read(register) for register in VECTORS],
            sp=read(names.UC_ARM64_REG_SP),
            flags=read(names.UC_ARM64_REG_NZCV) & 0xF000_0000,
            memory=bytes(self.uc.mem_read(MEMORY, 4096)),
            pc=read(names.UC_ARM64_REG_PC),
        )

    def word(self, address: int) -> int:
        """A 64-bit word of memory."""
        return int.from_bytes(self.uc.mem_read(address, 8), "little")


@dataclass
class Run:
    """A run of a block at its own place: the state at its end, and before each instruction."""

    state: State
    before: list[State]


def native(code: bytes, state: State, *ends: int) -> Run:
    """Run the block that `code` begins with at its own place until it goes to one of `ends`."""
    machine = Machine(code, state)
    block = Reader().decode(Text(PC, code), PC)
    seen: dict[int, list[State]] = {PC + offset: [] for offset in block.offsets[:-1]}
    machine.run(PC, *ends, seen=seen)
    return Run(machine.state(), [states[0] for states in seen.values()])


@dataclass
class Copy:
    """A run of a block's copy: the program's state, also at those boundaries that are exact, the
    copy, and what the area holds."""

    state: State
    before: list[State | None]
    emitted: Emitted
    machine: Machine

    def count(self, slot: int) -> int:
        """A counter."""
        return self.machine.word(AREA + layout.COUNTERS + 8 * slot)

    def record(self) -> list[int]:
        """The words that have been recorded."""
        end = self.machine.word(AREA + layout.RECORD)
        return [self.machine.word(AREA + at) for at in range(CHUNK, end, 8)]


def emit(
    code: bytes,
    *,
    slot: int = SLOT,
    budgeted: bool = False,
    check: Check = Check.NEVER,
    at: int = CACHE,
    blocks: StreamBlocks | None = None,
) -> Emitted:
    """The copy of the block that `code` begins with, recorded as one of `blocks` if there are any."""
    block = Reader().decode(Text(PC, code), PC)
    emitter = Emitter(DATA, frozenset((222,)), budgeted)
    if blocks is not None:
        emitter.record(blocks, None)
    return emitter.emit(block, at, slot, lambda block: 0, check)


def copied(
    code: bytes,
    state: State,
    *ends: int,
    slot: int = SLOT,
    budgeted: bool = False,
    check: Check = Check.NEVER,
    blocks: StreamBlocks | None = None,
    chunk: int = CHUNK,
) -> Copy:
    """Run the copy of the block that `code` begins with until the program would be at one of
    `ends`, which the lookup table knows and branches lead to. With `blocks` it is recorded, at `chunk` in the
    area."""
    emitted = emit(code, slot=slot, budgeted=budgeted, check=check, blocks=blocks)
    machine = Machine(code, state)
    text = bytearray(emitted.code)
    stops: dict[int, int] = {}

    def stub(target: int) -> int:
        """Where a branch to the program's `target` leads: a place to stop at."""
        nonlocal text
        at = len(text)
        text += encode.pack([encode.NOP])
        stops[CACHE + at] = target
        return at

    if emitted.falls is not None:
        stub(emitted.falls)
    for offset, target in emitted.exits:
        assert BACKEND.link(text, offset, stub(target) - offset)
    landings = {}
    for target in ends:
        code_, otherwise, _ = Emitter.landing(target)
        begin = len(text)
        text += code_
        stops[CACHE + len(text)] = target
        text += encode.pack([encode.NOP])
        landings[target] = (begin, begin + otherwise)
    missed = stub(-1)
    for target, (begin, otherwise) in landings.items():
        assert BACKEND.link(text, otherwise, missed - otherwise)
        entry = DATA + layout.LOOKUP + 8 * (target >> 2 & layout.LOOKUP_ENTRIES - 1)
        machine.uc.mem_write(entry, (CACHE + begin).to_bytes(8, "little"))
    machine.uc.mem_write(CACHE, bytes(text))
    machine.uc.mem_write(AREA + layout.BUDGET, (1000).to_bytes(8, "little"))
    machine.uc.mem_write(AREA + layout.RECORD, chunk.to_bytes(8, "little"))
    machine.lend(state)
    block = Reader().decode(Text(PC, code), PC)
    marks = emitted.marks(block)[:-1]
    seen: dict[int, list[State]] = {CACHE + mark: [] for mark in marks}
    machine.run(CACHE, *stops, seen=seen)
    before: list[State | None] = []
    for index, mark in enumerate(marks):
        if emitted.dirty[0] <= mark < emitted.dirty[1]:
            before.append(None)
            continue
        there = seen[CACHE + mark][0]
        there.pc = PC + 4 * index
        before.append(there)
    assert machine.uc.reg_read(GENERAL[encode.BASE]) == AREA
    after = machine.state()
    after.pc = stops[after.pc]
    return Copy(after, before, emitted, machine)


def chained(
    emitter: Emitter, blocks: Sequence[SourceBlock]
) -> tuple[bytes, dict[int, int | None], list[Emitted]]:
    """The copies of blocks that follow one another, the first of which may open an exclusive sequence, as
    code to stand at `CACHE`, counted in slots from 0 on; the addresses at which the program has left them,
    each with where it would be; and the copies."""
    text, exits, copies = bytearray(), [], []
    owed = None
    for slot, block in enumerate(blocks):
        emitted = emitter.emit(block, CACHE + len(text), slot, lambda block: 0, Check.NEVER, owed)
        exits += [(len(text) + offset, target) for offset, target in emitted.exits]
        text += emitted.code
        owed = emitted.within
        copies.append(emitted)
    stops: dict[int, int | None] = {CACHE + len(text): copies[-1].falls}
    text += encode.pack([encode.NOP])
    for field_, target in exits:
        stops[CACHE + len(text)] = target
        assert BACKEND.link(text, field_, len(text) - field_)
        text += encode.pack([encode.NOP])
    return bytes(text), stops, copies
