"""System calls made as a thread of a program that runs: nothing of the program's is written to.

The call is a single step over a system call instruction that is there anyway, in
the vDSO or a library. The thread's signals wait meanwhile.
"""

from __future__ import annotations

import contextlib
from typing import Any

from livepro.engines.translate.backend import Backend
from livepro.engines.translate.memory import HELD_OFF, check_result, run_to_trap
from livepro.errors import LiveproError
from livepro.linux import ptrace
from livepro.linux.wait import stop_event
from livepro.tracee import TracedProcess
from livepro.tracee.lending import lent
from livepro.tracee.seccomp import unfiltered
from livepro.tracee.stops import next_stop

_ALL = 0xFFFF_FFFF_FFFF_FFFF


def find_gadget(process: TracedProcess, instruction: bytes) -> int:
    """The address of a system call `instruction` in a program's code. Raises LiveproError."""
    mappings = [m for m in process.space.mappings if m.executable and m.readable]
    for mapping in sorted(mappings, key=lambda m: (m.path != "[vdso]", "libc" not in m.path)):
        if mapping.stable_code and mapping.path != "[vsyscall]":
            code = process.memory.read(mapping.start, mapping.end - mapping.start)
            at = code.find(instruction)
            if at >= 0:
                return mapping.start + at
    raise LiveproError(
        "There is no system call instruction in the program's code, through which memory could be mapped.",
        "Use `--engine block` or `--engine step`.",
    )


class SteppedCalls:
    """Makes system calls as thread `tid` of a process, which is stopped.

    `layout` names the registers; `gadget` is where a system call instruction stands.
    """

    def __init__(self, process: TracedProcess, tid: int, layout: Any, backend: Backend, gadget: int) -> None:
        self.tid = tid
        self._process = process
        self._layout = layout
        self._backend = backend
        self._gadget = gadget

    def call(self, number: int, *arguments: int) -> int:
        """Make one system call; returns its result. The thread is then in the stop of a step.
        Raises OSError when the call fails, ProcessLookupError when the thread is gone, LiveproError
        when its process may not be made to call."""
        with unfiltered(self.tid, self._process):
            return self._call(number, *arguments)

    def _call(self, number: int, *arguments: int) -> int:
        tid, layout = self.tid, self._layout
        interrupted = False
        try:
            with lent(self._process, tid, layout.structure, HELD_OFF) as registers:
                setattr(registers, layout.pc, self._gadget)
                setattr(registers, layout.syscall_number, number)
                for name, value in zip(layout.syscall_arguments, arguments, strict=False):
                    setattr(registers, name, value & _ALL)
                self._backend.forget_call(registers)
                ptrace.set_registers(tid, registers)
                while True:
                    interrupted |= run_to_trap(ptrace.PTRACE_SINGLESTEP, tid)
                    after = ptrace.get_registers(tid, layout.structure)
                    if getattr(after, layout.pc) != self._gadget:
                        break
                result = int(getattr(after, layout.syscall_result))
        finally:
            if interrupted:
                with contextlib.suppress(ProcessLookupError):
                    ptrace.call(ptrace.PTRACE_INTERRUPT, tid)  # again: that stop was somebody's
        return check_result(result, number, tid)


def stop_anew(tid: int) -> None:
    """Bring a thread from the stop of a step into one in which nothing is under way (or into
    its process's group stop), without letting it execute anything. Raises OSError."""
    ptrace.call(ptrace.PTRACE_INTERRUPT, tid)
    while True:
        ptrace.call(ptrace.PTRACE_CONT, tid)
        if stop_event(next_stop(tid)) == ptrace.PTRACE_EVENT_STOP:
            return
