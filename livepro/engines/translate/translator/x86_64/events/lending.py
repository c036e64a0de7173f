"""The register that a recorded thread's copies are lent: where its next record begins is in it.

A word in memory would do, but each block would wait for the one before: it loads what that has stored, five
cycles and more. So copies that all are recorded have it in r11, and the program's own r11 is in the area;
instructions that mention r11 get it back. Compiled C mentions no register less (2 to 4 % of the instructions
of gzip and xz, none of a loop in CPython): the calling convention lets everybody overwrite it (psABI, 3.2.3),
and each system call does. The area's word says where the next record begins, too: nobody waits for that
store, and the tracer need not ask for registers.
"""

from __future__ import annotations

from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Words
from livepro.engines.translate.translator.x86_64 import encode
from livepro.isa.x86_64.registers import Registers
from livepro.linux import ptrace

LENT = 11
OWN = encode.load_area(LENT, layout.OWN)
"""The program's own value into the register."""
KEEP = encode.store_area(LENT, layout.OWN)
"""The program's own value, which is in the register, into the area."""
BACK = encode.load_area(LENT, layout.RECORD)
"""Where the next record begins into the register."""

_OWN, _RECORD, _LENDS = layout.OWN // 8, layout.RECORD // 8, layout.LENDS // 8
_AT = Registers.r11.offset


def enter(tid: int, words: Words) -> None:
    """Keep a stopped thread's own value, and lend the register."""
    if words[_LENDS]:
        words[_OWN] = ptrace.peek_user(tid, _AT)
        ptrace.poke_user(tid, _AT, int(words[_RECORD]))


def lead(tid: int, words: Words, code: bytes) -> None:
    """See `Backend.lead`. Behind a system call, which has left the program's own value in the register, that
    is about to be kept."""
    if words[_LENDS]:
        ptrace.poke_user(tid, _AT, int(words[_OWN if code.startswith(KEEP) else _RECORD]))


def lend(registers: Any, words: Words) -> None:
    """Lend the register again, as the record's place has changed."""
    if words[_LENDS]:
        registers.r11 = int(words[_RECORD])


def keep(registers: Any, words: Words) -> None:
    """Keep the program's own value, which is in the register."""
    if words[_LENDS]:
        words[_OWN] = registers.r11


def give_back(registers: Any, words: Words) -> None:
    """Give the register back."""
    if words[_LENDS]:
        registers.r11 = int(words[_OWN])
