"""The names of instruction-type groups."""

from __future__ import annotations

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
