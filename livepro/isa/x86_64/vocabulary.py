"""The names that instruction-type specifications may use on x86-64."""

from __future__ import annotations

from functools import cache

from livepro.isa.x86_64.category import category, opcode_name
from livepro.isa.x86_64.form import decodable_forms
from livepro.model.itypes import Vocabulary


@cache
def vocabulary() -> Vocabulary:
    """Every category and operation name that an instruction can have in 64-bit mode."""
    forms = decodable_forms()
    return Vocabulary(
        categories=frozenset(category(form) for form in forms),
        opcodes=frozenset(opcode_name(form) for form in forms),
    )
