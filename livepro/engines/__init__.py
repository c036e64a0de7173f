"""The engines: three ways to watch every instruction, one contract (`engines.base`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from livepro.engines.translate import MACHINES, PREFERRED
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.engines.base import Engine

_CLASSES = {
    "step": ("livepro.engines.step.engine", "StepEngine"),
    "block": ("livepro.engines.block", "BlockEngine"),
    "translate": ("livepro.engines.translate.engine", "TranslateEngine"),
}

NAMES = ("auto", *_CLASSES)
"""What a user may ask for: an engine, or auto for the fastest that the machine has."""


def can_translate(machine: str) -> bool:
    """Whether the translate engine has an emitter for a machine (as `uname -m` names it)."""
    return machine in MACHINES


def default_engine(machine: str) -> str:
    """The engine that `auto` stands for on a machine."""
    return "translate" if machine in PREFERRED else "block"


def engine_class(name: str, machine: str) -> type[Engine]:
    """The engine called `name`. Raises LiveproError for a name that there is not,
    or an engine that cannot watch the machine's processes."""
    if name not in NAMES:
        raise LiveproError(f"There is no engine '{name}'.", f"Choose one of {', '.join(NAMES)}.")
    if name == "auto":
        name = default_engine(machine)
    if name == "translate" and not can_translate(machine):
        raise LiveproError(
            f"The translate engine cannot run {machine} programs.", "Use `--engine step` or `--engine block`."
        )
    module, attribute = _CLASSES[name]
    chosen: type[Engine] = getattr(import_module(module), attribute)
    return chosen
