"""Where a block is counted, and how: where flags are dead if that can be, else in a borrowed register."""

from __future__ import annotations

from collections.abc import Callable

from livepro.engines.translate import layout
from livepro.engines.translate.emitted import Emitted, Field
from livepro.engines.translate.source import SourceBlock
from livepro.engines.translate.x86_64 import encode
from livepro.engines.translate.x86_64.facts import ALL, ARITHMETIC, Kind

SAVE_RAX = encode.store_area(encode.RAX, layout.SPILL[0])
SAVE_RCX = encode.store_area(encode.RCX, layout.SPILL[1])
LOAD_RAX = encode.load_area(encode.RAX, layout.SPILL[0])
LOAD_RCX = encode.load_area(encode.RCX, layout.SPILL[1])


def _spread(pc: int) -> int:
    """Which cell of the budget the block at `pc` takes its length from: by its place in the page, which is
    the same wherever the module is, and such that neighbours have different ones."""
    return (pc >> 2 ^ pc >> 5 ^ pc >> 8) & 7


class CounterEmitter:
    """Counts blocks; with `budget_cells` each takes its length from a thread's budget, too."""

    def __init__(self, budget_cells: int) -> None:
        self._budget_cells = budget_cells
        self._must_be_dead = ALL if budget_cells else ARITHMETIC

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
        spots = [f.spot_all for f in facts_of] if self._budget_cells else [f.spot for f in facts_of]
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

    def _count(self, emitted: Emitted, pc: int, slot: int, length: int, borrows: int) -> None:
        """The counter of the block at `pc` itself, and the interval check if asked for."""
        out = emitted.code
        cell = layout.COUNTERS + slot * 8
        if self._budget_cells:
            self._count_budgeted(emitted, pc, cell, length, dead=borrows < 0)
        elif borrows < 0:
            out += encode.increment_area(cell)
            emitted.fields.append((Field.CELL, len(out) - 4))
            emitted.tallied = len(out)
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

    def _count_budgeted(self, emitted: Emitted, pc: int, cell: int, length: int, *, dead: bool) -> None:
        out = emitted.code
        if not dead:
            out += SAVE_RAX + b"\x9f\x0f\x90\xc0"  # lahf; seto al
        out += encode.increment_area(cell)
        emitted.fields.append((Field.CELL, len(out) - 4))
        emitted.tallied = len(out)
        out += encode.subtract_area(layout.BUDGET + 8 * (_spread(pc) % self._budget_cells), length)
        out += encode.JUMP_INTO_NOP + encode.STOP_IN_NOP
        stop = len(out) - 1
        emitted.budget = (stop, stop + 1)
        if not dead:
            out += b"\x04\x7f\x9e" + LOAD_RAX  # add al, 0x7f; sahf

    def _count_in_lookup(self, emitted: Emitted, pc: int, slot: int, length: int, *, restores: bool) -> None:
        """Count where rax and rcx are saved already."""
        out = emitted.code
        cell = layout.COUNTERS + slot * 8
        if self._budget_cells:
            self._count_budgeted(emitted, pc, cell, length, dead=False)
        else:
            self._add_one(emitted, encode.RCX, cell)
            if restores:
                out += LOAD_RCX
        emitted.counted = len(out)
