"""Small facts about x86-64 threads and code that the engine needs."""

from __future__ import annotations

from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Words
from livepro.engines.translate.translator.x86_64.events import lending
from livepro.engines.translate.translator.x86_64.facts import Facts, Kind
from livepro.isa.x86_64.registers import Registers
from livepro.linux import ptrace

SYSTEM_CALL = b"\x0f\x05"
GADGET = SYSTEM_CALL + b"\xcc"
"""syscall; int3: what calls made inside a process go through."""

# The register that leads to a thread's area, as an offset in `struct user`: programs for
# 64-bit Linux leave gs alone (psABI, 3.2.1 reserves fs for thread-local storage).
_AREA_BASE = Registers.gs_base.offset
_TARGET = Registers.rax.offset
_INT1 = 0xF1
# Legacy prefixes and REX (SDM vol. 2, 2.1.1 and 2.2.1).
_PREFIXES = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3, *range(0x40, 0x50)))

# struct ucontext, to which the stack pointer points at rt_sigreturn, up to its signal mask, and the
# instruction pointer in it (arch/x86/include/uapi/asm/ucontext.h, sigcontext.h).
CONTEXT_SIZE = 304
CONTEXT_PC = 168
_S_RSP, _S_BELOW_STACK = layout.SPILL[4:6]

# si_code of a step's SIGTRAP: include/uapi/asm-generic/siginfo.h, arch/x86/kernel/traps.c.
_STEPPED = (1, 2)  # TRAP_BRKPT (on the way out of a system call), TRAP_TRACE

_NO_CALL = (1 << 64) - 1  # orig_rax of a thread that is in no system call
_USER_32_CS = 0x23  # arch/x86/include/asm/segment.h: the code segment of 32-bit programs


def obstacle(registers: Any) -> str:
    """What keeps a thread from being translated, as a clause; empty if nothing does."""
    if registers.cs == _USER_32_CS:
        return "runs 32-bit code"
    if registers.gs_base:
        return "uses the gs segment itself"
    return ""


def forget_call(registers: Any) -> None:
    """Keep the kernel from beginning again the system call that a thread is in."""
    registers.orig_rax = _NO_CALL


def stepped(info: ptrace.SignalInfo | None) -> bool:
    """Whether a SIGTRAP tells of a step."""
    return info is not None and info.code in _STEPPED


def enter_area(tid: int, area: int, words: Words, *, inherited: bool = False) -> int:
    """Let gs lead to a thread's area, and lend a register if that is recorded; returns the program's own gs
    base."""
    lending.enter(tid, words)
    own = 0 if inherited else ptrace.peek_user(tid, _AREA_BASE)
    ptrace.poke_user(tid, _AREA_BASE, area)
    return own


def set_own(tid: int, registers: Any, words: Words, own: int) -> None:
    """Set a thread's registers to its own, with `own` as gs base.

    PTRACE_SETREGS does not set a gs base that was 0 here; PTRACE_POKEUSER does.
    """
    lending.give_back(registers, words)
    ptrace.set_registers(tid, registers)
    ptrace.poke_user(tid, _AREA_BASE, own)


def let_go(tid: int, registers: Any) -> None:
    """Set the registers of a child that ran in a copy of the cache and will not be followed."""
    ptrace.set_registers(tid, registers)
    ptrace.poke_user(tid, _AREA_BASE, 0)


def branch_target(tid: int) -> int:
    """Where an indirect branch leads that has just missed the lookup table: rax has it."""
    return ptrace.peek_user(tid, _TARGET)


def missed_target(registers: Any) -> int:
    """The same by a thread's registers."""
    return int(registers.rax)


def area_of(registers: Any) -> int:
    """Where gs leads."""
    return int(registers.gs_base)


def faults_before(target: int) -> bool:
    """Whether an indirect branch to `target` faults before it retires: to an address that is
    not canonical, bits 47 to 63 alike (SDM vol. 1, 3.3.7.1)."""
    return target >> 47 not in (0, (1 << 17) - 1)


def undo_branch(registers: Any, facts: Facts, words: Words) -> tuple[int, int] | None:
    """Take back what an indirect terminator did to the stack; see `Backend`."""
    if facts.kind is Kind.RETURN:
        registers.rsp -= 8 + facts.immediate
    elif facts.kind is Kind.INDIRECT_CALL:
        registers.rsp += 8
        return registers.rsp - 8, int(words[_S_BELOW_STACK // 8])
    return None


def restore_spills(registers: Any, words: Words, which: int = 0) -> None:
    """Restore the registers that a lookup or a comparison borrows from the thread's area."""
    registers.rax = int(words[layout.SPILL[0] // 8])
    registers.rcx = int(words[layout.SPILL[1] // 8])


def prepare_return(words: Words, area: int, resume: int) -> None:
    """Prepare a thread's area at `area` for returns from signal handlers, which lead to `resume`."""
    words[layout.FRAME_AT // 8] = area + layout.FRAME
    words[(layout.FRAME + CONTEXT_PC) // 8] = resume


def retreat(registers: Any, words: Words) -> None:
    """Undo what has been done to registers to prepare a return from a signal handler."""
    restore_spills(registers, words)
    if registers.rsp == int(words[layout.FRAME_AT // 8]):
        registers.rsp = int(words[_S_RSP // 8])


def behind_syscall(registers: Any, pc: int) -> None:
    """Set what a system call leaves besides its result: the address behind it, in rcx."""
    registers.rcx = pc


def raises_trap(encoding: bytes) -> bool:
    """Whether an instruction raises a debug exception that looks like a step's (int1)."""
    return encoding[-1] == _INT1 and all(byte in _PREFIXES for byte in encoding[:-1])
