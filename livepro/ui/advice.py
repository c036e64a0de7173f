"""What the summary advises, where a run has left something open that the user can change."""

from __future__ import annotations

from livepro.analyses.generated import unnamed
from livepro.model import RunResult
from livepro.ui.text import percent

MUCH = 0.05
"""Part of all instructions from which on code without names is worth a line."""

SWITCHES = {
    "node": "node --perf-basic-prof",
    "nodejs": "node --perf-basic-prof",
    "dotnet": "DOTNET_PerfMapEnabled=1",
    "python": "python3 -X perf, from 3.12 on",
    "python3": "python3 -X perf, from 3.12 on",
}
"""How programs are told to name what they make (the manuals of Node, .NET and CPython)."""


def names(result: RunResult) -> str:
    """How to have much generated code named that is not; empty where there is no need."""
    found = unnamed(result)
    whole = result.instructions
    if found.total() <= MUCH * whole:
        return ""
    program = found.most_common(1)[0][0]
    how = SWITCHES.get(program) or SWITCHES.get(program.rstrip("0123456789."))
    advice = (
        f"{program} names it when it is told to ({how})."
        if how
        else (
            "A JIT compiler that writes a perf map or a jitdump file names its code (node --perf-basic-prof, "
            "DOTNET_PerfMapEnabled=1, python3 -X perf)."
        )
    )
    share = percent(found.total(), whole)
    return f"{share} was executed in code that was made meanwhile and has no name. {advice}"
