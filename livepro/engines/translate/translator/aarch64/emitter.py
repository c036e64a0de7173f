"""Copies basic blocks: the program's instructions as they are, a counter, rewritten exits.

The product is bytes and positions; putting them into a cache and linking them
is `space`'s business. Flags are never touched. Registers are the program's own
at every boundary between its instructions, but for `encode.BASE`, whose own
value is kept in the thread's area; sequences that borrow a register use the
spill words there and give it back before the next boundary.

Between a load-exclusive and its store-exclusive there is no store and no stop
that is not the program's: a counter stands before the one or behind the other.
What straight code leads through in between has a copy of its own, which counts
behind. (Not so where the sequence takes a branch to go on, and where an
instruction mentions `encode.BASE`. The architecture then no longer promises
that the sequence succeeds in the end, though processors clear the monitor for
stores near its address only.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import encode, relocation
from livepro.engines.translate.translator.aarch64.counter import (
    BRK,
    IN_LOOKUP,
    LOAD_PAIR,
    NEAR,
    SAVE_PAIR,
    Counter,
    CounterEmitter,
)
from livepro.engines.translate.translator.aarch64.encode import LINK, X0, X1
from livepro.engines.translate.translator.aarch64.facts import Exclusive, Facts, Kind
from livepro.engines.translate.translator.backend import Owed
from livepro.engines.translate.translator.emitted import Check, Countdown, Emitted, Landing
from livepro.engines.translate.translator.source import SourceBlock
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.engines.stream.blocks import StreamBlocks
    from livepro.engines.stream.filtering import Filter, Repeats
    from livepro.engines.translate.translator.aarch64.events.recording import Plan, Recording

_NEVER = 1 << 32  # an offset behind any copy
_BEFORE_ALL = -2  # a block that is recorded is counted at its start
_NUMBER = 8  # the register with a system call's number


class Emitter(CounterEmitter):
    """Turns blocks into their copies. `watched` are system call numbers that must stop;
    with a `countdown` each counter has the interval check."""

    entries = filter = None
    records = asks = lends = False

    def __init__(self, data: int, watched: Mapping[int, int | None], countdown: Countdown) -> None:
        super().__init__(countdown)
        self._watched = watched
        self.recording: Recording | None = None
        self.lookup = encode.pack(encode.lookup(data + layout.LOOKUP))
        self._table = data + layout.WATCHED

    @property
    def plain(self) -> bool:
        """See `Emitter`."""
        return self.recording is None

    @property
    def charges(self) -> bool:
        """See `Emitter`."""
        return self._budgeted

    def record(self, blocks: StreamBlocks, filter: Filter | Repeats | None) -> None:
        """See `Emitter`."""
        from livepro.engines.stream.filtering import Filter
        from livepro.engines.translate.translator.aarch64.events.recording import Recording

        if isinstance(filter, Filter):
            raise LiveproError(
                "The event stream of AArch64 programs cannot be filtered.", "Have all of it recorded."
            )
        self.recording = Recording(blocks, every=filter is None)

    # -- writing

    def emit(
        self,
        block: SourceBlock,
        at: int,
        slot: int,
        live_out: Callable[[SourceBlock], int],
        check: Check,
        owed: Owed | None = None,
        stubs: int = 0,
    ) -> Emitted:
        """Copy `block` to cache address `at`, counting in `slot`.

        `check` says whether the source may change under the copy, and so must
        be compared when the block is entered, or after its own writes too.
        `live_out` is not asked: no flags are touched. With `owed` the copy is
        only entered within an exclusive sequence; it counts them, and itself,
        behind the store-exclusive or where it leaves the sequence.
        """
        emitted = Emitted()
        out, runs = emitted.code, emitted.runs
        code, facts_of, offsets = block.code, block.facts, block.offsets
        special: Sequence[int] = block.special
        plan = None if self.recording is None else self.recording.plan(block)
        counter, free, clean = self._counts_at(emitted, facts_of, slot, owed, plan)
        if plan is not None:
            special = sorted({*special, *plan.places})
        if check is not Check.NEVER:
            out += encode.pack([encode.B + 1])
            self._compare_source(emitted, block, 0, at)
            emitted.skip = 0
            if check is Check.WRITES:
                special = range(len(facts_of))
        if plan is not None and not plan.at:
            self._begin_record(emitted, plan, slot, len(facts_of))
        runs.append((0, len(out)))
        early: dict[int, int] = {}
        resumes: dict[int, int] = {}
        start = 0  # where the run of instructions not yet copied begins
        for index in special if counter < 0 or counter in special else sorted((*special, counter)):
            if index >= len(facts_of):
                break  # to be counted at the very end
            facts = facts_of[index]
            here = offsets[index]
            out += code[start:here]
            start = here
            if index == counter:
                self._count_here(emitted, slot, len(facts_of), free, plan)
            front = len(out)
            if check is Check.WRITES and index and facts_of[index - 1].writes:
                self._compare_source(emitted, block, index, at)
            if plan is not None:
                begin = len(out)
                plan.before(emitted, index)
                if len(out) > begin:
                    early[index] = begin
                if len(out) > front:
                    resumes[index] = front
            runs.append((index, len(out)))
            if plan is not None and index in plan.stepped:
                self._native(emitted, index)
            elif facts.simple:
                continue
            else:
                self._special(emitted, block, index, at, slot, counts=counter == IN_LOOKUP)
            start = offsets[index + 1]
            runs.append((index + 1, len(out)))
        out += code[start : offsets[-1]]
        if counter == len(facts_of):
            self._count_here(emitted, slot, len(facts_of), free, plan)
        if resumes:
            emitted.early, emitted.resumes = early, resumes
        if clean > counter >= 0:
            emitted.dirty = (emitted.counted, emitted.marks(block)[clean])
        if block.cut:
            emitted.falls = block.end
        if self._opens(facts_of):
            after = [*(target for _, target in emitted.exits), emitted.falls]
            emitted.urgent = tuple(target for target in after if target is not None)
            emitted.within = ()
        return emitted

    def _counts_at(
        self, emitted: Emitted, facts_of: list[Facts], slot: int, owed: Owed | None, plan: Plan | None
    ) -> Counter:
        """Where a block is counted, and with which registers; what is `owed` then."""
        if plan is not None:  # with its record
            if owed is not None and self._behind_store(facts_of) > len(facts_of):
                emitted.within = ()
            return plan.at or _BEFORE_ALL, (), 0
        if owed is None:
            return self._place_counter(facts_of)
        emitted.owed = tuple(owed)
        counter = self._behind_store(facts_of)
        if counter > len(facts_of):
            emitted.within = (*owed, (slot, len(facts_of)))
            emitted.counted = emitted.tallied = _NEVER
        return counter, (), 0

    def _count_here(
        self, emitted: Emitted, slot: int, length: int, free: tuple[int, ...], plan: Plan | None
    ) -> None:
        """Count a block and what is owed, or record it."""
        if plan is not None:
            self._begin_record(emitted, plan, slot, length)
            return
        self._count_all(emitted, emitted.owed)
        self._count(emitted, slot, length, free)

    def _begin_record(self, emitted: Emitted, plan: Plan, slot: int, length: int) -> None:
        """Begin a block's record, and count the block."""
        value, pointer = plan.begin(emitted)
        cell = layout.COUNTERS + slot * 8
        self._counting(emitted, cell, length, value, *((pointer,) if cell >= NEAR else ()))
        emitted.code.extend(encode.pack([plan.give_back(value, pointer)]))
        emitted.counted = len(emitted.code)

    def _special(
        self, emitted: Emitted, block: SourceBlock, index: int, at: int, slot: int, *, counts: bool
    ) -> None:
        facts: Facts = block.facts[index]
        kind = facts.kind
        pc = block.pc + 4 * index
        here = at + len(emitted.code)
        if kind is Kind.ADDRESS:
            self._put(emitted, relocation.address(facts.word, pc, here))
        elif kind is Kind.LITERAL:
            self._put(emitted, relocation.literal(facts.word, pc, here))
        elif kind is Kind.LENT:
            self._put(emitted, relocation.lending(facts))
        elif kind is Kind.SYSCALL:
            self._system_call(emitted, block.facts, index)
        elif kind is Kind.NATIVE:
            self._native(emitted, index)
        elif kind is Kind.JUMP:
            if index and block.facts[index - 1].kind is Kind.SYSCALL:
                # A call that never returns leaves the thread before the jump, which comes to
                # nothing: not at the start of what follows.
                emitted.code.extend(encode.pack([encode.NOP]))
            emitted.falls = block.target
        elif kind is Kind.CALL:
            emitted.code.extend(encode.pack(encode.address(LINK, here, block.end)))
            emitted.returns_to = block.end
            emitted.falls = block.target
        elif kind is Kind.BRANCH:
            words, restore = relocation.branch(facts.word)
            if emitted.within is None:
                emitted.code.extend(encode.pack([*words, encode.B]))
                emitted.exits += ((len(emitted.code) - 4, block.target),)
                emitted.code.extend(encode.pack(restore))
            else:
                self._leave_sequence(emitted, words, restore, block.target)
            emitted.falls = block.end
        else:
            self._indirect(emitted, block, facts, at, slot, counts=counts)

    @staticmethod
    def _opens(facts_of: list[Facts]) -> bool:
        """Whether a block ends within an exclusive sequence that it has begun."""
        for facts in reversed(facts_of):
            if facts.exclusive:
                return facts.exclusive is Exclusive.OPENS
        return False

    @staticmethod
    def _put(emitted: Emitted, sequence: relocation.Sequence) -> None:
        out = emitted.code
        if sequence.faulting is not None:
            place = len(out) + 4 * sequence.faulting
            emitted.borrowed = {**emitted.borrowed, place: sequence.borrowed}
        out += encode.pack(sequence.words)

    def _leave_sequence(self, emitted: Emitted, words: list[int], restore: list[int], target: int) -> None:
        """A branch out of an exclusive sequence, with what is owed counted on that way only."""
        out = emitted.code
        taken = Emitted()
        assert emitted.within is not None
        begin = len(out) + 4 * (len(words) + len(restore) + 2)
        self._count_all(taken, emitted.within)
        emitted.more_budgets = tuple(
            (begin + stop, begin + resume, slot) for stop, resume, slot in taken.more_budgets
        )
        out += encode.pack([*words, encode.branch(8 + 4 * len(restore)), *restore])
        out += encode.pack([encode.branch(8 + len(taken.code))]) + taken.code
        emitted.exits += ((len(out), target),)
        out += encode.pack([encode.B])

    @staticmethod
    def _behind_store(facts_of: list[Facts]) -> int:
        """The index behind the first instruction that closes an exclusive sequence; one past
        the block's end if there is none."""
        for index, facts in enumerate(facts_of):
            if facts.exclusive:
                return index + 1
        return len(facts_of) + 1

    # -- instructions that are not just copied

    def _compare_source(self, emitted: Emitted, block: SourceBlock, index: int, at: int) -> None:
        """Stop if the program's bytes from instruction `index` on are no longer those copied."""
        out = emitted.code
        out += encode.pack([SAVE_PAIR])
        for offset in block.offsets[index:-1]:
            address = block.pc + offset
            source = int.from_bytes(block.code[offset : offset + 4], "little")
            words = encode.address(X0, at + len(out), address)
            words.append(0xB9400000 | X0 << 5 | X1)  # ldr w1, [x0]
            words += encode.constant(X0, source)
            words.append(encode.subtract(X1, X1, X0))
            words.append(encode.branch_if_zero(X1, 8))
            out += encode.pack(words)
            emitted.changes += ((len(out), index),)
            out += BRK
        out += encode.pack([LOAD_PAIR])

    @staticmethod
    def _native(emitted: Emitted, index: int, behind: int = 0) -> None:
        """Stop, for the tracer to step instruction `index` at its own place and go on
        `behind` (right behind the stop if not said)."""
        out = emitted.code
        emitted.natives += ((len(out), index, behind or len(out) + 4),)
        out += BRK

    def _system_call(self, emitted: Emitted, facts_of: list[Facts], index: int) -> None:
        out = emitted.code
        number = self._number(facts_of, index)
        if number in self._watched:
            self._native(emitted, index)
            return
        if number < 0:
            words = [SAVE_PAIR, *encode.constant(X0, self._table), encode.low_halfword(X1, _NUMBER)]
            words += [encode.load_byte_indexed(X0, X0, X1), encode.branch_if_zero(X0, 12), LOAD_PAIR]
            out += encode.pack(words)
            self._native(emitted, index, len(out) + 12)
            out += encode.pack([LOAD_PAIR])
        else:
            # So that the instruction is not where its mark is: whoever is there has executed it.
            out += encode.pack([encode.NOP])
        emitted.entered = {**emitted.entered, len(out): index}
        out += encode.pack([facts_of[index].word])
        # A counter may come next, but here the program may stay.
        emitted.behind_syscall = {**emitted.behind_syscall, len(out): index + 1}

    @staticmethod
    def _number(facts_of: list[Facts], index: int) -> int:
        """The number of the system call at `index`, -1 if the block does not say."""
        for before in range(index - 1, -1, -1):
            facts = facts_of[before]
            if facts.exclusive or facts.kind is Kind.SYSCALL:
                return -1
            if facts.mentions >> _NUMBER & 1:
                moves = facts.word & 0x7FE0001F == 0x52800008  # movz w8 or x8, #n
                return facts.word >> 5 & 0xFFFF if moves else -1
        return -1

    def _indirect(
        self, emitted: Emitted, block: SourceBlock, facts: Facts, at: int, slot: int, *, counts: bool
    ) -> None:
        """Bring the target into x0 and look it up. The table leads to a landing that checks x0
        and gives x0 and x1 back, or to a stop."""
        out = emitted.code
        out += encode.pack([SAVE_PAIR])
        if counts:
            self._counting(emitted, *self._cell(slot, len(block.facts)))
            emitted.counted = len(out)
        self._put(emitted, relocation.target(facts, dirty=counts))
        if facts.kind is Kind.INDIRECT_CALL:
            out += encode.pack(encode.address(LINK, at + len(out), block.end))
            emitted.returns_to = block.end
        out += self.lookup

    # -- what is not a copy

    @staticmethod
    def padding(at: int, before: int) -> bytes:
        """Nothing: instructions are aligned."""
        return b""

    def resume(self) -> bytes:
        """Nothing: returns from signal handlers are stepped."""
        return b""

    def refill(self) -> bytes:
        """Nothing: there are no allowances."""
        return b""

    @staticmethod
    def landing(target: int) -> Landing:
        """What the lookup table leads to for `target`: goes on behind itself if x0 is the
        target, giving back x0 and x1, else elsewhere.

        The target is put together from several words, so that no field holds it.
        """
        words = encode.constant(X1, target)
        words += [encode.subtract(X1, X0, X1), encode.branch_if_zero(X1, 8)]
        otherwise = 4 * len(words)
        return Landing(encode.pack([*words, encode.B, LOAD_PAIR]), otherwise, 0)
