"""Instruction types: what both instruction sets share."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from livepro.model.itypes import DEFAULT_GROUPS

__all__ = ["DEFAULT_GROUPS", "ordered_groups"]


def ordered_groups(kinds: Iterable[str], reads_memory: bool, writes_memory: bool) -> tuple[str, ...]:
    """Return an instruction's groups in MICA's output order, at least one.

    `kinds` are the groups (any of DEFAULT_GROUPS but mem_read, mem_write and
    other) that say what the instruction does; with none of them it is `other`,
    whether or not it touches memory.
    """
    found: Collection[str] = set(kinds) or {"other"}
    touched = {"mem_read": reads_memory, "mem_write": writes_memory}
    return tuple(group for group in DEFAULT_GROUPS if touched.get(group, group in found))
