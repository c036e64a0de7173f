"""Instruction types: the default groups, and groups that a user specifies."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

DEFAULT_GROUPS = (
    "mem_read",
    "mem_write",
    "control",
    "arithmetic",
    "floating_point",
    "stack",
    "shift",
    "string",
    "sse",
    "system",
    "nop",
    "other",
)
"""MICA's default groups in the order in which it prints them (MICA's README, itypes, FORMAT).

An instruction may be in several. `other` holds those that are in none, where
`mem_read` and `mem_write` do not count: they say what an instruction touches,
not what it does.
"""

OTHER = DEFAULT_GROUPS[-1]
"""The last group of every specification."""


class IdentifierType(StrEnum):
    """How an identifier of a specification picks instructions."""

    CATEGORY = "CATEGORY"  # by `Instruction.category`
    OPCODE = "OPCODE"  # by `Instruction.opcode`
    SPECIAL = "SPECIAL"  # by one of SPECIALS


SPECIALS = ("mem_read", "mem_write", "reg_transfer")
"""Names of SPECIAL identifiers: instructions that read memory, that write it, that
only copy a register to another."""


class Identifier(NamedTuple):
    """One line of a specification."""

    type: IdentifierType
    name: str


class ItypesSpec(NamedTuple):
    """Groups of instructions: an instruction is in a group that has an identifier
    which picks it. Group ids are positions, from 0."""

    groups: tuple[tuple[Identifier, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each group, such as ``2:COND_BR+UNCOND_BR``, and last OTHER."""
        own = (f"{gid}:{'+'.join(i.name for i in group)}" for gid, group in enumerate(self.groups))
        return (*own, OTHER)


class Vocabulary(NamedTuple):
    """Every category and operation name that instructions of one machine can have."""

    categories: frozenset[str]
    opcodes: frozenset[str]
