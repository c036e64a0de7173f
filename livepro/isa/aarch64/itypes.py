"""MICA's default instruction-type groups, as rules on AArch64 categories.

The rules are those that x86-64 has from MICA, carried over: scalar floating
point is `floating_point` and every vector instruction `sse`, which stands for
the machine's vector unit.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from livepro.isa.itypes import ordered_groups

_BY_CATEGORY: Final = {
    category: group
    for group, categories in {
        "control": ("COND_BR", "UNCOND_BR", "CALL", "RET"),
        "arithmetic": ("LOGICAL", "DATAXFER", "BINARY", "FLAGOP", "BITBYTE"),
        "floating_point": ("FP",),
        "stack": ("POP", "PUSH"),
        "shift": ("SHIFT",),
        "string": ("STRINGOP",),
        "sse": ("ASIMD", "CRYPTO", "SVE", "SME"),
        "system": ("INTERRUPT", "ROTATE", "SEMAPHORE", "CMOV", "SYSTEM", "MISC", "PREFETCH", "SYSCALL"),
        "nop": ("NOP",),
    }.items()
    for category in categories
}


@cache
def itypes(category: str, extension: str | None, reads_memory: bool, writes_memory: bool) -> tuple[str, ...]:
    """Return the default groups of an instruction, in MICA's output order, at least one.

    `category` is as `category.py` gives it, `extension` the vector family of
    the instruction or None: pushing a vector register is both `stack` and `sse`.
    """
    pushed = extension if category in ("PUSH", "POP") else None
    found = (_BY_CATEGORY.get(category), _BY_CATEGORY.get(pushed or ""))
    return ordered_groups(filter(None, found), reads_memory, writes_memory)
