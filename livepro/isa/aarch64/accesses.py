"""The memory accesses of AArch64 instructions."""

from __future__ import annotations

from livepro.errors import LiveproError
from livepro.isa.access import Access, MachineState


def accesses(code: bytes, address: int) -> tuple[Access, ...]:
    """See `livepro.isa.base.Isa`."""
    raise LiveproError("Memory accesses of AArch64 programs cannot be recorded yet.")


def words_before(access: Access, machine: MachineState) -> list[int]:
    """See `livepro.isa.base.Isa`."""
    raise NotImplementedError
