"""The names that instruction-type specifications may use, by machine."""

from __future__ import annotations

from importlib import import_module

from livepro.isa import for_machine
from livepro.model.itypes import Vocabulary


def vocabulary(machine: str) -> Vocabulary:
    """Every category and operation name of `machine` (as `uname -m` names it).

    Raises LiveproError for a machine that livepro does not know.
    """
    for_machine(machine)
    found: Vocabulary = import_module(f"livepro.isa.{machine}.vocabulary").vocabulary()
    return found
