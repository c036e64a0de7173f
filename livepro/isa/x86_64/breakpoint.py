"""The x86-64 software breakpoint."""

from __future__ import annotations

from typing import Final

from livepro.isa.base import Breakpoint

CODE: Final = b"\xcc"
"""`int3` (SDM vol. 2, INT3): raises SIGTRAP in user mode."""

PC_ADVANCE: Final = 1
"""How far the pc is behind the breakpoint's address when its SIGTRAP is seen:
`int3` is a trap, the pc saved is that of the next byte (SDM vol. 3, 6.15, Interrupt 3).
"""

SI_CODE: Final = 0x80
"""SI_KERNEL: `int3` raises a bare SIGTRAP (do_int3_user, arch/x86/kernel/traps.c)."""

BREAKPOINT: Final = Breakpoint(CODE, PC_ADVANCE, SI_CODE)
