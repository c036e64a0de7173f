"""The ledger: a line for each soak, in a table that docs/trust.md ends with."""

from __future__ import annotations

import platform
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from soak.rounds import Outcome

HEAD = (
    "| date | commit | processor | nothing kept | with what was kept | deaths | wrong results | errors |\n"
    "|---|---|---|---|---|---|---|---|\n"
)
"""What `line` is a row of; the third and fourth are rounds."""


def processor() -> str:
    """The machine's model of processor, and how many it has."""
    text = Path("/proc/cpuinfo").read_text()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    model = found[1] if found else platform.machine()
    return f"{model}, {len(re.findall(r'^processor', text, re.MULTILINE))} of them"


def commit() -> str:
    """The checkout's commit, `+` behind it where files of it have been changed."""
    here = Path(__file__).parent
    try:
        name = subprocess.check_output(["git", "-C", here, "rev-parse", "--short", "HEAD"], text=True).strip()
        changed = subprocess.check_output(["git", "-C", here, "status", "--porcelain", "-uno"], text=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + "+" * bool(changed)


def line(outcomes: Sequence[Outcome], when: datetime | None = None) -> str:
    """A soak's row."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    fresh = sum(outcome.fresh for outcome in outcomes)
    cells = [
        f"{when or datetime.now(UTC):%Y-%m-%d}",
        commit(),
        processor(),
        *(str(n) for n in (fresh, len(outcomes) - fresh, kinds["death"], kinds["wrong"], kinds["error"])),
    ]
    return f"| {' | '.join(cells)} |\n"


def append(file: Path, outcomes: Sequence[Outcome]) -> None:
    """Add a soak's row to the end of a file, with the table's head where that does not end with a table."""
    text = file.read_text() if file.exists() else ""
    rows = text.splitlines()
    head = "" if rows and rows[-1].startswith("|") else ("\n" if text else "") + HEAD
    with file.open("a") as out:
        out.write(("" if not text or text.endswith("\n") else "\n") + head + line(outcomes))
