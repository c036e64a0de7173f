"""Whether a thread that has stopped has met a breakpoint on a terminator."""

from __future__ import annotations

from collections.abc import Callable

from livepro.engines.block.thread import BlockThread
from livepro.isa.base import Isa, Quirk
from livepro.linux import ptrace
from livepro.tracee.stops import trap_pending


class Hits:
    """Tells hits of breakpoints from other stops. `pc` reads the program counter of a thread (tid)."""

    def __init__(self, isa: Isa, pc: Callable[[int], int]) -> None:
        self._breakpoint = isa.breakpoint
        self._pc = pc

    def by_breakpoint(self, state: BlockThread) -> bool:
        """Whether what has stopped a thread is a breakpoint."""
        info = ptrace.signal_info(state.thread.tid)
        return info is not None and info.code == self._breakpoint.si_code

    def may_be(self, state: BlockThread, pc: int) -> bool:
        """Whether a step from where the thread stands may meet the breakpoint on the block's terminator,
        and then lead to `pc`. (The breakpoint may have been lifted since.)"""
        node, last = state.block, len(state.block.code) - 1
        if node.site is None:
            return False
        held_back = state.index == last - 1 and node.code.quirks[state.index] is Quirk.SHADOW
        at_terminator = state.index == last or held_back
        return at_terminator and pc == node.site.address + self._breakpoint.pc_advance

    def met(self, state: BlockThread) -> bool:
        """Whether a thread that was stepped has met the breakpoint on its block's terminator."""
        pc = self._pc(state.thread.tid)
        return self.may_be(state, pc) and (
            self.by_breakpoint(state) or (not state.watched and trap_pending(state.thread.tid))
        )

    def owes_trap(self, state: BlockThread) -> bool:
        """Whether a thread that has stopped before the kernel takes signals has met a breakpoint, run or
        stepped, and is yet to report that. Where the pc does not tell, it may be about to meet it."""
        pc = self._pc(state.thread.tid)
        if state.plan is not None:
            return pc in state.plan.ends and bool(
                self._breakpoint.pc_advance or trap_pending(state.thread.tid)
            )
        return not state.watched and self.may_be(state, pc) and trap_pending(state.thread.tid)
