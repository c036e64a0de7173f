"""The translate engine; what it knows of an instruction set is behind one registry.

`translate.x86_64` and its siblings hold the same file names. Nothing else in
the engine asks which machine it runs on; it asks `backend_for` for a `Backend`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livepro.engines.translate.translator.backend import Backend

MACHINES = ("x86_64", "aarch64")
"""Machines that the engine can run on, as `uname -m` names them."""

PREFERRED = ("x86_64",)
"""Those of them where it is what `auto` stands for. On others it has yet to be tried on hardware."""


def backend_for(machine: str) -> Backend:
    """The engine's part for one of `MACHINES`."""
    backend: Backend = import_module(f"livepro.engines.translate.translator.{machine}").BACKEND
    return backend
