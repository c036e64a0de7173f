"""Small facts about x86-64 threads and code that the engine needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.x86_64.facts import Facts, Kind
from livepro.isa.x86_64.registers import Registers

GADGET = b"\x0f\x05\xcc"
"""syscall; int3: what calls made inside a process go through."""

AREA_BASE = Registers.gs_base.offset
"""The register that leads to a thread's area, as an offset in `struct user`: programs
for 64-bit Linux leave gs alone (psABI, 3.2.1 reserves fs for thread-local storage)."""

TARGET = Registers.rax.offset
"""The register in which a lookup has its target."""

_INT1 = 0xF1


def canonical(address: int) -> bool:
    """Whether an address is one that a branch may lead to: bits 47 to 63 alike (SDM vol. 1,
    3.3.7.1)."""
    return address >> 47 in (0, (1 << 17) - 1)


def undo_branch(registers: Any, facts: Facts) -> None:
    """Take back what an indirect terminator did to the stack pointer."""
    if facts.kind is Kind.RETURN:
        registers.rsp -= 8 + facts.immediate
    elif facts.kind is Kind.INDIRECT_CALL:
        registers.rsp += 8


def give_back(registers: Any, words: npt.NDArray[np.uint64]) -> None:
    """Restore the registers that a lookup or a comparison borrows from the thread's area."""
    registers.rax = int(words[layout.SPILL[0] // 8])
    registers.rcx = int(words[layout.SPILL[1] // 8])


def behind_syscall(registers: Any, pc: int) -> None:
    """Set what a system call leaves besides its result: the address behind it, in rcx."""
    registers.rcx = pc


def raises_trap(encoding: bytes) -> bool:
    """Whether an instruction raises a debug exception that looks like a step's (int1)."""
    return encoding[-1] == _INT1
