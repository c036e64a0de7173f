"""x86-64 has no load-exclusive: an atomic operation is one instruction."""

from __future__ import annotations

from livepro.isa.base import ExclusiveSequence


def exclusive_sequence(code: bytes, address: int) -> ExclusiveSequence | None:
    """None: there is no such sequence."""
    return None
