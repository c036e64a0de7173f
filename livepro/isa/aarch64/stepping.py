"""What AArch64 single-stepping needs beside the decoder: nothing.

The kernel single-steps with PSTATE.SS and MDSCR_EL1.SS (Arm ARM D2.12), which
no instruction of the program can see, and A64 has no repeat prefix. The memory
copy and set instructions (FEAT_MOPS) are each one instruction that may be
interrupted, like any load.
"""

from __future__ import annotations

from typing import Any

from livepro.isa.base import Quirk, StoppedThread


def rep_count(code: bytes, registers: Any) -> int:
    """Raises ValueError: A64 has no rep-prefixed instruction."""
    raise ValueError(f"{code.hex()} does not repeat: AArch64 has no rep prefix")


def after_step(quirk: Quirk, thread: StoppedThread) -> None:
    """Nothing to put right."""
