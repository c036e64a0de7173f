"""AArch64 system call numbers (include/uapi/asm-generic/unistd.h) that livepro reacts to.

`svc #0` enters the kernel with the number in x8 and the arguments in x0 to x5;
x0 receives the result. The generic table has no fork, vfork or arch_prctl.
"""

from __future__ import annotations

from typing import Any

from livepro.isa.base import SyscallTable

_PR_SET_SHADOW_STACK_STATUS = 75  # include/uapi/linux/prctl.h
_PR_SHADOW_STACK_ENABLE = 1

TABLE = SyscallTable(
    {
        "epoll_pwait": 22,
        "close": 57,
        "pselect6": 72,
        "ppoll": 73,
        "readlinkat": 78,
        "exit": 93,
        "exit_group": 94,
        "ptrace": 117,
        "restart_syscall": 128,
        "sigaltstack": 132,
        "tgkill": 131,
        "rt_sigsuspend": 133,
        "rt_sigaction": 134,
        "rt_sigprocmask": 135,
        "rt_sigpending": 136,
        "rt_sigtimedwait": 137,
        "rt_sigreturn": 139,
        "shmat": 196,
        "shmdt": 197,
        "brk": 214,
        "munmap": 215,
        "mremap": 216,
        "clone": 220,
        "execve": 221,
        "mmap": 222,
        "mprotect": 226,
        "remap_file_pages": 234,
        "kcmp": 272,
        "memfd_create": 279,
        "userfaultfd": 282,
        "madvise": 233,
        "execveat": 281,
        "pkey_mprotect": 288,
        "prctl": 167,
        "io_pgetevents": 292,
        "rseq": 293,
        "io_uring_enter": 426,
        "clone3": 435,
        "epoll_pwait2": 441,
    }
)


def guards_returns(registers: Any) -> bool:
    """Whether prctl is to enable the guarded control stack (Documentation/arch/arm64/gcs.rst)."""
    return (registers.x8, registers.x0) == (
        TABLE.numbers["prctl"],
        _PR_SET_SHADOW_STACK_STATUS,
    ) and bool(registers.x1 & _PR_SHADOW_STACK_ENABLE)


def rewind_call(registers: Any) -> bool:
    """Never seen: the kernel rewinds such a thread to its `svc` before it stops
    (arch/arm64/kernel/signal.c, do_signal)."""
    return False


def restart_call(registers: Any) -> bool:
    """Not possible: x0, which had the first argument, is overwritten by the result."""
    return False
