"""AArch64 system call numbers (include/uapi/asm-generic/unistd.h) that livepro reacts to.

`svc #0` enters the kernel with the number in x8 and the arguments in x0 to x5;
x0 receives the result. The generic table has no fork, vfork or arch_prctl.
"""

from __future__ import annotations

from livepro.isa.base import SyscallTable

TABLE = SyscallTable(
    {
        "exit": 93,
        "exit_group": 94,
        "restart_syscall": 128,
        "sigaltstack": 132,
        "rt_sigaction": 134,
        "rt_sigprocmask": 135,
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
        "execveat": 281,
        "pkey_mprotect": 288,
        "rseq": 293,
        "clone3": 435,
    }
)
