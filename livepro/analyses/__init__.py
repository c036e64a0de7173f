"""Analyses: pure functions from blocks and counts to results, registered by name.

The function of every analysis is called as ``function(table, thread)`` with one
thread's counts and the table of its process, and says what that thread
executed; some take more keywords. Their modules also sum over processes and
runs where a sum is not simply a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from livepro.errors import LiveproError


class Analysis(NamedTuple):
    """A registered analysis: `help` is one line, `target` is ``module:function``."""

    name: str
    help: str
    target: str

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself; its module is imported only now."""
        module, _, name = self.target.partition(":")
        found: Callable[..., Any] = getattr(import_module(f"livepro.analyses.{module}"), name)
        return found


ANALYSES = (
    Analysis(
        "totals", "instructions, rep instructions and iterations, fldcw, blocks", "totals:thread_totals"
    ),
    Analysis("simd", "SIMD instructions by set, width, type and mnemonic", "simd:thread_rows"),
    Analysis("itypes", "instruction types in MICA's groups, or in your own", "itypes:itypes"),
    Analysis("bbv", "basic block vectors per interval, for SimPoint", "bbv:vectors"),
    Analysis(
        "origins", "who made the code: a Java VM's compilers by tier, its interpreter ...", "origins:origins"
    ),
    Analysis("hot", "the blocks in which most instructions were executed", "hot:blocks"),
)
"""In the order in which reports show them."""


def names() -> tuple[str, ...]:
    """The names that `get` knows, in report order."""
    return tuple(a.name for a in ANALYSES)


def get(name: str) -> Analysis:
    """The analysis called `name`. Raises LiveproError (with the nearest name) if there is none."""
    for analysis in ANALYSES:
        if analysis.name == name:
            return analysis
    near = get_close_matches(name, names(), n=1)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    raise LiveproError(f"There is no analysis '{name}'.", f"{hint}The analyses are {', '.join(names())}.")
