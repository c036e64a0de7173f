"""What stands between livepro and ptrace: capabilities, Yama, seccomp.

Sources: proc_pid_status(5) for the fields of /proc/self/status, the kernel's
Documentation/admin-guide/LSM/Yama.rst for ptrace_scope.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

CAP_SYS_PTRACE = 19  # include/uapi/linux/capability.h

YAMA = {
    0: "0, any process of the same user may be attached to",
    1: "1, only descendants may be traced",
    2: "2, tracing needs CAP_SYS_PTRACE",
    3: "3, attaching is off until the next boot",
}

SECCOMP = {0: "off", 1: "strict", 2: "a filter is installed"}


class Permissions(NamedTuple):
    """`yama` is kernel.yama.ptrace_scope (None where the kernel has no Yama),
    `sys_ptrace` whether CAP_SYS_PTRACE is effective, `seccomp` the mode (0 off,
    1 strict, 2 filter), `tracer` the pid that traces this process (0: none)."""

    yama: int | None
    sys_ptrace: bool
    seccomp: int
    tracer: int

    @property
    def yama_text(self) -> str:
        """Yama's setting in words."""
        return "not in this kernel" if self.yama is None else YAMA.get(self.yama, str(self.yama))

    @property
    def seccomp_text(self) -> str:
        """Seccomp's state in words."""
        return SECCOMP.get(self.seccomp, str(self.seccomp))

    def remedy(self) -> str:
        """What to do when tracing a child of one's own is refused, by the likeliest reason."""
        if self.yama == 3:
            return (
                "Yama's ptrace_scope is 3, which allows no tracing until the next boot: "
                "set it to 1 or 0 in /etc/sysctl.d and restart the machine."
            )
        if self.yama == 2 and not self.sys_ptrace:
            return (
                "Yama's ptrace_scope is 2: run livepro as root, or run "
                "`sysctl kernel.yama.ptrace_scope=1` as root."
            )
        if self.seccomp:
            return (
                "A seccomp filter is installed, probably a container's: start the container with "
                "`--cap-add=SYS_PTRACE` or `--security-opt seccomp=unconfined`."
            )
        return (
            "A security module may forbid it: look for ptrace in the kernel log (`dmesg`) and "
            "in the policies of SELinux or AppArmor."
        )


def permissions(proc: Path = Path("/proc")) -> Permissions:
    """Read this process's permissions from /proc; what cannot be read counts as absent."""
    status = status_fields(proc / "self/status")
    return Permissions(
        yama=yama_scope(proc),
        sys_ptrace=bool(int(status.get("CapEff", "0"), 16) >> CAP_SYS_PTRACE & 1),
        seccomp=int(status.get("Seccomp", "0")),
        tracer=int(status.get("TracerPid", "0")),
    )


def yama_scope(proc: Path = Path("/proc")) -> int | None:
    """kernel.yama.ptrace_scope, or None where the kernel has no Yama."""
    try:
        return int((proc / "sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


def status_fields(path: Path) -> dict[str, str]:
    """The `Name:\\tvalue` lines of a /proc status file; empty if it cannot be read."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
