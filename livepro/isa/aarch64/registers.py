"""The AArch64 register set as the kernel gives it."""

from __future__ import annotations

import ctypes

from livepro.isa.base import RegisterLayout


class Registers(ctypes.Structure):
    """struct user_pt_regs (arch/arm64/include/uapi/asm/ptrace.h), the NT_PRSTATUS set.

    The kernel's `regs[31]` is spread out as x0 to x30; x29 is the frame
    pointer and x30 the link register.
    """

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in (*(f"x{n}" for n in range(31)), "sp", "pc", "pstate")
    )


LAYOUT = RegisterLayout(
    structure=Registers,
    pc="pc",
    sp="sp",
    syscall_number="x8",
    syscall_arguments=("x0", "x1", "x2", "x3", "x4", "x5"),
    syscall_result="x0",
    pc_user_offset=None,  # PTRACE_PEEKUSER does not exist here; PTRACE_GETREGSET reads NT_PRSTATUS
    shadow_stack=0x410,  # NT_ARM_GCS: include/uapi/linux/elf.h
)
