"""What the engine does only where it pays, done always: allowances, and compiled code that translates.

Where options of `livepro.run` come from a test, `"allowing": true` and `"compiled": true` among them ask for
that, `"compiled": false` for Python alone.
"""

from __future__ import annotations

import platform
from typing import Any

from livepro.engines.translate import engine
from livepro.engines.translate.counting import budget


def allow_always() -> None:
    """From now on, in this process, and nearly to the end of an interval."""
    from livepro.engines.translate.translator.x86_64 import refilling  # which other machines cannot load

    engine.LONG = 0
    budget.FEW = refilling.FEW = 20


def compile_always() -> None:
    """From the first block of each module on, in this process."""
    from livepro.engines.translate import backend_for
    from livepro.engines.translate.translator import compiled

    compiled.WORTH = 0
    setattr(backend_for(platform.machine()).compiler, "waits", False)  # noqa: B010 - a class that has that


def compile_never() -> None:
    """In this process."""
    from livepro.engines.translate.translator import compiled

    compiled.WORTH = 1 << 40


def heeded(options: dict[str, Any]) -> dict[str, Any]:
    """The options without these, which are done."""
    if options.pop("allowing", False):
        allow_always()
    wanted = options.pop("compiled", None)
    if wanted is not None:
        compile_always() if wanted else compile_never()
    return options
