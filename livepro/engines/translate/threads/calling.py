"""System calls made as a stopped thread of the program, whose signals wait meanwhile.

In a program that was attached to, the call is a single step over a system call instruction that is there
anyway, in the vDSO or a library: nothing of the program's is written to. One that livepro has started
has an instruction of livepro's own for it.
"""

from __future__ import annotations

import contextlib
from typing import Any

from livepro.engines.translate.memory import (
    BELOW_RED_ZONE,
    HELD_OFF,
    Sharing,
    check_result,
    run_to_trap,
    send_again,
)
from livepro.engines.translate.translator.backend import Backend
from livepro.errors import LiveproError
from livepro.isa.access import ALL_64
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.linux.wait import stop_event
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.lending import lent
from livepro.tracee.seccomp import unfiltered
from livepro.tracee.stops import next_stop


def find_gadget(process: TracedProcess, instruction: bytes) -> int:
    """The address of a system call `instruction` in a program's code. Raises LiveproError if there is none,
    ProcessLookupError if there is no code either: the process has ended, or begun another image."""
    readable = False
    mappings = [m for m in process.space.mappings if m.executable and m.readable]
    for mapping in sorted(mappings, key=lambda m: (m.path != "[vdso]", "libc" not in m.path)):
        if mapping.stable_code and mapping.path != "[vsyscall]":
            code = process.memory.read(mapping.start, mapping.end - mapping.start)
            readable |= bool(code)
            at = code.find(instruction)
            if at >= 0:
                return mapping.start + at
    if not readable:
        raise ProcessLookupError(f"process {process.pid} has no code any more")
    raise LiveproError(
        "There is no system call instruction in the program's code, through which memory could be mapped.",
        "Use `--engine block` or `--engine step`.",
    )


class StoppedThreadCalls:
    """Makes system calls as thread `tid` of a process, which is stopped.

    `gadget` is where a system call instruction stands.
    """

    def __init__(self, process: TracedProcess, tid: int, isa: Isa, backend: Backend, gadget: int) -> None:
        self.tid = tid
        self._process = process
        self._layout = isa.registers
        self._telling = isa.syscalls.numbers["tgkill"]
        self._backend = backend
        self._gadget = gadget
        self._interrupted = False
        self._traps: list[ptrace.SignalInfo] = []

    def call(self, number: int, *arguments: int) -> int:
        """Make one system call; returns its result. The thread is then in the stop of a trap.
        Raises OSError when the call fails, ProcessLookupError when the thread is gone, LiveproError
        when its process may not be made to call."""
        with unfiltered(self.tid, self._process):
            return self._call(number, *arguments)

    def _call(self, number: int, *arguments: int) -> int:
        tid, layout = self.tid, self._layout
        self._interrupted = False
        try:
            with lent(self._process, tid, layout.structure, HELD_OFF) as registers:
                setattr(registers, layout.pc, self._gadget)
                setattr(registers, layout.syscall_number, number)
                for name, value in zip(layout.syscall_arguments, arguments, strict=False):
                    setattr(registers, name, value & ALL_64)
                self._backend.forget_call(registers)
                ptrace.set_registers(tid, registers)
                result = int(getattr(self._carry_out(), layout.syscall_result))
        finally:
            if self._interrupted:
                with contextlib.suppress(ProcessLookupError):
                    ptrace.call(ptrace.PTRACE_INTERRUPT, tid)  # again: that stop was somebody's
            traps, self._traps = self._traps, []
            send_again(self._telling, self._process.pid, tid, traps)
        return check_result(result, number, tid)

    def _carry_out(self) -> Any:
        """Have the call made; the registers behind it."""
        while True:
            registers = self._run(ptrace.PTRACE_SINGLESTEP)
            if getattr(registers, self._layout.pc) != self._gadget:
                return registers

    def _run(self, request: int) -> Any:
        """Have the thread run by a ptrace `request` until it traps; its registers then."""
        self._interrupted |= run_to_trap(request, self.tid, self._traps)
        return ptrace.get_registers(self.tid, self._layout.structure)


class GadgetCalls(StoppedThreadCalls):
    """The same through livepro's own gadget: a system call instruction that a breakpoint follows."""

    def _carry_out(self) -> Any:
        return self._run(ptrace.PTRACE_CONT)


class TargetCalls:
    """Means to make system calls in the processes of a run, whichever way they came to be traced."""

    def __init__(self, isa: Isa, backend: Backend) -> None:
        self._isa = isa
        self._backend = backend
        self._gadgets: dict[TracedProcess, int] = {}

    def look_ahead(self, process: TracedProcess) -> None:
        """Look for a system call instruction in a process that is about to be attached to. Raises
        LiveproError if there is none, ProcessLookupError if the process is gone."""
        self._gadgets[process] = find_gadget(process, self._backend.system_call)

    def by(self, process: TracedProcess, tid: int) -> StoppedThreadCalls:
        """Means to make system calls as a stopped thread of a process, which is in its own code."""
        if process not in self._gadgets:
            self.look_ahead(process)
        return StoppedThreadCalls(process, tid, self._isa, self._backend, self._gadgets[process])

    def sharing(self, thread: TracedThread, gadget: int) -> Sharing:
        """Means to map more of livepro's memory, through a stopped thread; `gadget` is where there is a
        system call instruction that threads which were not attached to may be led to."""
        process, numbers = thread.process, self._isa.syscalls.numbers
        calls, scratch = self.inside(thread, gadget), 0
        if not process.attached:
            scratch = getattr(thread.registers(), self._isa.registers.sp) - BELOW_RED_ZONE
        return Sharing(calls, process.memory, numbers, scratch)

    def inside(self, thread: TracedThread, gadget: int) -> StoppedThreadCalls:
        """Means to make system calls as a stopped thread, wherever it is: through an instruction of the
        program's own if it was attached to, else through livepro's `gadget`."""
        if thread.process.attached:
            return self.by(thread.process, thread.tid)
        return self.through(thread, gadget)

    def through(self, thread: TracedThread, gadget: int) -> GadgetCalls:
        """Means to make system calls as a stopped thread, through livepro's gadget in its process."""
        return GadgetCalls(thread.process, thread.tid, self._isa, self._backend, gadget)


def is_event(info: ptrace.SignalInfo) -> bool:
    """Whether a stop is a ptrace event's, by its siginfo: the event is in si_code's second byte."""
    return bool(info.code >> 8)


def stop_anew(tid: int) -> None:
    """Bring a thread from the stop of a step into one in which nothing is under way (or into
    its process's group stop), without letting it execute anything. Raises OSError."""
    ptrace.call(ptrace.PTRACE_INTERRUPT, tid)
    while True:
        ptrace.call(ptrace.PTRACE_CONT, tid)
        if stop_event(next_stop(tid)) == ptrace.PTRACE_EVENT_STOP:
            return
