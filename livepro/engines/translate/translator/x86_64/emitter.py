"""Copies basic blocks: the program's instructions as they are, a counter, rewritten exits.

The product is bytes and positions; putting them into a cache and linking them
is `space`'s business. Flags and registers are the program's own at every
boundary between its instructions; sequences that borrow a register use the
spill words of the thread's area and give it back before the next boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Owed
from livepro.engines.translate.translator.emitted import Check, Countdown, Emitted, Field, Landing
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.counter import (
    LOAD_RAX,
    LOAD_RCX,
    SAVE_RAX,
    SAVE_RCX,
    CounterEmitter,
)
from livepro.engines.translate.translator.x86_64.events.lending import BACK
from livepro.engines.translate.translator.x86_64.facts import Facts, Kind
from livepro.engines.translate.translator.x86_64.refilling import Refilling
from livepro.engines.translate.translator.x86_64.relocation import load_target, push_return, relocated
from livepro.engines.translate.translator.x86_64.repeating import repeat
from livepro.engines.translate.translator.x86_64.syscalls import (
    SystemCalls,
    native,
    resume,
    return_from_signal,
)
from livepro.engines.translate.translator.x86_64.tables import branch_by_table, jump_table

if TYPE_CHECKING:
    from livepro.engines.stream.blocks import StreamBlocks
    from livepro.engines.stream.filtering import Filter, Repeats
    from livepro.engines.translate.translator.x86_64.events.entries import Entries
    from livepro.engines.translate.translator.x86_64.events.filtering import Filtering
    from livepro.engines.translate.translator.x86_64.events.recording import Recording

_S_BELOW_STACK = layout.SPILL[5]
SAVE_BELOW_STACK = encode.store_area(encode.RCX, _S_BELOW_STACK)

_NEVER = 1 << 32  # an offset behind any copy
_BEFORE_ALL = -2  # a block that is recorded is counted at its start
NOPS = (b"", b"\x90", b"\x66\x90", b"\x0f\x1f\x00")  # SDM vol. 2, NOP


class Emitter(CounterEmitter):
    """Turns blocks into their copies. `watched`: see `SystemCalls`, `countdown`: see `CounterEmitter`."""

    def __init__(self, data: int, watched: Mapping[int, int | None], countdown: Countdown) -> None:
        super().__init__(countdown)
        self._calls = SystemCalls(data, watched)
        self.recording: Recording | Filtering | None = None
        self.entries: Entries | None = None
        self._filter: Filter | None = None
        self._refill = Refilling(data).code if self._allowing else b""
        self.lookup = encode.MOVZX_ECX_AX + encode.jump_indexed(data + layout.LOOKUP)

    @property
    def plain(self) -> bool:
        """See `Emitter`."""
        return self.recording is None or not (self._budgeted or self._allowing)

    @property
    def asks(self) -> bool:
        """See `Emitter`."""
        return self._allowing

    @property
    def charges(self) -> bool:
        """See `Emitter`."""
        return self._budgeted

    @property
    def records(self) -> bool:
        """See `Emitter`."""
        recording = self.recording
        return recording is not None and recording.first and recording.every

    @property
    def lends(self) -> bool:
        """See `Emitter`."""
        return self.recording is not None and self.recording.lends

    @property
    def filter(self) -> Filter | None:
        """See `Emitter`."""
        return self._filter

    def record(self, blocks: StreamBlocks, filter: Filter | Repeats | None) -> None:
        """See `Emitter`."""
        from livepro.engines.stream.filtering import Repeats
        from livepro.engines.translate.translator.x86_64.events.entries import entries_for
        from livepro.engines.translate.translator.x86_64.events.filtering import Filtering
        from livepro.engines.translate.translator.x86_64.events.recording import Recording

        if filter is None or isinstance(filter, Repeats):
            self.recording = Recording(blocks, every=filter is None)
        else:
            self.recording = Filtering(blocks, filter)
            self._filter, self.entries = filter, entries_for(filter.data.packed)

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

        `live_out(block)` gives the flags that its direct successors may read;
        it is asked only when the block itself leaves no room for a counter.
        `owed` is for other instruction sets.
        """
        emitted = Emitted()
        out, runs = emitted.code, emitted.runs
        code, facts_of, offsets = block.code, block.facts, block.offsets
        special: Sequence[int] = block.special
        recording = self.recording
        if recording is not None and not recording.wants(block):
            recording = None
        plan: Any = None if recording is None else recording.plan(emitted, block, slot, live_out)
        if recording is not None and recording.first:
            counter, borrows = _BEFORE_ALL, 16
        else:
            counter, borrows = self._place_counter(emitted, block, live_out)
        owning: Mapping[int, bool] = {}
        if recording is not None:
            special = sorted({*special, *recording.places(plan)})
            owning = recording.owning(plan)
        if check is Check.ENTRY:
            # In an aligned word, so that it can be made to do nothing while threads run there
            # (SDM vol. 3, 9.1.1); one instruction, with what is in front.
            out += encode.NO_PREFIX * (-at & 7) + encode.jump(0)
            emitted.skip = len(out) - 4
            emitted.aside = aside = Emitted()
            self._compare_source(aside, block, 0)
            aside.code += encode.jump(0)
            aside.counted = aside.tallied = aside.charged = _NEVER
        elif check is Check.WRITES:
            out += self.padding(at, 1) + encode.jump(0)
            emitted.skip = len(out) - 4
            self._compare_source(emitted, block, 0)
            special = range(len(facts_of))
        if recording is not None:
            recording.begin(emitted, plan, block, slot)
            if self._budgeted:
                self._charge_recorded(emitted, len(facts_of))
        runs.append((0, len(out)))
        table = jump_table(block) if stubs else None
        if table is not None:
            if counter < 0:
                counter, borrows = len(facts_of) - 2, 16
            special = [*special[:-1], len(facts_of) - 2]  # both instructions in one
        early: dict[int, int] = {}
        resumes: dict[int, int] = {}
        number = -1
        start = 0  # where the run of instructions not yet copied begins
        for index in special if counter < 0 or counter in special else sorted((*special, counter)):
            facts = facts_of[index]
            here = offsets[index]
            out += code[start:here]
            start = here
            if index == counter:
                self._count(emitted, slot, len(facts_of), borrows)
            front = len(out)
            if check is Check.WRITES and index and facts_of[index - 1].writes:
                self._compare_source(emitted, block, index)
            if recording is not None:
                begin = len(out)
                recording.before(emitted, plan, block, index)
                if len(out) > begin:
                    early[index] = begin
            if len(out) > front:
                resumes[index] = front
            if plan is not None and index in plan.stepped:
                runs.append((index, len(out)))
                native(emitted, index)
                start = offsets[index + 1]
                runs.append((index + 1, len(out)))
                continue
            runs.append((index, len(out)))
            if table is not None and index == len(facts_of) - 2:
                branch_by_table(emitted, table, stubs, len(facts_of))
                start = offsets[-1]
                break
            if facts.simple and index not in owning:
                continue
            kind = facts.kind
            before = number
            if facts.number != -2:
                number = facts.number
            if kind is Kind.PLAIN and index not in owning:
                continue
            start = offsets[index + 1]
            encoding = code[here:start]
            if kind is Kind.PLAIN:
                out += encoding
            elif kind is Kind.RELATIVE:
                if not relocated(emitted, encoding, facts.displacement, block.pc + start, at):
                    native(emitted, index)
            elif kind is Kind.REP:
                repeat(emitted, encoding, index)
            elif kind is Kind.SYSCALL:
                if block.leaves and start == offsets[-1] and not self.lends:
                    return_from_signal(emitted, block.end)
                else:
                    self._calls.copy(emitted, index, before, block.pc + start, lends=self.lends)
                number = -1
            elif kind is Kind.NATIVE:
                native(emitted, index)
            else:
                again = BACK if index in owning else b""
                self._terminator(emitted, block, facts, encoding, at, slot, again, counts=counter == -1)
            if recording is not None and kind <= Kind.REP:
                recording.behind(emitted, plan, index)
            runs.append((index + 1, len(out)))
        out += code[start : offsets[-1]]
        if recording is not None:
            recording.end(emitted, plan)
        if resumes:
            emitted.early, emitted.resumes = early, resumes
        if block.cut:
            emitted.falls = block.end
        return emitted

    @staticmethod
    def _compare_source(emitted: Emitted, block: SourceBlock, index: int) -> None:
        """Stop if the program's bytes from instruction `index` on are no longer those
        copied. Aligned loads only: HotSpot sets EFLAGS.AC while it probes the
        processor, and a misaligned load is then a SIGBUS."""
        out = emitted.code
        out += SAVE_RAX + SAVE_RCX
        at, end = block.offsets[index], block.offsets[-1]
        pc, code, changes = block.pc, block.code, []
        while at < end:
            address = pc + at
            # The greatest powers of two that divide the address, and that are left.
            size = min(8, address & -address or 8, 1 << (end - at).bit_length() - 1)
            out += encode.compare(size, address, int.from_bytes(code[at : at + size], "little"))
            changes.append((len(out) - 1, index))
            at += size
        emitted.changes += tuple(changes)
        out += LOAD_RCX + LOAD_RAX

    def _terminator(
        self,
        emitted: Emitted,
        block: SourceBlock,
        facts: Facts,
        encoding: bytes,
        at: int,
        slot: int,
        again: bytes,
        *,
        counts: bool,
    ) -> None:
        out = emitted.code
        kind = facts.kind
        if kind is Kind.JUMP:
            emitted.falls = block.target
        elif kind is Kind.BRANCH:
            out += self.padding(at + len(out), 2)
            out += encode.branch(facts.condition, 0)
            emitted.exits += ((len(out) - 4, block.target),)
            emitted.falls = block.end
        elif kind is Kind.COUNTED:
            out += self.padding(at + len(out), len(encoding) + 1)
            out += encoding[:-1] + b"\x05"
            out += encode.jump(0)
            emitted.exits += ((len(out) - 4, block.end),)
            emitted.falls = block.target
        elif kind is Kind.CALL:
            push_return(emitted, block.end)
            emitted.falls = block.target
            emitted.returns_to = block.end
        else:
            self._indirect(emitted, block, facts, encoding, at, slot, again, counts=counts)

    @staticmethod
    def padding(at: int, before: int) -> bytes:
        """What to put at address `at` so that a displacement `before` bytes behind is
        aligned: then a thread that runs there sees it whole, before or after it is
        patched (SDM vol. 3, 9.1.1 and 9.1.3)."""
        return NOPS[-(at + before) & 3]

    def _indirect(
        self,
        emitted: Emitted,
        block: SourceBlock,
        facts: Facts,
        encoding: bytes,
        at: int,
        slot: int,
        again: bytes,
        *,
        counts: bool,
    ) -> None:
        """Load the target into rax (and then do what is done `again`) and look it up. The table leads to a
        landing that checks rax and gives rax and rcx back, or to a stop."""
        out = emitted.code
        out += SAVE_RAX
        out += SAVE_RCX
        if counts:
            # The operand may need rcx; the pop of a return does not.
            self._count_in_lookup(emitted, slot, len(block.facts), restores=facts.kind is not Kind.RETURN)
        if facts.kind is Kind.RETURN:
            emitted.borrowed = {len(out): 0}
            out += encode.POP_RAX
            if facts.immediate:
                out += encode.adjust_rsp(facts.immediate)
        else:
            load_target(emitted, encoding, facts, block.end, at)
            out += again
            if facts.kind is Kind.INDIRECT_CALL:
                emitted.borrowed = {len(out): 0}
                # A call to no canonical address faults before it pushes.
                out += encode.LOAD_RCX_BELOW_STACK
                out += SAVE_BELOW_STACK
                emitted.borrowed = {**emitted.borrowed, len(out): 0}
                push_return(emitted, block.end)
                emitted.returns_to = block.end
        # Should the target turn out not to be canonical, the branch itself must fault.
        out += encode.store_area_immediate(layout.SITE, slot)
        emitted.fields.append((Field.SLOT, len(out) - 4))
        out += self.lookup
        emitted.fields.append((Field.DATA, len(out) - 4))

    # -- what is not a copy

    def resume(self) -> bytes:
        """What a return from a signal handler leads to: looks up where its frame leads."""
        return resume(self.lookup)

    def refill(self) -> bytes:
        """What a block goes to that has no allowance left (nothing, if there are no allowances)."""
        return self._refill

    def landing(self, target: int) -> Landing:
        """What the lookup table leads to for `target`: goes on behind itself if rax is
        the target, giving back rax and rcx, else elsewhere.

        It may not compare, even where the target overwrites
        the flags: who does not find its target here may need them.
        """
        test = encode.move_absolute(encode.RCX, -target) + encode.LEA_RCX_RCX_RAX
        test += encode.jump_if_rcx_zero(len(encode.jump(0)))
        return Landing(test + encode.jump(0) + LOAD_RCX + LOAD_RAX, len(test) + 1, 2)
