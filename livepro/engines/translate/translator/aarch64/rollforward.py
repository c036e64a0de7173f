"""Carries out emitted instructions in the tracer, up to the next boundary of the program's own.

See its x86-64 namesake. Here it is what counters are made of: loads and stores of the
thread's area, sums of registers and constants, the branch over a budget's stop. All
else is left to the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from livepro.engines.translate.translator.backend import Words
from livepro.isa.aarch64.encoding import signed
from livepro.isa.access import ALL_64

_ZERO_OR_SP = 31

Read = Callable[[int, int], bytes]


def roll_forward(registers: Any, words: Words, area: int, read: Read) -> bool:
    """Carry out the emitted instruction at which a thread is; False if that is left to it.

    `registers` are changed, and `words`, the thread's area, whose address `area` is; `read`
    reads memory of the thread's: an address and a size.
    """
    code = read(registers.pc, 4)
    if len(code) < 4:
        return False
    word = int.from_bytes(code, "little")
    distance = _distance(word, registers)
    if distance:
        registers.pc += distance
    elif _transfer(word, registers, words, area) or _add(word, registers):
        registers.pc += 4
    else:
        return False
    return True


def _distance(word: int, registers: Any) -> int:
    """How far a branch leads; 0 for all else."""
    if word >> 26 == 0x05:  # b
        return 4 * signed(word, 26)
    if word & 0xFFF80000 == 0xB6F80000:  # tbz xt, #63
        negative = getattr(registers, f"x{word & 31}") >> 63 & 1
        return 4 if negative else 4 * signed(word >> 5, 14)
    return 0


def _transfer(word: int, registers: Any, words: Words, area: int) -> bool:
    """ldr, str, ldp and stp of words in the area, with an offset; False for all else."""
    to, base = word & 31, word >> 5 & 31
    if word & 0xFF800000 == 0xF9000000:
        moved, offset = [to], 8 * (word >> 10 & 0xFFF)
    elif word & 0xFF800000 == 0xA9000000:
        moved, offset = [to, word >> 10 & 31], 8 * signed(word >> 15, 7)
    else:
        return False
    if base == _ZERO_OR_SP or _ZERO_OR_SP in moved:
        return False
    at = getattr(registers, f"x{base}") + offset - area
    if not 0 <= at <= 8 * (len(words) - len(moved)) or at % 8:
        return False
    for index, register in enumerate(moved, at // 8):
        if word >> 22 & 1:
            setattr(registers, f"x{register}", int(words[index]))
        else:
            words[index] = getattr(registers, f"x{register}")
    return True


def _add(word: int, registers: Any) -> bool:
    """add and sub of a register and a constant, without flags; False for all else."""
    to, source = word & 31, word >> 5 & 31
    if word & 0xBF800000 != 0x91000000 or _ZERO_OR_SP in (to, source):
        return False
    amount = (word >> 10 & 0xFFF) << 12 * (word >> 22 & 1)
    value = getattr(registers, f"x{source}") + (-amount if word >> 30 & 1 else amount)
    setattr(registers, f"x{to}", value & ALL_64)
    return True
