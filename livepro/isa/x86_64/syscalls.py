"""x86-64 system call numbers (arch/x86/entry/syscalls/syscall_64.tbl) that livepro reacts to."""

from __future__ import annotations

from typing import Any

from livepro.isa.base import SyscallTable

_ARCH_SHSTK_ENABLE = 0x5001  # arch/x86/include/uapi/asm/prctl.h
_ARCH_SHSTK_SHSTK = 1

TABLE = SyscallTable(
    {
        "close": 3,
        "mmap": 9,
        "mprotect": 10,
        "munmap": 11,
        "brk": 12,
        "rt_sigaction": 13,
        "rt_sigprocmask": 14,
        "rt_sigreturn": 15,
        "mremap": 25,
        "shmat": 30,
        "clone": 56,
        "fork": 57,
        "vfork": 58,
        "execve": 59,
        "exit": 60,
        "shmdt": 67,
        "sigaltstack": 131,
        "arch_prctl": 158,
        "remap_file_pages": 216,
        "restart_syscall": 219,
        "exit_group": 231,
        "kcmp": 312,
        "memfd_create": 319,
        "execveat": 322,
        "pkey_mprotect": 329,
        "rseq": 334,
        "clone3": 435,
    }
)


def guards_returns(registers: Any) -> bool:
    """Whether arch_prctl is to enable the shadow stack (Documentation/arch/x86/shstk.rst)."""
    return (registers.rax, registers.rdi) == (
        TABLE.numbers["arch_prctl"],
        _ARCH_SHSTK_ENABLE,
    ) and bool(registers.rsi & _ARCH_SHSTK_SHSTK)
