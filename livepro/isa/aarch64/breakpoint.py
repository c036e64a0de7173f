"""The AArch64 breakpoints."""

from __future__ import annotations

from typing import Final

from livepro.isa.base import Breakpoint

CODE: Final = bytes.fromhex("000020d4")
"""`brk #0` (Arm ARM C6.2, BRK): raises SIGTRAP in user mode."""

PC_ADVANCE: Final = 0
"""How far the pc is behind the breakpoint's address when its SIGTRAP is seen.

The exception's preferred return address is the BRK itself (Arm ARM D1.3,
"Breakpoint instruction exceptions"), so the pc stays; on x86-64 it is 1.
"""

SI_CODE: Final = 1
"""TRAP_BRKPT (send_user_sigtrap, arch/arm64/kernel/debug-monitors.c)."""

BREAKPOINT: Final = Breakpoint(CODE, PC_ADVANCE, SI_CODE)

HARDWARE_BREAKPOINT: Final = None
"""Its debug registers are a register set of their own (NT_ARM_HW_BREAK), and with no rep
instruction to step over there is no use for them."""
