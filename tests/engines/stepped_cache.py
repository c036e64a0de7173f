"""Steps a program through the code cache, one emitted instruction after the other, and looks at each.

The translate engine runs as ever, but for this: where it lets a thread go on in the cache, the thread is
stepped there, and the test sees each address and all registers before the next step. So every
emitted sequence that the program goes through is seen at each of its instructions, not by chance.
"""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engines.allowing import allow_always
from events.streams import Nobody

from livepro.engines.base import EngineOptions
from livepro.engines.stream.filtering import Filter, Lines
from livepro.engines.stream.recorder import Recorder
from livepro.engines.translate.engine import TranslateEngine
from livepro.engines.translate.thread import Mode
from livepro.isa import for_machine
from livepro.isa.base import Quirk
from livepro.linux import ptrace
from livepro.linux.wait import WALL, is_stop, stop_event, stop_signal
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.launch import launch

ISA = for_machine(platform.machine())
_PC = ISA.registers.pc
_OPTIONS = ptrace.PTRACE_O_EXITKILL | ptrace.PTRACE_O_TRACEEXEC

_HANDLER_ENTERED = signal.SIGTRAP  # si_code of ptrace_notify in signal_setup_done (kernel/signal.c)

Look = Callable[[Any, Any], None]
"""Given a translated thread's state and its registers before the next step."""


def _put_right(thread: TracedThread, pc: int, code: bytes) -> None:
    """Take out what the step over the instruction `code` at `pc` has left visible."""
    quirk = ISA.decode_block(code, pc).quirks[0]
    if quirk in (Quirk.SYSCALL, Quirk.PUSH_FLAGS):
        ISA.after_step(quirk, thread)


def native_trace(program: Path, *arguments: str) -> list[tuple[int, bytes, int]]:
    """Before each step of a program, natively: the program counter, all registers, and how many instructions
    have been executed (a `rep` instruction is one, though each of its iterations is a step)."""
    command = [str(program), *arguments]
    pid, status = launch(command[0], command, ENVIRONMENT, aslr=False, options=_OPTIONS)
    assert is_stop(status)
    process = TracedProcess(pid, os.getpid(), 0, tuple(command), _OPTIONS)
    thread = TracedThread(pid, process, ISA.registers)
    trace: list[tuple[int, bytes, int]] = []
    retired = 0
    ptrace.call(ptrace.PTRACE_SINGLESTEP, pid)  # out of the exec
    number = 0
    while True:
        status = os.waitpid(pid, WALL)[1]
        if not is_stop(status):
            return trace
        number = 0 if stop_event(status) else stop_signal(status)
        stepped = False
        if number == signal.SIGTRAP:
            info = ptrace.signal_info(pid)
            stepped = info is not None and info.code != _HANDLER_ENTERED
            number = 0
        registers = thread.registers()
        if trace:
            code = thread.read(trace[-1][0], ISA.max_instruction)
            _put_right(thread, trace[-1][0], code)
            registers = thread.registers()
            iterates = ISA.decode_block(code, trace[-1][0]).reps[0]
            retired += stepped and not (iterates and getattr(registers, _PC) == trace[-1][0])
        pc = getattr(registers, _PC)
        trace.append((pc, content(registers, thread.read(pc, ISA.max_instruction)), retired))
        ptrace.call(ptrace.PTRACE_SINGLESTEP, pid, 0, number)


ENVIRONMENT = {b"LC_ALL": b"C"}
X86_64 = platform.machine() == "x86_64"
SYSCALL_X86 = b"\x0f\x05"


def content(registers: Any, code: bytes) -> bytes:
    """All registers that matter to the program, which is about to execute `code` (not the segment base of
    the area, nor the call it is in; nor what a system call is about to overwrite).

    Arithmetic flags are left out: a counter may overwrite them where they are dead. Were one alive, the
    program would go elsewhere than natively.
    """
    kept = type(registers).from_buffer_copy(registers)
    for name in ("gs_base", "orig_rax"):
        if hasattr(kept, name):
            setattr(kept, name, 0)
    if hasattr(kept, "eflags"):
        kept.eflags &= ~0x109D5  # with RF and TF, the stepping's own: SDM vol. 1, 3.4.3
    if hasattr(kept, "pstate"):
        kept.pstate &= 0xF000_0000  # N, Z, C, V; the others are the kernel's: Arm ARM, C5.2.19
    if X86_64 and code[:2] == SYSCALL_X86:
        kept.rcx = 0  # SDM vol. 2, SYSCALL
    return bytes(kept)


class SteppedEngine(TranslateEngine):
    """A translate engine whose threads are stepped in the cache."""

    look: Look
    own = False
    """Whether the engine goes on as ever from now on."""

    def step_on(self, tid: int, request: int) -> None:
        """Step a thread in the cache until it leaves it, or stops for another reason."""
        state = self.table.states[tid]
        thread = state.thread
        while True:
            registers = thread.registers()
            pc = getattr(registers, _PC)
            if not state.space.memory.holds(pc):
                break
            self.look(state, registers)
            if self.own:
                ptrace.call(request, tid)
                return
            code = thread.read(pc, ISA.max_instruction)
            if ptrace.raw(ptrace.PTRACE_SINGLESTEP, tid, None, None) == -1:
                return
            _, status = os.waitpid(tid, WALL)
            info = None
            if is_stop(status) and not stop_event(status) and stop_signal(status) == signal.SIGTRAP:
                info = ptrace.signal_info(tid)
            if info is None or not self.backend.stepped(info):
                self.stops.behind.append((tid, status))
                return
            _put_right(thread, pc, code)
        self.stops.behind.append((tid, signal.SIGTRAP << 8 | 0x7F))


@contextmanager
def stepping(engine: SteppedEngine) -> Any:
    """Meanwhile threads that the engine lets run in the cache are stepped."""
    raw, call = ptrace.raw, ptrace.call

    def in_cache(tid: int) -> bool:
        state = engine.table.states.get(tid)
        if engine.own or state is None or state.mode is not Mode.RUNNING:
            return False
        with suppress(OSError):
            pc, memory = engine.pc.of(tid), state.space.memory
            return bool(memory.holds(pc)) and pc != memory.gadget  # (a call that livepro has it make)
        return False

    def stepped_raw(request: int, tid: int, address: Any, data: Any) -> int:
        if request == ptrace.PTRACE_CONT and not data and in_cache(tid):
            engine.step_on(tid, request)
            return 0
        return raw(request, tid, address, data)

    def stepped_call(request: int, tid: int, address: int = 0, data: int = 0) -> None:
        if request == ptrace.PTRACE_CONT and not data and in_cache(tid):
            engine.step_on(tid, request)
        else:
            call(request, tid, address, data)

    ptrace.raw, ptrace.call = stepped_raw, stepped_call  # type: ignore[assignment]
    try:
        yield
    finally:
        ptrace.raw, ptrace.call = raw, call


def run_stepped(look: Look, command: list[str], **options: Any) -> SteppedEngine:
    """Run a command so; returns the engine when the program has ended, or been let go. An error that is
    raised as a thread is looked at is one of livepro's own. `recorded`: with the event stream, whose chunks
    are full again and again, `filtered`: with what misses in small caches."""
    if options.pop("allowing", False):
        allow_always()
    if options.pop("recorded", False):
        options["stream"] = Recorder(Nobody(), chunk_words=12)
    if options.pop("filtered", False):
        options["stream"] = Recorder(Nobody(), chunk_words=12)
        options["stream"].filter = Filter(Lines(64, 2, 3), Lines(64, 64, 1))
    engine = SteppedEngine(ISA, EngineOptions(**options))
    engine.look = look
    with stepping(engine):
        try:
            engine.launch(command[0], command, ENVIRONMENT, aslr=False)
            engine.run()
        except Injected:
            engine.own = True
            engine.rescue()
    engine.tracer.wait_for_root()
    return engine


class Injected(Exception):
    """An error of livepro's own."""
