"""What x86-64 single-stepping needs beside the decoder.

The kernel single-steps by setting the trap flag. The processor hands the flags
to the program in two places while it is set: `pushf` stores them, and
`syscall` copies them to r11. The kernel hides its trap flag in signal frames,
not in these.
"""

from __future__ import annotations

from typing import Any

from livepro.isa.base import Quirk, StoppedThread

CALL_TRAP = 1
"""TRAP_BRKPT (user_single_step_report, arch/x86/kernel/ptrace.c)."""

_TRAP_FLAG = 0x100  # EFLAGS.TF, bit 8 (SDM vol. 1, 3.4.3.3)
_ADDRESS_SIZE_PREFIX = 0x67
_LEGACY_PREFIXES = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3))


def rep_count(code: bytes, registers: Any) -> int:
    """Iterations a rep-prefixed instruction has before it: rcx, or ecx under an
    address-size prefix (SDM vol. 2, REP)."""
    for byte in code:
        if byte == _ADDRESS_SIZE_PREFIX:
            return int(registers.rcx) & 0xFFFF_FFFF
        if byte not in _LEGACY_PREFIXES:
            break
    return int(registers.rcx)


def call_entered(registers: Any) -> bool:
    """Never: the pc is put back when the program goes on, not before."""
    return False


def after_step(quirk: Quirk, thread: StoppedThread) -> None:
    """Clear the tracer's trap flag where the program could see it.

    A program that sets the flag itself gets SIGTRAP after its next
    instruction, and then reads flags without it; so a flag seen here is ours.
    """
    if quirk is Quirk.SYSCALL:
        registers = thread.registers()
        if registers.r11 & _TRAP_FLAG:
            registers.r11 &= ~_TRAP_FLAG
            thread.set_registers(registers)
    elif quirk is Quirk.PUSH_FLAGS:
        # Both pushf and pushfq keep bit 8 in the second byte stored.
        at = thread.registers().rsp + 1
        high = thread.read(at, 1)[0]
        if high & _TRAP_FLAG >> 8:
            thread.write(at, bytes((high & ~(_TRAP_FLAG >> 8),)))


def stop_stepping(registers: Any) -> bool:
    """The trap flag: the kernel takes its own for the program's after `popf`, and shows it then."""
    if not registers.eflags & _TRAP_FLAG:
        return False
    registers.eflags &= ~_TRAP_FLAG
    return True
