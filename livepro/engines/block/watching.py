"""A rep with many iterations runs on to its end, which a hardware breakpoint of the thread's own shows."""

from __future__ import annotations

from livepro.engines.block.thread import BlockThread
from livepro.isa.base import Isa
from livepro.linux import ptrace

_FEW_ITERATIONS = 8  # of a rep: a step for each costs less than to set and clear a debug register


class RepWatch:
    """Sets and clears the debug register that shows a rep's end (`hardware`; None: there is none)."""

    def __init__(self, isa: Isa) -> None:
        self.hardware = isa.hardware_breakpoint
        self._rep_count = isa.rep_count

    def watch(self, state: BlockThread) -> bool:
        """Let a rep with many iterations run on to its end instead of stepping each: whether
        a hardware breakpoint of the thread's own shows it there. Its iterations are what
        the count register has lost."""
        hardware, code, index = self.hardware, state.block.code, state.index
        if hardware is None:
            return False
        at, behind = code.addresses[index : index + 2]
        text = code.code[at - code.address : behind - code.address]
        if self._rep_count(text, state.before) < _FEW_ITERATIONS:
            return False
        tid = state.thread.tid
        if ptrace.raw(ptrace.PTRACE_POKEUSER, tid, hardware.address_offset, behind) == -1 or (
            ptrace.raw(ptrace.PTRACE_POKEUSER, tid, hardware.control_offset, hardware.enable) == -1
        ):
            self.hardware = None  # not to be had on this machine, or not by us
            return False
        state.watched = True
        return True

    def unwatch(self, state: BlockThread) -> bool:
        """A thread that executed a watched rep has stopped: whether at the rep's end."""
        assert self.hardware is not None
        state.watched = False
        tid = state.thread.tid
        ptrace.call(ptrace.PTRACE_POKEUSER, tid, self.hardware.control_offset, 0)
        info = ptrace.signal_info(tid)
        return info is not None and info.code == self.hardware.si_code
