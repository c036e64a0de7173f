"""x86-64 system call numbers (arch/x86/entry/syscalls/syscall_64.tbl) that livepro reacts to."""

from __future__ import annotations

from typing import Any

from livepro.isa.base import RESTARTS, SyscallTable

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
        "ptrace": 101,
        "rt_sigpending": 127,
        "rt_sigtimedwait": 128,
        "rt_sigsuspend": 130,
        "sigaltstack": 131,
        "arch_prctl": 158,
        "remap_file_pages": 216,
        "restart_syscall": 219,
        "exit_group": 231,
        "tgkill": 234,
        "pselect6": 270,
        "ppoll": 271,
        "epoll_pwait": 281,
        "kcmp": 312,
        "readlink": 89,
        "memfd_create": 319,
        "userfaultfd": 323,
        "madvise": 28,
        "execveat": 322,
        "pkey_mprotect": 329,
        "io_pgetevents": 333,
        "rseq": 334,
        "io_uring_enter": 426,
        "clone3": 435,
        "epoll_pwait2": 441,
    }
)

# Calls that fail with EINTR when their thread is made to stop, though no handler runs, and that
# have done nothing by then (signal(7); the socket calls do so under SO_RCVTIMEO and SO_SNDTIMEO).
_GIVE_UP = frozenset(
    (
        *(0, 1, 19, 20),  # read, write, readv, writev
        *(42, 43, 288),  # connect, accept, accept4
        *(44, 45, 46, 47, 299, 307),  # sendto, recvfrom, sendmsg, recvmsg, recvmmsg, sendmmsg
        *(65, 220),  # semop, semtimedop
        *(69, 70),  # msgsnd, msgrcv
        128,  # rt_sigtimedwait
        *(208, 333),  # io_getevents, io_pgetevents
        *(232, 281, 441),  # epoll_wait, epoll_pwait, epoll_pwait2
        *(242, 243),  # mq_timedsend, mq_timedreceive
        426,  # io_uring_enter
    )
)

_NO_CALL = (1 << 64) - 1
_EINTR = (1 << 64) - 4
_ERESTARTNOHAND = (1 << 64) - 514
_ERESTART_RESTARTBLOCK = (1 << 64) - 516


def rewind_call(registers: Any) -> bool:
    """What the kernel does on its way out (arch/x86/kernel/signal.c, arch_do_signal_or_restart)."""
    if registers.orig_rax == _NO_CALL or registers.rax not in RESTARTS:
        return False
    again = registers.rax == _ERESTART_RESTARTBLOCK
    registers.rax = TABLE.numbers["restart_syscall"] if again else registers.orig_rax
    registers.rip -= 2  # the length of `syscall`
    return True


def restart_call(registers: Any) -> bool:
    """Replace EINTR by what the kernel itself uses for calls that only a handler interrupts."""
    if registers.rax != _EINTR or registers.orig_rax not in _GIVE_UP:
        return False
    registers.rax = _ERESTARTNOHAND
    return True


def guards_returns(registers: Any) -> bool:
    """Whether arch_prctl is to enable the shadow stack (Documentation/arch/x86/shstk.rst)."""
    return (registers.rax, registers.rdi) == (
        TABLE.numbers["arch_prctl"],
        _ARCH_SHSTK_ENABLE,
    ) and bool(registers.rsi & _ARCH_SHSTK_SHSTK)
