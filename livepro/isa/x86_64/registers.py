"""The x86-64 register set as the kernel gives it."""

from __future__ import annotations

import ctypes

from livepro.isa.base import RegisterLayout


class Registers(ctypes.Structure):
    """struct user_regs_struct (arch/x86/include/asm/user_64.h), the NT_PRSTATUS set."""

    _fields_ = tuple(
        (name, ctypes.c_ulong)
        for name in (
            *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8"),
            *("rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags"),
            *("rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
        )
    )


LAYOUT = RegisterLayout(
    structure=Registers,
    pc="rip",
    sp="rsp",
    syscall_number="rax",
    syscall_arguments=("rdi", "rsi", "rdx", "r10", "r8", "r9"),
    syscall_result="rax",
    pc_user_offset=Registers.rip.offset,
    shadow_stack=0x204,  # NT_X86_SHSTK: include/uapi/linux/elf.h
)
