"""Allowances however short an interval is: as a rule only long ones are worth them.

Where options of `livepro.run` come from a test, `"allowing": true` among them asks for that.
"""

from __future__ import annotations

from typing import Any

from livepro.engines.translate import engine
from livepro.engines.translate.counting import budget


def allow_always() -> None:
    """From now on, in this process, and nearly to the end of an interval."""
    from livepro.engines.translate.translator.x86_64 import refilling  # which other machines cannot load

    engine.LONG = 0
    budget.FEW = refilling.FEW = 20


def heeded(options: dict[str, Any]) -> dict[str, Any]:
    """The options without that one, which is done."""
    if options.pop("allowing", False):
        allow_always()
    return options
