"""What `livepro doctor` found, as a list with remedies."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console
from rich.text import Text

NAME_COLUMNS = 20


class State(StrEnum):
    """How a finding bears on a run."""

    OK = "ok"
    NOTE = "--"  # absent, or mere information: livepro runs all the same
    BAD = "NO"  # no run is possible


STYLE = {State.OK: "green", State.NOTE: "yellow", State.BAD: "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor: what was looked at, what was seen, what to do about it."""

    name: str
    state: State
    detail: str
    remedy: str = ""


def print_findings(console: Console, title: str, findings: list[Finding]) -> None:
    """Print a titled group of findings, long ones wrapped under their column."""
    console.print(Text(title, "bold"))
    indent = " " * (NAME_COLUMNS + 6)
    for finding in findings:
        line = Text("  ")
        line.append(finding.state.value, STYLE[finding.state])
        text = finding.detail + (f". {finding.remedy}" if finding.remedy else "")
        lines = textwrap.wrap(text, max(20, console.width - len(indent) - 1)) or [""]
        line.append(f"  {finding.name:<{NAME_COLUMNS}}" + f"\n{indent}".join(lines))
        console.print(line, soft_wrap=True)
