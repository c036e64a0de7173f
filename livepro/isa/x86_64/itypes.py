"""MICA's default instruction-type groups, as rules on x86-64 categories and operations.

The rules are those of `init_itypes_default_groups` in MICA's mica_itypes.cpp.
MICA predates AVX: what its categories do not name (AVX, AVX512, CONVERT,
SETCC ...) is `other`, and its categories are listed beside the count. The
group of moves between registers, which the function has and the output format
in MICA's README has not, is left to specification files.
"""

from __future__ import annotations

from functools import cache

from livepro.isa.itypes import ordered_groups

_BY_CATEGORY = {
    category: group
    for group, categories in {
        "control": ("COND_BR", "UNCOND_BR"),
        "arithmetic": ("LOGICAL", "DATAXFER", "BINARY", "FLAGOP", "BITBYTE"),
        "floating_point": ("X87_ALU", "FCMOV"),
        "stack": ("POP", "PUSH"),
        "shift": ("SHIFT",),
        "string": ("STRINGOP",),
        "sse": ("MMX", "SSE"),
        "system": ("INTERRUPT", "ROTATE", "SEMAPHORE", "CMOV", "SYSTEM", "MISC", "PREFETCH", "SYSCALL"),
        "nop": ("WIDENOP", "NOP"),
    }.items()
    for category in categories
}

_BY_OPCODE = {"LEAVE": "control", "RET_NEAR": "control", "CALL_NEAR": "control"}


@cache
def itypes(opcode: str, category: str, reads_memory: bool, writes_memory: bool) -> tuple[str, ...]:
    """Return the default groups of an instruction, in MICA's output order, at least one.

    `opcode` and `category` are XED's names as `category.py` gives them.
    `leave` is both `control` (by its operation) and `system` (by its category
    MISC), as it is in MICA.
    """
    found = (_BY_CATEGORY.get(category), _BY_OPCODE.get(opcode))
    return ordered_groups(filter(None, found), reads_memory, writes_memory)
