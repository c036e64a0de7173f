"""Carrying out AArch64 control-flow instructions in the tracer.

Encodings and conditions: Arm Architecture Reference Manual (DDI 0487), C4.1.66,
"Branches, Exception Generating and System instructions", and C1.2.4, "Condition
code". Left to the processor: branches with pointer authentication, FEAT_CMPBR's
compare-and-branch on two registers or a constant, and targets that are no user
addresses.

A branch target identification fault (BTI) is not modelled: an indirect branch
carried out here may land where the processor would have refused to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from livepro.isa.aarch64.encoding import signed
from livepro.isa.aarch64.registers import Registers
from livepro.isa.base import Carry, Words

_SIZE: Final = 4
_PC: Final = Registers.pc.offset // 8
_PSTATE: Final = Registers.pstate.offset // 8
_LINK: Final = 30
_ZERO: Final = 31
_USER_END: Final = 1 << 52

Test = Callable[["memoryview[int]"], bool]

# PSTATE bits as in SPSR (C5.2.19): N 31, Z 30, C 29, V 28; here shifted down by 28.
_N, _Z, _C, _V = 8, 4, 2, 1
_EVEN_CONDITIONS: Final[tuple[Callable[[int], bool], ...]] = (
    lambda f: bool(f & _Z),  # EQ
    lambda f: bool(f & _C),  # CS
    lambda f: bool(f & _N),  # MI
    lambda f: bool(f & _V),  # VS
    lambda f: bool(f & _C) and not f & _Z,  # HI
    lambda f: bool(f & _N) == bool(f & _V),  # GE
    lambda f: not f & _Z and bool(f & _N) == bool(f & _V),  # GT
    lambda f: True,  # AL
)


def terminator(code: bytes, address: int) -> Carry | None:
    """What carries out the instruction `code` at `address`; None where the processor must."""
    word = int.from_bytes(code, "little")
    behind = address + _SIZE
    if word & 0x7C000000 == 0x14000000:  # B, BL
        target = address + signed(word, 26) * 4
        return _jump(target, behind if word >> 31 else None)
    if word & 0xFF000000 == 0x54000000:  # B.cond, BC.cond
        return _branch(_condition(word & 15), address + signed(word >> 5, 19) * 4, behind)
    if word & 0x7E000000 == 0x34000000:  # CBZ, CBNZ
        return _branch(_zero_test(word), address + signed(word >> 5, 19) * 4, behind)
    if word & 0x7E000000 == 0x36000000:  # TBZ, TBNZ
        return _branch(_bit_test(word), address + signed(word >> 5, 14) * 4, behind)
    if word & 0xFFFFFC1F in (0xD61F0000, 0xD65F0000):  # BR, RET
        return _indirect(word >> 5 & 31, None)
    if word & 0xFFFFFC1F == 0xD63F0000:  # BLR
        return _indirect(word >> 5 & 31, behind)
    return None


def _condition(code: int) -> Test:
    """C1.2.4: odd codes negate the even ones before them, but 15, which is "always" too."""
    holds, wanted = _EVEN_CONDITIONS[code >> 1], not code & 1 or code == 15
    return lambda registers: holds(registers[_PSTATE] >> 28 & 15) is wanted


def _zero_test(word: int) -> Test:
    register, mask = word & 31, (1 << (64 if word >> 31 else 32)) - 1
    wanted = not word >> 24 & 1
    if register == _ZERO:
        return lambda registers: wanted
    return lambda registers: (registers[register] & mask == 0) is wanted


def _bit_test(word: int) -> Test:
    register, bit = word & 31, word >> 31 << 5 | (word >> 19 & 31)
    wanted = word >> 24 & 1
    if register == _ZERO:
        return lambda registers: wanted == 0
    return lambda registers: registers[register] >> bit & 1 == wanted


def _jump(target: int, link: int | None) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        if link is not None:
            registers[_LINK] = link
        registers[_PC] = target
        return True

    return carry


def _branch(test: Test, target: int, behind: int) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        registers[_PC] = target if test(registers) else behind
        return True

    return carry


def _indirect(register: int, link: int | None) -> Carry:
    def carry(registers: memoryview[int], memory: Words) -> bool:
        target = registers[register] if register != _ZERO else 0
        if target >= _USER_END:
            return False
        # The target is read before the link register is written: blr x30.
        if link is not None:
            registers[_LINK] = link
        registers[_PC] = target
        return True

    return carry
