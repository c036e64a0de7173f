"""livepro: exact per-thread instruction counts of live Linux processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = ["LiveproError", "Result", "__version__", "attach", "run", "sample"]

if TYPE_CHECKING:
    from livepro.api import Result, attach, run, sample
    from livepro.errors import LiveproError


def __getattr__(name: str) -> object:
    # Loaded when used: `livepro --version` must not wait for NumPy.
    if name in ("Result", "attach", "run", "sample"):
        from livepro import api

        return getattr(api, name)
    if name == "LiveproError":
        from livepro.errors import LiveproError

        return LiveproError
    raise AttributeError(f"module 'livepro' has no attribute '{name}'")
