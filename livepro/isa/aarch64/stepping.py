"""What AArch64 single-stepping needs beside the decoder.

The kernel single-steps with PSTATE.SS and MDSCR_EL1.SS (Arm ARM D2.12), which
no instruction of the program can see, and A64 has no repeat prefix. The memory
copy and set instructions (FEAT_MOPS) are each one instruction that may be
interrupted, like any load.

SVC clears PSTATE.SS, and the next thing to be executed would trap before it is
(D2.12.2, "active-pending"): a second stop for one step. Setting the registers
makes the kernel set the bit again (user_regs_reset_single_step,
arch/arm64/kernel/debug-monitors.c).
"""

from __future__ import annotations

from typing import Any

from livepro.isa.base import Quirk, StoppedThread

CALL_TRAP = 0
"""SI_USER (user_single_step_report, include/linux/ptrace.h)."""

_SINGLE_STEP = 1 << 21  # SPSR_EL1.SS


def rep_count(code: bytes, registers: Any) -> int:
    """Raises ValueError: A64 has no rep-prefixed instruction."""
    raise ValueError(f"{code.hex()} does not repeat: AArch64 has no rep prefix")


def call_entered(registers: Any) -> bool:
    """Whether PSTATE.SS is clear: do_signal (arch/arm64/kernel/signal.c) puts the pc of a system
    call that is to be restarted back before it reports a stop."""
    return not registers.pstate & _SINGLE_STEP


def after_step(quirk: Quirk, thread: StoppedThread) -> None:
    """Let the next step execute an instruction."""
    if quirk is Quirk.SYSCALL:
        thread.set_registers(thread.registers())


def stop_stepping(registers: Any) -> bool:
    """Nothing to take out: PSTATE.SS does not show."""
    return False
