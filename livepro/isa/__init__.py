"""Instruction sets: from bytes to meaning, behind one registry.

`isa.x86_64` and `isa.aarch64` hold the same file names. Nothing outside this
package asks which machine it runs on; it asks `for_machine` for an `Isa`.
"""

from __future__ import annotations

from importlib import import_module

from livepro.errors import LiveproError
from livepro.isa.base import Isa

MACHINES = ("x86_64", "aarch64")
"""Machine names as `uname -m` gives them."""


def for_machine(name: str) -> Isa:
    """Return the instruction set of machine `name` (as `uname -m` names it).

    Raises LiveproError for a machine that livepro does not know.
    """
    if name not in MACHINES:
        raise LiveproError(
            f"livepro does not know the machine '{name}'.",
            f"It measures {' and '.join(MACHINES)} processes.",
        )
    isa: Isa = import_module(f"livepro.isa.{name}").ISA
    return isa
