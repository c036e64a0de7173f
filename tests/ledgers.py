"""Ledgers: tables in documents to which long runs add a line each."""

from __future__ import annotations

import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path


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


def row(*cells: object, when: datetime | None = None) -> str:
    """A line of a table: the date, the commit, the processor, and `cells`."""
    day = f"{when or datetime.now(UTC):%Y-%m-%d}"
    return f"| {' | '.join((day, commit(), processor(), *map(str, cells)))} |\n"


def append(file: Path, head: str, line: str) -> None:
    """Add a line to the end of a file, with the table's head where that does not end with a table."""
    text = file.read_text() if file.exists() else ""
    rows = text.splitlines()
    before = "" if rows and rows[-1].startswith("|") else ("\n" if text else "") + head
    with file.open("a") as out:
        out.write(("" if not text or text.endswith("\n") else "\n") + before + line)
