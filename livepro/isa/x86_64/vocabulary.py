"""The names that instruction-type specifications may use on x86-64."""

from __future__ import annotations

from functools import cache

from livepro.isa.x86_64.category import category, opcode_name
from livepro.isa.x86_64.form import decodable_forms


@cache
def categories() -> frozenset[str]:
    """Every category that an instruction can have."""
    return frozenset(category(form) for form in decodable_forms())


@cache
def opcodes() -> frozenset[str]:
    """Every operation name that an instruction can have."""
    return frozenset(opcode_name(form) for form in decodable_forms())
