"""Threads among breakpoints, let go after an error: the breakpoints first, then each where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from livepro.engines.block.text import Text
from livepro.engines.block.thread import BlockThread
from livepro.engines.rescue import OwnCode
from livepro.isa.base import HardwareBreakpoint, Isa
from livepro.linux import ptrace
from livepro.tracee import TracedProcess


class BlockHoming(OwnCode):
    """See `livepro.engines.rescue.Homing`. `running` are the threads by tid, `texts` the code of processes,
    `hardware` the debug register that a watched `rep` uses. For `mask` see `OwnCode`."""

    def __init__(
        self,
        isa: Isa,
        mask: Callable[[int], int | None],
        running: Mapping[int, BlockThread],
        texts: Mapping[TracedProcess, Text],
        hardware: HardwareBreakpoint | None,
    ) -> None:
        super().__init__(isa, mask)
        self._running = running
        self._texts = dict(texts)
        self._hardware = hardware
        self._breakpoint = isa.breakpoint
        self._pc = isa.registers.pc

    def open(self) -> None:
        """Lift every breakpoint, as the program's memory has them: they would end the process."""
        for process, text in self._texts.items():
            text.restore(process.memory)

    def planted(self, tid: int, address: int) -> bool:
        """See `Homing`."""
        state = self._running.get(tid)
        return state is not None and address in state.text.sites and not state.carried

    def home(self, tid: int, registers: Any, *, trapped: bool, faulted: bool) -> bool:
        """Back to the instruction whose place a breakpoint took, if the thread has run into one."""
        state = self._running.get(tid)
        if trapped:
            setattr(registers, self._pc, getattr(registers, self._pc) - self._breakpoint.pc_advance)
        if state is not None and state.watched and self._hardware is not None:
            ptrace.call(ptrace.PTRACE_POKEUSER, tid, self._hardware.control_offset, 0)
        return super().home(tid, registers, trapped=trapped, faulted=faulted)
