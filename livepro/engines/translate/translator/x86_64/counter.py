"""Where a block is counted, and how: where flags are dead if that can be, else in a borrowed register."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Ask, Cold, Countdown, Emitted, Field
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.facts import ALL, ARITHMETIC, Kind

SAVE_RAX = encode.store_area(encode.RAX, layout.SPILL[0])
SAVE_RCX = encode.store_area(encode.RCX, layout.SPILL[1])
LOAD_RAX = encode.load_area(encode.RAX, layout.SPILL[0])
LOAD_RCX = encode.load_area(encode.RCX, layout.SPILL[1])


_S_RCX = layout.SPILL[6]
SAVE_FLAGS = SAVE_RAX + b"\x9f\x0f\x90\xc0"  # lahf; seto al
GIVE_FLAGS_BACK = b"\x04\x7f\x9e" + LOAD_RAX  # add al, 0x7f; sahf
# A branch over to what is out of the way must be short, and not taken as a rule: it leads into the
# immediate of an instruction that does nothing as rcx is loaded behind it, where there is a longer one.
_FAR_IN_MOVE = len(encode.move_absolute(encode.RCX, 0)) - 8


class Allowed(NamedTuple):
    """Code that counts in rcx, or goes elsewhere if there is no allowance left: the offsets in it of the
    counter's two places, and of the 4 bytes that lead there."""

    code: bytes
    cells: tuple[int, int]
    enter: int


def allowed(cell: int) -> Allowed:
    """That code, for the counter at `cell` in the area."""
    load = encode.load_area(encode.RCX, cell)
    add = encode.lea_increment(encode.RCX, 1) + encode.store_area(encode.RCX, cell)
    code = bytearray(load + encode.jump_if_rcx_zero(len(add) + _FAR_IN_MOVE) + add)
    cells = len(load) - 4, len(code) - 4
    far, jump = len(code) + _FAR_IN_MOVE, encode.jump(0)
    code += encode.move_absolute(encode.RCX, 0)
    code[far : far + len(jump)] = jump
    return Allowed(bytes(code), cells, far + len(jump) - 4)


def asking(slot: int) -> tuple[bytes, int, int]:
    """What a block goes to that has no allowance left, and which leads back at its end; the offsets in it of
    the counter's number, and of its stop."""
    code = SAVE_FLAGS + encode.store_area(encode.RCX, _S_RCX)
    go = encode.jump_area(layout.REFILL)
    leave = encode.store_area(encode.RCX, layout.REFILL_RETURN) + encode.move_ecx(slot)
    code += encode.lea_rcx(len(leave + go)) + leave
    field = len(code) - 4
    code += go + encode.STOP_IF_NEGATIVE
    stop = len(code) - 1
    return code + encode.load_area(encode.RCX, _S_RCX) + GIVE_FLAGS_BACK + encode.jump(0), field, stop


class CounterEmitter:
    """Counts blocks, and keeps a thread's budget by a `countdown`."""

    def __init__(self, countdown: Countdown) -> None:
        self._countdown = countdown
        self._budgeted = countdown is Countdown.BUDGET
        self._allowing = countdown is Countdown.ALLOWANCES
        self._must_be_dead = ALL if self._budgeted else ARITHMETIC

    def _place_counter(
        self, emitted: Emitted, block: SourceBlock, live_out: Callable[[SourceBlock], int]
    ) -> tuple[int, int]:
        """Before which instruction to count, and the register to borrow for it.

        (i, -1): flags are dead before i. (i, r): they are not, but register r
        is overwritten before anything reads it or may fault. (-1, -1): within
        the terminator's own sequence. (i, 16): spill.
        """
        facts_of = block.facts
        # Right before an instruction that overwrites all flags nothing can
        # come between; one that cannot fault is best.
        spots = [f.spot_all for f in facts_of] if self._budgeted else [f.spot for f in facts_of]
        best_spot = max(spots)
        if best_spot:
            return spots.index(best_spot), -1
        needed = self._must_be_dead
        last = len(facts_of) - 1
        live: int = ALL
        if facts_of[last].kind in (Kind.JUMP, Kind.BRANCH, Kind.CALL) or block.cut:
            live = emitted.live = live_out(block)
        elif block.leaves:
            live = 0  # a return from a signal handler restores all
        best = -1
        for index in range(last, -1, -1):
            facts = facts_of[index]
            live = live & ~facts.kills | facts.reads
            if not live & needed:
                best = index
        if best >= 0:
            return best, -1
        if facts_of[last].kind in (Kind.RETURN, Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL):
            return -1, -1
        read = 0
        for facts in facts_of:
            if facts.faults or facts.kind != Kind.PLAIN:
                break
            read |= facts.registers_read
            free = facts.registers_killed & ~read & 0xEFEF  # lea cannot use rsp and r12 as they are
            if free:
                return 0, (free & -free).bit_length() - 1
            read |= facts.registers_killed
        return 0, 16

    def _count(self, emitted: Emitted, slot: int, length: int, borrows: int) -> None:
        """The counter of a block itself, and the interval check if asked for."""
        out = emitted.code
        cell = layout.COUNTERS + slot * 8
        if self._budgeted:
            self._count_budgeted(emitted, cell, length, dead=borrows < 0)
        elif borrows < 0:
            out += encode.increment_area(cell)
            emitted.fields.append((Field.CELL, len(out) - 4))
            emitted.tallied = len(out)
            if self._allowing:
                out += encode.jump_if_positive(0)
                self._ask_budget(emitted, emitted.tallied, len(out) - 4, slot)
        elif self._allowing:
            self._count_allowed(emitted, slot, borrows)
        elif borrows < 16:
            self._add_one(emitted, borrows, cell)
        else:
            out += SAVE_RAX
            self._add_one(emitted, encode.RAX, cell)
            out += LOAD_RAX
        emitted.counted = len(out)

    @staticmethod
    def _add_one(emitted: Emitted, register: int, cell: int) -> None:
        """Count without touching flags, in a register that nobody needs."""
        out, fields = emitted.code, emitted.fields
        out += encode.load_area(register, cell)
        fields.append((Field.CELL, len(out) - 4))
        out += encode.lea_increment(register, 1)
        out += encode.store_area(register, cell)
        fields.append((Field.CELL, len(out) - 4))
        emitted.tallied = len(out)

    def _count_budgeted(self, emitted: Emitted, cell: int, length: int, *, dead: bool) -> None:
        out = emitted.code
        if not dead:
            out += SAVE_FLAGS
        out += encode.increment_area(cell)
        emitted.fields.append((Field.CELL, len(out) - 4))
        emitted.tallied = len(out)
        self._charge(emitted, length)
        if not dead:
            out += GIVE_FLAGS_BACK

    @staticmethod
    def _charge(emitted: Emitted, length: int) -> None:
        """Take a block's length from the budget, flags being dead or saved."""
        out = emitted.code
        out += encode.subtract_area(layout.BUDGET, length)
        emitted.charged = len(out)
        out += encode.JUMP_INTO_NOP + encode.STOP_IN_NOP
        stop = len(out) - 1
        emitted.budget = (stop, stop + 1)

    def _charge_recorded(self, emitted: Emitted, length: int) -> None:
        """The same for a block that has been counted as its record was begun."""
        emitted.code += SAVE_FLAGS
        self._charge(emitted, length)
        emitted.code += GIVE_FLAGS_BACK
        emitted.counted = len(emitted.code)

    def _count_allowed(self, emitted: Emitted, slot: int, borrows: int) -> None:
        """Count without touching flags, or go elsewhere if there is no allowance left."""
        out, fields = emitted.code, emitted.fields
        if borrows != encode.RCX:
            out += encode.move(borrows, encode.RCX) if borrows < 16 else SAVE_RCX
        counting, at = allowed(layout.COUNTERS + slot * 8), len(out)
        out += counting.code
        fields += [(Field.CELL, at + cell) for cell in counting.cells]
        emitted.tallied = at + counting.cells[1] + 4
        self._ask_budget(emitted, at + counting.cells[0] + 4, at + counting.enter, slot)
        if borrows != encode.RCX:
            out += encode.move(encode.RCX, borrows) if borrows < 16 else LOAD_RCX

    @staticmethod
    def _ask_budget(emitted: Emitted, begin: int, enter: int, slot: int) -> None:
        """What the 4 bytes at `enter` lead to, and which leads back behind what has been emitted."""
        code, field, stop = asking(slot)
        back = len(code) - 4, len(emitted.code)
        emitted.cold = Cold(code, ((enter, 0),), (back,), ((Field.SLOT, field),), Ask(begin, stop))

    def _count_in_lookup(self, emitted: Emitted, slot: int, length: int, *, restores: bool) -> None:
        """Count where rax and rcx are saved already."""
        out = emitted.code
        cell = layout.COUNTERS + slot * 8
        if self._budgeted:
            self._count_budgeted(emitted, cell, length, dead=False)
        else:
            if self._allowing:
                self._count_allowed(emitted, slot, encode.RCX)
            else:
                self._add_one(emitted, encode.RCX, cell)
            if restores:
                out += LOAD_RCX
        emitted.counted = len(out)
