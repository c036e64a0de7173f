"""Where stepped threads get to: what a step has executed is counted, and what comes next is prepared.

A thread's state is the block it is in and the index of the instruction it will attempt next.
"""

from __future__ import annotations

from livepro.engines.inprocess import InProcess
from livepro.engines.step import stepping
from livepro.engines.step.decoding import Decoder
from livepro.engines.step.regional import RegionKeeper
from livepro.engines.step.stepping import NEVER, StepThread
from livepro.engines.traps import IgnoredTraps
from livepro.engines.window import Position
from livepro.isa.base import Isa, Quirk
from livepro.tracee.births import Births


class StepWalk:
    """Leads threads from instruction to instruction. `unexplained` counts steps that led where the
    instruction stepped cannot lead."""

    def __init__(
        self,
        isa: Isa,
        keeper: RegionKeeper,
        decoder: Decoder,
        inprocess: InProcess,
        births: Births,
        traps: IgnoredTraps,
    ) -> None:
        self.unexplained = 0
        self._isa = isa
        self._keeper = keeper
        self._decoder = decoder
        self._inprocess = inprocess
        self._births = births
        self._traps = traps
        self._remapping = isa.syscalls.named(
            "mmap", "munmap", "mprotect", "pkey_mprotect", "mremap", "shmat", "shmdt", "remap_file_pages"
        )

    def advance(self, state: StepThread, pc: int) -> None:
        """The instruction attempted has retired and led to `pc`."""
        block = state.block
        code, index = block.code, state.index
        addresses = code.addresses
        quirk = code.quirks[index]
        if code.reps[index]:
            stepping.count_iterations(self._isa, state)
            if pc == addresses[index]:
                return  # one iteration of several: not retired yet
        if quirk is not Quirk.NONE:
            self.after_quirk(state, quirk, returned=pc == addresses[index + 1])
        if state.trace is not None:
            state.trace.retired(index)
        state.held = False
        after = index + 1
        if quirk is Quirk.SHADOW and after < len(code) and (pc != addresses[after] or code.reps[after]):
            # The instruction behind it was executed in the same step, or one iteration of it.
            state.index = after
            self.advance(state, pc)
            return
        if after == len(addresses) - 1:
            if not stepping.may_follow(code, pc):
                self.unexplained += 1
                self.complete(state)
                self.enter(state, pc)
            else:
                self.complete(state)
                self.enter(state, pc)
                if state.trace is None and self._keeper.ignores(state, pc):
                    block.link(state.block)
        elif pc == addresses[after]:
            state.index = after
            self.arrive(state)
        elif quirk is Quirk.SYSCALL:
            self.leave(state, after)  # sigreturn
            self.enter(state, pc)
        else:
            self._skipped(state, pc)

    def _skipped(self, state: StepThread, pc: int) -> None:
        """More than one instruction was executed on the way to `pc`: a trap was swallowed
        by a hypervisor that emulated the instruction."""
        code = state.block.code
        self.unexplained += 1
        # The thread cannot have left the straight line before its terminator.
        end = len(code)
        reached = code.addresses.index(pc) if pc in code.addresses[state.index + 1 : end] else end
        if reached < end:
            state.index = reached
            self.arrive(state)
        else:
            self.complete(state)
            self.enter(state, pc)

    def after_quirk(self, state: StepThread, quirk: Quirk, *, returned: bool) -> None:
        """An instruction with a quirk has been executed; `returned`: it led right behind itself."""
        if returned:  # not by sigreturn, whose registers are all the program's own
            self._isa.after_step(quirk, state.thread)
        state.muddled |= quirk is Quirk.POP_FLAGS
        if quirk is Quirk.SYSCALL:
            self._births.settle(state.thread)
            self._traps.called(state.thread, state.before)
            layout = self._isa.registers
            before = state.before
            if getattr(before, layout.syscall_number) in self._remapping:
                address, size, protection = (getattr(before, name) for name in layout.syscall_arguments[:3])
                self.remapped(state, address, size, protection)
            elif (command := self._inprocess.command(state.thread, before)) is not None:
                code, executed = state.block.code, state.index + 1
                state.asking = Position(state.block.row, executed, 0, len(code))
                self._inprocess.answer(state.thread, state.tally, before, command)
                state.asking = None

    def complete(self, state: StepThread) -> None:
        """The thread has executed its block as a whole."""
        row, length = state.block.row, len(state.block.code)
        self._keeper.passes(state, row, length, length)
        state.tally.complete(row)
        if state.trace is not None:
            state.trace.complete()

    def leave(self, state: StepThread, count: int) -> None:
        """The thread goes elsewhere after the block's first `count` instructions."""
        self._keeper.passes(state, state.block.row, count, len(state.block.code))
        state.tally.prefix(state.block.row, count)
        if state.trace is not None:
            repeats = state.index == count and state.block.code.reps[count]
            state.trace.leave(count, state.before if repeats else None)
        state.held = False

    def enter(self, state: StepThread, pc: int) -> None:
        """The thread is about to execute the instruction at `pc`, the first of a block."""
        block = self._decoder.find(state.record, pc)
        if block is None or not (block.stable or stepping.unchanged(state, block, 0)):
            block = self._decoder.decode(state.thread.process, state.record, pc)
        state.block = block
        state.expect = block.expect
        state.index = 0
        self._about_to(state)

    def arrive(self, state: StepThread) -> None:
        """The thread is about to execute instruction `index`, in the middle of its block."""
        block, index = state.block, state.index
        if not block.stable and not stepping.unchanged(state, block, index):
            self.leave(state, index)
            self.enter(state, block.code.addresses[index])
            return
        self._about_to(state)

    def _about_to(self, state: StepThread) -> None:
        """A thread will execute instruction `index` next, by a step."""
        self._keeper.arrive(state)
        self.attempt(state, asks=not self._keeper.may_run(state, len(state.block.code)))

    def attempt(self, state: StepThread, *, asks: bool) -> None:
        """The same, the region having been told; `asks`: it is looked at behind the step in any case."""
        block, index = state.block, state.index
        if block.look[index]:
            state.before = state.thread.registers()
        if state.trace is not None:
            state.trace.attempt(block.code, index)
            asks = True
        state.expected = NEVER if asks else block.expect[index]

    def remapped(self, state: StepThread, address: int, size: int, protection: int) -> None:
        """A thread has made a system call that changes mappings."""
        self._decoder.remapped(state, address, size, protection)
