"""Counts what livepro does while it is attached, and makes one of it fail.

Python's profiler is told of every call and return; an exception that it raises is raised by the function
called (or that returns). So nothing of livepro is replaced, and nothing missed that is written in Python.
Of C functions those that ptrace and process_vm_writev are called through are replaced before anybody has
bound them: they fail as the kernel has them fail, by -1 and errno.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from injection.faults import ERRORS, Fault, Point, exception
from livepro.linux import ptrace

ROOT = Path(__file__).resolve().parents[2]
WATCHED = ("livepro/engines/", "livepro/tracee/", "livepro/linux/")
BUILT_IN = {"pwrite", "pread", "waitpid", "memfd_create", "ftruncate", "open", "readlink", "kill", "listdir"}
"""Functions of Python's own that make a system call, followed where livepro calls them itself."""
REQUESTS = {
    value: name
    for name, value in vars(ptrace).items()
    if name.startswith("PTRACE_")
    and not name.startswith(("PTRACE_O_", "PTRACE_EVENT_"))
    and isinstance(value, int)
} | {0x4200: "PTRACE_SETOPTIONS"}


class Hook:
    """What is done in the tracer: with a fault it is made, without one all points are counted.

    Begins with the attachment (`Attachment.watch`) and knows the phase from what that knows.
    """

    def __init__(self, fault: Fault | None = None) -> None:
        self.fault = fault
        self.fired = False
        self.counted: Counter[Point] = Counter()
        self._left = fault.number if fault is not None else 0
        self._attachment: Any = None
        self._names: dict[CodeType, str | None] = {}

    def install(self) -> None:
        """From now on, in this thread and those to come."""
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)

    @property
    def phase(self) -> str | None:
        """One of `PHASES`; None before there is an attachment."""
        attachment = self._attachment
        if attachment is None:
            return None
        if attachment._ended is not None or attachment.engine.leaving:
            return "detach"
        return "run" if attachment._began is not None else "attach"

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        """Python's profiler (`sys.setprofile`)."""
        code = frame.f_code
        try:
            name = self._names[code]
        except KeyError:
            name = self._names[code] = self._name(code)
        if name is None:
            return
        if event == "c_call":
            if argument.__name__ not in BUILT_IN:
                return
            name += f" -> {argument.__name__}"
            event = "call"
        elif event not in ("call", "return"):
            return
        if name == "watch":
            if event == "call":
                self._attachment = frame.f_locals["self"]
            return
        self.passes(name, event)

    def passes(self, name: str, moment: str, library: bool = False) -> str | None:
        """Something is done now. Raises what is to be raised; returns the kind of fault that a C function
        called through `library` must have."""
        phase = self.phase
        if phase is None:
            return None
        fault = self.fault
        if fault is None:
            if moment == "call":
                self.counted[Point(name, phase)] += 1
            return None
        point = fault.point
        if name != point.name or moment != fault.moment or phase != point.phase or self.fired:
            return None
        self._left -= 1
        if self._left:
            return None
        self.fired = True
        os.write(2, f"[injected: {fault}]\n".encode())
        if fault.kind == "KILL":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault.kind == "KILL-FRONT":
            os.kill(os.getppid(), signal.SIGKILL)
        elif library:
            return fault.kind
        elif fault.kind in ERRORS:
            raise exception(fault.kind, name)
        return None

    def _name(self, code: CodeType) -> str | None:
        path = code.co_filename
        if not path.startswith(f"{ROOT}/livepro/"):
            return None
        path = path[len(f"{ROOT}/") :]
        if path == "livepro/attachment.py" and code.co_name == "watch":
            return "watch"
        if not path.startswith(WATCHED):
            return None
        return f"{path[len('livepro/') : -len('.py')].replace('/', '.')}:{code.co_qualname}"


class Library:
    """C functions that livepro calls through ctypes, which fail when the hook says so."""

    def __init__(self) -> None:
        self.hook: Hook | None = None

    def replace(self) -> None:
        """Put them in the place of the real ones. Before any module has bound those."""
        assert "livepro.engines.base" not in sys.modules
        ptrace.raw = self._ptrace(ptrace.raw)
        ptrace.lean = self._ptrace(ptrace.lean)
        from livepro.linux import vm

        vm._writev = self._other("writev", vm._writev)
        vm._readv = self._other("readv", vm._readv)

    def _ptrace(self, real: Callable[..., int]) -> Callable[..., int]:
        def replaced(request: int, *arguments: Any) -> int:
            hook = self.hook
            if hook is not None:
                kind = hook.passes(f"ptrace {REQUESTS.get(request, request)}", "call", True)
                if kind is not None:
                    return self._failed(kind)
            return real(request, *arguments)

        return replaced

    def _other(self, name: str, real: Callable[..., int]) -> Callable[..., int]:
        def replaced(*arguments: Any) -> int:
            hook = self.hook
            if hook is not None:
                kind = hook.passes(name, "call", True)
                if kind is not None:
                    return self._failed(kind)
            return real(*arguments)

        return replaced

    @staticmethod
    def _failed(kind: str) -> int:
        if not hasattr(errno, kind):
            raise exception(kind, "a C function")
        ctypes.set_errno(getattr(errno, kind))
        return -1
