"""Which process is meant, and may it be attached to? Asked before anything is done to it.

The kernel's own answer to a refused attach is one error number; what stands in the
way is in /proc (proc_pid_status(5), ptrace(2) "Ptrace access mode checking").
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from livepro.errors import LiveproError
from livepro.linux import proc
from livepro.linux.command import check_executable
from livepro.linux.permissions import permissions, status_fields

_SHOWN = 8
"""Processes listed where a name fits several."""


def named(name: str, *, children: bool = False) -> int:
    """The pid of the one process with that name: its command's base name or the name the kernel
    keeps. With `children`, of those with that name the one that all others descend from.
    Raises LiveproError when there is none, or several (with a list)."""
    found = [pid for pid in pids() if pid != os.getpid() and name in _names(pid)]
    own = set(lineage(os.getpid()))
    found = [pid for pid in found if pid not in own] or found
    if children:
        heads = [pid for pid in found if set(lineage(pid)).isdisjoint(set(found) - {pid})]
        found = heads if len(heads) == 1 else found
    if not found:
        raise LiveproError(f"There is no process named '{name}'.", "See `ps -e` for the names there are.")
    if len(found) > 1:
        rows = "; ".join(f"{pid} {_shown(pid)}" for pid in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise LiveproError(
            f"There are {len(found)} processes named '{name}': {rows}{more}.",
            f"Name one by its pid: `livepro attach {found[0]}`.",
        )
    return found[0]


def pids() -> Iterator[int]:
    """All processes that can be seen."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            yield int(entry)


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on, parents first."""
    children: dict[int, list[int]] = {}
    for other in pids():
        children.setdefault(proc.parent(other), []).append(other)
    out: list[int] = []
    waiting = [pid]
    while waiting:
        own = sorted(children.get(waiting.pop(0), ()))
        out += own
        waiting += own
    return out


def lineage(pid: int) -> Iterator[int]:
    """A process, its parent, and so on."""
    while pid > 0:
        yield pid
        pid = proc.parent(pid)


def check(pid: int, machine: str) -> list[str]:
    """Whether process `pid` can be attached to, as far as can be said without trying; returns
    warnings. `machine` is the native one, as `uname -m` names it. Raises LiveproError."""
    status = status_fields(Path("/proc", str(pid), "status"))
    if not status:
        raise LiveproError(f"There is no process {pid}.", "See `ps -e` for the processes there are.")
    group = int(status["Tgid"])
    if group != pid:
        raise LiveproError(
            f"{pid} is a thread of process {group}.", f"Attach to all of it: `livepro attach {group}`."
        )
    name = status.get("Name", "")
    if pid == os.getpid() or (pid in lineage(os.getpid()) and _is_livepro(pid)):
        raise LiveproError(f"Process {pid} is livepro itself.", "Name the process that is to be measured.")
    if status["State"].startswith(("Z", "X")) and not _other_threads(pid):
        raise LiveproError(
            f"Process {pid} ({name}) has ended: it is a zombie, for which its parent ({status['PPid']}) "
            "has yet to wait.",
            "There is nothing left to measure.",
        )
    if status["State"].startswith(("Z", "X")):
        raise LiveproError(
            f"The first thread of process {pid} ({name}) has ended: the kernel shows nothing of the "
            "memory that its other threads use.",
            "Such a process can be measured from its beginning: `livepro run`.",
        )
    if status.get("Kthread") == "1" or ("VmSize" not in status and not proc.command_line(pid) and pid != 1):
        raise LiveproError(
            f"{pid} ({name}) is a thread of the kernel's.",
            "livepro measures programs; try `perf` for the kernel.",
        )
    tracer = int(status.get("TracerPid", "0"))
    if tracer:
        raise LiveproError(
            f"Process {pid} ({name}) is traced already, by {tracer} ({_shown(tracer)}).",
            "A process can have one tracer only: end that one first.",
        )
    own = permissions()
    if not own.sys_ptrace:
        user = int(status["Uid"].split()[0])
        if user != os.getuid():
            raise LiveproError(
                f"Process {pid} ({name}) belongs to another user, {_user(user)}.",
                f"Attach as that user or as root: `sudo livepro attach {pid}`.",
            )
        if own.yama:
            raise LiveproError(
                f"Attaching to process {pid} ({name}) is not permitted: kernel.yama.ptrace_scope is "
                f"{own.yama_text}.",
                f"Run `sudo livepro attach {pid}`, or allow it until the next boot: "
                "`sudo sysctl kernel.yama.ptrace_scope=0`."
                if own.yama < 3
                else "Set it to 1 or 0 in /etc/sysctl.d and restart the machine.",
            )
    return check_executable(f"/proc/{pid}/exe", machine)


def refusal(pid: int, error: OSError) -> LiveproError:
    """What to say when the kernel refuses all the same."""
    own = permissions()
    name = proc.thread_name(pid)
    if not own.sys_ptrace:
        return LiveproError(
            f"The kernel does not let you trace process {pid} ({name}): {os.strerror(error.errno or 0)}. "
            "It may be a program with privileges, or one that forbids it (prctl PR_SET_DUMPABLE).",
            f"Try `sudo livepro attach {pid}`.",
        )
    return LiveproError(
        f"The kernel refuses to let process {pid} ({name}) be traced: {os.strerror(error.errno or 0)}.",
        own.remedy(),
    )


def _names(pid: int) -> set[str]:
    command = proc.command_line(pid)
    names = {proc.thread_name(pid)}
    if command:
        names.add(os.path.basename(command[0]))
    return names


def _is_livepro(pid: int) -> bool:
    """Whether an ancestor is of livepro: by its name, or since this process is a fork of it (`front`)."""
    return "livepro" in _names(pid) or proc.command_line(pid) == proc.command_line(os.getpid())


def _shown(pid: int) -> str:
    command = " ".join(proc.command_line(pid)) or proc.thread_name(pid)
    return command if len(command) <= 60 else command[:57] + "..."


def _user(uid: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"uid {uid}"


def _other_threads(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    return False
