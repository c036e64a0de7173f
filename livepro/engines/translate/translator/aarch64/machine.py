"""Small facts about AArch64 threads and code that the engine needs.

A thread's area is reached through x18 while it runs from a cache; the program's
own x18 is then kept in the area. There is no spare segment base as on x86-64:
Linux gives user mode TPIDR_EL0 alone, and libraries use it. Of the general
registers x18 is the one that programs mention least: the procedure call
standard (AAPCS64, 6.1.1) leaves it to the platform, so portable run times
(HotSpot, Go, V8) keep off it, whereas x28 is HotSpot's thread, Go's g and a
common callee-saved register. In Debian's libc, libm and libstdc++ 0.2 % of the
instructions mention x18 and 3 % mention x28.
"""

from __future__ import annotations

from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.backend import Words
from livepro.isa.aarch64.registers import Registers
from livepro.isa.base import StoppedThread
from livepro.linux import ptrace

SYSTEM_CALL = encode.pack([encode.SVC])
GADGET = SYSTEM_CALL + encode.pack([encode.BRK])
"""svc #0; brk #0: what calls made inside a process go through."""

SPILL_PAIR = layout.SPILL[0]
"""Two words, for the x0 and x1 that a counter, a comparison or a lookup borrows."""
SPILL_LENT = layout.SPILL[2]
"""A word for the one register that other sequences borrow."""
OWN_BASE = layout.OWN
"""The program's own x18."""

_TRAP_TRACE = 2  # include/uapi/asm-generic/siginfo.h
_SI_USER = 0
# struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo, then a ucontext with the machine
# context at its 176; that begins with the fault address, 31 registers and sp.
_FRAME_PC = 128 + 176 + 8 * (1 + 31 + 1)
_TAG = 0xFF << 56
_AARCH32 = 1 << 4  # SPSR_EL1.M[4]


def lent(mentions: int) -> int:
    """A register to borrow around an instruction that mentions those of a mask."""
    free = ~(mentions | 1 << encode.BASE) & 0x3FFFFFFF
    return (free & -free).bit_length() - 1


def obstacle(registers: Any) -> str:
    """What keeps a thread from being translated, as a clause; empty if nothing does."""
    return "runs 32-bit code" if registers.pstate & _AARCH32 else ""


def forget_call(registers: Any) -> None:
    """Nothing to do: the kernel begins a call again only if the pc is still on it."""


def stepped(info: ptrace.SignalInfo | None) -> bool:
    """Whether a SIGTRAP tells of a step: behind a system call it says that nobody sent it
    (user_single_step_report in include/linux/ptrace.h)."""
    return info is not None and (info.code == _TRAP_TRACE or (info.code == _SI_USER and info.pid == 0))


def enter_area(tid: int, area: int, words: Words, *, inherited: bool = False) -> int:
    """Keep a thread's own x18 in its area, and let x18 lead there."""
    registers = ptrace.get_registers(tid, Registers)
    words[OWN_BASE // 8] = registers.x18
    registers.x18 = area
    ptrace.set_registers(tid, registers)
    return 0


def set_own(tid: int, registers: Any, words: Words, own: int) -> None:
    """Set a thread's registers to its own, x18 from the area."""
    registers.x18 = int(words[OWN_BASE // 8])
    ptrace.set_registers(tid, registers)


def let_go(tid: int, registers: Any) -> None:
    """Nothing to do: children are born of a system call that is stepped at its own place."""


def branch_target(tid: int) -> int:
    """Where an indirect branch leads that has just missed the lookup table: x0 has it.

    The processor ignores the top byte of an address (TCR_EL1.TBI0 is set for
    user mode); it is cleared in x0, for the landing to find its own.
    """
    registers = ptrace.get_registers(tid, Registers)
    target = missed_target(registers)
    if target != registers.x0:
        registers.x0 = target
        ptrace.set_registers(tid, registers)
    return target


def missed_target(registers: Any) -> int:
    """The same by a thread's registers, which stay as they are."""
    target = int(registers.x0)
    return target & ~_TAG if target & _TAG and not target >> 55 & 1 else target


def area_of(registers: Any) -> int:
    """Where x18 leads."""
    return int(registers.x18)


def faults_before(target: int) -> bool:
    """Never: a branch retires, and what it leads to faults."""
    return False


def undo_branch(registers: Any, facts: Any, words: Words) -> tuple[int, int] | None:
    """Nothing to take back: no indirect branch faults before it retires."""
    return None


def restore_spills(registers: Any, words: Words, which: int = 0) -> None:
    """Restore x0 and x1 (`which` 0), or the one register `which` - 1 that a sequence borrows."""
    if which:
        setattr(registers, f"x{which - 1}", int(words[SPILL_LENT // 8]))
    else:
        registers.x0 = int(words[SPILL_PAIR // 8])
        registers.x1 = int(words[SPILL_PAIR // 8 + 1])


def own_frame(thread: StoppedThread, cached: int, own: int) -> None:
    """In the signal frame just built, let the pc be the program's.

    For a system call that may be restarted: the kernel has put the pc back on
    it before the signal is seen, and whether it stays there or the call
    fails with EINTR is decided afterwards, if the pc is still that one
    (do_signal in arch/arm64/kernel/signal.c).
    """
    at = thread.registers().sp + _FRAME_PC
    value = int.from_bytes(thread.read(at, 8), "little")
    if value in (cached, cached + 4):
        thread.write(at, (own + value - cached).to_bytes(8, "little"))


def behind_syscall(registers: Any, pc: int) -> None:
    """Nothing: a system call leaves its result alone."""


def raises_trap(encoding: bytes) -> bool:
    """Never: a breakpoint's trap does not look like a step's."""
    return False


def prepare_return(words: Words, area: int, resume: int) -> None:
    """Returns from signal handlers are stepped here: a thread reaches its area through a general
    register, which the kernel restores as the program's own."""


def retreat(registers: Any, words: Words) -> None:
    """See `prepare_return`: there is nothing to undo."""
