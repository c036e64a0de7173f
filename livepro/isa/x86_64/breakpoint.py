"""The x86-64 breakpoints."""

from __future__ import annotations

from typing import Final

from livepro.isa.base import Breakpoint, HardwareBreakpoint

CODE: Final = b"\xcc"
"""`int3` (SDM vol. 2, INT3): raises SIGTRAP in user mode."""

PC_ADVANCE: Final = 1
"""How far the pc is behind the breakpoint's address when its SIGTRAP is seen:
`int3` is a trap, the pc saved is that of the next byte (SDM vol. 3, 6.15, Interrupt 3).
"""

SI_CODE: Final = 0x80
"""SI_KERNEL: `int3` raises a bare SIGTRAP (do_int3_user, arch/x86/kernel/traps.c)."""

BREAKPOINT: Final = Breakpoint(CODE, PC_ADVANCE, SI_CODE)

_DEBUG_REGISTERS: Final = 848  # offsetof(struct user, u_debugreg), arch/x86/include/asm/user_64.h

HARDWARE_BREAKPOINT: Final = HardwareBreakpoint(
    address_offset=_DEBUG_REGISTERS,  # DR0
    control_offset=_DEBUG_REGISTERS + 7 * 8,  # DR7
    enable=1,  # L0, with R/W0 and LEN0 zero: on execution (SDM vol. 3, 17.2.4)
    si_code=4,  # TRAP_HWBKPT (include/uapi/asm-generic/siginfo.h)
)
"""An instruction breakpoint is a fault: it stops before its instruction (SDM vol. 3, 17.3.1.1)."""
