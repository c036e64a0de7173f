"""Emits what records a block's execution and the addresses that it accesses.

A thread writes records (`livepro.engines.stream`) behind one another into its area; a register that it is
lent (`lending`) says where the next begins. A block's record is begun, and room made for all of its words, at
the block's start: so a thread that leaves the block early has it as its last record. What can be computed
there is: addresses whose registers nothing in the block has changed before, but by constants. The others are
computed right before their instructions. Flags are left alone, but where the block overwrites them all.

Where accesses cannot be told by a few instructions (gathers, XSAVE ...) the instruction stops, and the
tracer fills its words in as it steps it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from iced_x86 import Decoder, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RegisterExt

from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.addressing import (
    NUMBERS,
    RSP,
    Mask,
    Place,
    add_registers,
    compute,
    move_mask,
    places_of,
    read_fs,
    store_indirect,
)
from livepro.engines.translate.translator.x86_64.events.lending import BACK, KEEP, LENT, OWN
from livepro.engines.translate.translator.x86_64.events.slow_paths import give_back, save
from livepro.engines.translate.translator.x86_64.facts import ALL, Facts, Kind

CHECK_FULL = b"\x65\x0f\xb6\x0c\x25" + struct.pack("<i", layout.RECORD + 2) + b"\xe3\x03" + encode.STOP_IN_NOP
"""movzx ecx, byte gs:[RECORD + 2]: 0 when the next record would begin behind the chunk; jrcxz +3: to the stop
in the nop behind (see `encode.JUMP_INTO_NOP`)."""
IS_FULL = b"\x41\xf7\xc3\x00\x00\xff\x00\x74\x03" + encode.STOP_IN_NOP
"""test r11d, 0xff0000; jz +3: the same where flags need not be kept."""
AT_START = 0xFFFF & ~(1 << encode.RSP | 1 << LENT | 1 << 12)
"""A mask of the registers of which one is borrowed at a block's start."""
FARTHEST = 1 << 20
"""By how much a register may have moved, for an address to be told in terms of what it was."""

_WRITES = frozenset((OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))
_CALLS = frozenset((Mnemonic.SYSCALL, Mnemonic.INT))
_SEGMENT_BASE = _CALLS | {Mnemonic.WRFSBASE, Mnemonic.LFS}
_COPIED = frozenset((Kind.PLAIN, Kind.RELATIVE, Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL))
_INFO = InstructionInfoFactory()


class Effects(NamedTuple):
    """What an instruction does to general registers: a mask of those written, but for `moved`, to which
    (a number, or -1) `by` is added; and whether the base of fs may be another one behind it."""

    written: int
    moved: int
    by: int
    segment: bool


@lru_cache(1 << 16)
def effects_of(code: bytes) -> Effects:
    """The effects of the instruction `code`."""
    instruction = Decoder(64, code, ip=0).decode()
    written = 0
    for used in _INFO.info(instruction).used_registers():
        number = NUMBERS.get(RegisterExt.full_register(used.register))
        if number is not None and used.access in _WRITES:
            written |= 1 << number
    moved, by = -1, 0
    if instruction.is_stack_instruction and instruction.mnemonic in (
        Mnemonic.PUSH,
        Mnemonic.POP,
        Mnemonic.PUSHFQ,
    ):
        moved, by = RSP, instruction.stack_pointer_increment
        if instruction.mnemonic == Mnemonic.POP and instruction.op0_kind == OpKind.REGISTER:
            moved = -1 if instruction.op0_register == Register.RSP else moved
    elif instruction.mnemonic in (Mnemonic.ADD, Mnemonic.SUB) and instruction.op0_kind == OpKind.REGISTER:
        number = NUMBERS.get(instruction.op0_register, -1)
        if number >= 0 and instruction.op1_kind in (OpKind.IMMEDIATE8TO64, OpKind.IMMEDIATE32TO64):
            value = instruction.immediate(1)
            value -= (1 << 64) if value >> 63 else 0
            moved, by = number, value if instruction.mnemonic == Mnemonic.ADD else -value
    elif instruction.op_count == 1 and instruction.mnemonic in (Mnemonic.INC, Mnemonic.DEC):
        number = -1
        if instruction.op0_kind == OpKind.REGISTER:
            number = NUMBERS.get(instruction.op0_register, -1)
        if number >= 0:
            moved, by = number, 1 if instruction.mnemonic == Mnemonic.INC else -1
    if moved >= 0:
        written &= ~(1 << moved)
    segment = instruction.mnemonic in _SEGMENT_BASE or (
        instruction.op0_kind == OpKind.REGISTER and instruction.op0_register == Register.FS
    )
    if instruction.mnemonic in _CALLS:
        written |= 1  # rax: the result
    return Effects(written, moved, by, segment)


class Plan(NamedTuple):
    """What is recorded of a block: its number, the words of its record, places computed at its start,
    and before and behind each instruction (by index); `stepped` are instructions whose words the tracer
    fills in. `owning` are those that need the program's own value in the register that is lent, and whether
    they write it. `dead`: whether flags need not be kept at its start. `used` are the registers that it
    uses."""

    number: int
    words: int
    early: tuple[Place, ...]
    before: dict[int, list[Place | Mask]]
    behind: dict[int, list[Place]]
    stepped: frozenset[int]
    owning: dict[int, bool]
    dead: bool
    used: int


class Recording:
    """Plans and emits the records of blocks, which get their numbers from `blocks`."""

    first = True
    """Whether a block is counted at its start."""

    def __init__(self, blocks: StreamBlocks, *, every: bool = True) -> None:
        self.blocks = blocks
        self.every = every
        """Whether all blocks are recorded; if not, those with repeated instructions are."""
        self._taken = b"" if every else KEEP + BACK
        self._given = b"" if every else OWN

    @property
    def lends(self) -> bool:
        """Whether copies are lent a register all the time."""
        return self.every

    def wants(self, block: SourceBlock) -> bool:
        """See `Records`."""
        return self.every or any(block.facts[index].kind is Kind.REP for index in block.special)

    def knows(self, start: int, end: int) -> None:
        """See `Records`."""

    def plan(
        self, emitted: Emitted, block: SourceBlock, cell: int, live_out: Callable[[SourceBlock], int]
    ) -> Plan:
        """What is recorded of a block."""
        sizes = block.steps()
        flows = [facts.flow for facts in block.facts]
        known = self.blocks.block(block.pc, block.code, sizes, flows, block.target)
        early: list[Place] = []
        before: dict[int, list[Place | Mask]] = {}
        behind: dict[int, list[Place]] = {}
        stepped = set()
        owning: dict[int, bool] = {}
        moved = dict.fromkeys(range(16), 0)
        needed = 0  # registers that addresses told early need
        used = 0
        lost = 0  # registers of which it is not known by how much they have changed
        called = False  # a system call may have changed the base of fs
        word = 1
        for index, accesses in enumerate(known.accesses):
            facts: Facts = block.facts[index]
            encoding = block.code[block.offsets[index] : block.offsets[index + 1]]
            places = places_of(accesses, word, facts.displacement > 0)
            word += sum(access.words for access in accesses)
            if places is None:
                stepped.add(index)
            else:
                if facts.kind is Kind.NATIVE and accesses:
                    stepped.add(index)
                    places = ([], [])
                for place in places[0]:
                    shifted = None
                    kept = isinstance(place, Place) and not place.registers & (lost | 1 << LENT)
                    if isinstance(place, Place) and kept and not (called and place.fs):
                        shifted = _shifted(place, moved)
                    if shifted is None or not AT_START & ~(needed | shifted.registers):  # none to borrow
                        before.setdefault(index, []).append(place)
                    else:
                        early.append(shifted)
                        needed |= shifted.registers
                if places[1]:
                    behind[index] = places[1]
            effects = effects_of(encoding)
            used |= facts.registers_read | facts.registers_killed
            if self.lends and index not in stepped and mentions(facts) and facts.kind in _COPIED:
                owning[index] = bool(effects.written >> LENT & 1) or effects.moved == LENT
            lost |= effects.written
            called |= effects.segment
            if effects.moved >= 0:
                moved[effects.moved] += effects.by
                if not -FARTHEST < moved[effects.moved] < FARTHEST:
                    lost |= 1 << effects.moved
        dead = flags_are_dead(block)
        return Plan(known.number, word, tuple(early), before, behind, frozenset(stepped), owning, dead, used)

    @staticmethod
    def places(plan: Plan) -> set[int]:
        """The instructions that something is emitted for."""
        return {*plan.before, *plan.behind, *plan.stepped, *plan.owning}

    @staticmethod
    def owning(plan: Plan) -> Mapping[int, bool]:
        """The instructions that need the program's own value in the register that is lent."""
        return plan.owning

    # -- emission

    def begin(self, emitted: Emitted, plan: Plan, block: SourceBlock, cell: int) -> None:
        """Begin a block's record, and count the block in `cell`."""
        out = emitted.code
        out += self._taken
        value, spilled = -1, False
        if plan.early:
            needed = 0
            for place in plan.early:
                needed |= place.registers
            free = free_at_start(block)
            candidates = AT_START & ~needed
            frees = [n for n in range(16) if (candidates & free) >> n & 1]
            value, spilled = frees[0] if frees else borrowed(candidates, plan.used, block.pc), not frees
        if spilled:
            out += save(value)
        out += store_indirect_immediate(LENT, plan.number)
        emitted.fields.append((Field.RECORD, len(out) - 4))
        for place in plan.early:
            self._tell(emitted, place, value, place.word)
        if spilled:
            out += give_back(value)
        out += encode.lea_increment(LENT, 8 * plan.words)
        out += encode.store_area(LENT, layout.RECORD)
        emitted.recorded = len(out)
        offset = layout.COUNTERS + cell * 8
        if plan.dead:
            out += IS_FULL
            emitted.full = (len(out) - 1, len(out))
            out += encode.increment_area(offset)
            emitted.fields.append((Field.CELL, len(out) - 4))
            emitted.tallied = len(out)
        else:
            out += encode.store_area(encode.RCX, layout.SPILL[1])
            out += CHECK_FULL
            emitted.full = (len(out) - 1, len(out))
            out += encode.load_area(encode.RCX, offset)
            emitted.fields.append((Field.CELL, len(out) - 4))
            out += encode.lea_increment(encode.RCX, 1)
            out += encode.store_area(encode.RCX, offset)
            emitted.fields.append((Field.CELL, len(out) - 4))
            emitted.tallied = len(out)
            out += encode.load_area(encode.RCX, layout.SPILL[1])
        out += self._given
        emitted.counted = len(out)

    def before(self, emitted: Emitted, plan: Plan, block: SourceBlock, index: int) -> None:
        """Record what is known in front of instruction `index`, and not before; it then has the register
        that is lent if it needs it."""
        if index in plan.before:
            self._add(emitted, plan, plan.before[index], block.pc + block.offsets[index])
        if index in plan.owning:
            emitted.code += OWN

    def behind(self, emitted: Emitted, plan: Plan, index: int) -> None:
        """Take the register that is lent back behind instruction `index`, and record what is known then."""
        if index in plan.owning:
            emitted.code += KEEP + BACK if plan.owning[index] else BACK
        if index in plan.behind:
            self._add(emitted, plan, plan.behind[index], index)

    @staticmethod
    def end(emitted: Emitted, plan: Plan) -> None:
        """Nothing is left to do."""

    def _add(self, emitted: Emitted, plan: Plan, places: list[Place | Mask] | list[Place], turn: int) -> None:
        """Put words into the record that was begun at the block's start."""
        out = emitted.code
        needed = 0
        for place in places:
            if isinstance(place, Place):
                needed |= place.registers
        value = borrowed(AT_START & ~needed, plan.used, turn)
        out += self._taken
        out += save(value)
        for place in places:
            if isinstance(place, Mask):
                out += move_mask(value, place.register)
                out += store_indirect(value, LENT, 8 * (place.word - plan.words))
            else:
                self._tell(emitted, place, value, place.word - plan.words)
        out += give_back(value)
        out += self._given

    @staticmethod
    def _tell(emitted: Emitted, place: Place, value: int, word: int) -> None:
        """Compute a place in register `value` and write it, so many words from where the register that is
        lent says."""
        out = emitted.code
        owning = place.registers >> LENT & 1
        if owning:
            out += OWN
        compute(out, emitted.fields, place, value)
        if place.fs:
            out += read_fs(LENT) + add_registers(value, LENT)
        if owning or place.fs:
            out += BACK
        out += store_indirect(value, LENT, 8 * word)


def borrowed(candidates: int, used: int, turn: int) -> int:
    """A register to borrow of those of a mask: one that a block does not use if there is one, and another one
    at each turn, for who borrows the same one again waits until it has been given back."""
    candidates = candidates & ~used or candidates
    numbers = [n for n in range(16) if candidates >> n & 1]
    return numbers[(turn & layout.PAGE - 1) % len(numbers)]


def mentions(facts: Facts) -> bool:
    """Whether an instruction mentions the register that is lent."""
    return bool((facts.registers_read | facts.registers_killed) >> LENT & 1)


def flags_are_dead(block: SourceBlock) -> bool:
    """Whether a block overwrites all arithmetic flags before it reads any."""
    killed = 0
    for facts in block.facts:
        if facts.reads & ~killed:
            return False
        killed |= facts.kills
        if killed & ALL == ALL:
            return True
    return False


def free_at_start(block: SourceBlock) -> int:
    """Registers that a block overwrites before anything reads them or may fault."""
    read = free = 0
    for facts in block.facts:
        if facts.faults or facts.kind != Kind.PLAIN:
            break
        read |= facts.registers_read
        free |= facts.registers_killed & ~read
        read |= facts.registers_killed
    return free & 0xEFEF


def _shifted(place: Place, moved: dict[int, int]) -> Place | None:
    """A place in terms of the registers at the block's start; None where that cannot be said."""
    more = moved[place.base] if place.base >= 0 else 0
    if place.scaled >= 0:
        more += moved[place.scaled] * place.scale
    if more and (place.short or not -(1 << 31) <= place.displacement + more < 1 << 31):
        return None
    return place._replace(displacement=place.displacement + more)


# -- encodings (SDM vol. 2)


def store_indirect_immediate(pointer: int, value: int) -> bytes:
    """mov qword gs:[pointer], imm32 (pointer: not rsp, rbp, r12, r13)"""
    return bytes((0x65, 0x48 | pointer >> 3, 0xC7, pointer & 7)) + struct.pack("<i", value)
