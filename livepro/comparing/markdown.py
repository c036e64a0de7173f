"""What a gate found as Markdown, for a pull request (GitHub Flavored Markdown, tables)."""

from __future__ import annotations

from livepro.comparing.changes import Change
from livepro.comparing.gate import Outcome, Verdict, regressed

MOST = 30
"""Rows of the table."""

_SIGNS = {
    Outcome.REGRESSED: "❌ regressed",
    Outcome.IMPROVED: "✅ improved",
    Outcome.NEW: "🆕 new",
    Outcome.PASSED: "✅",
}


def summary(verdicts: list[Verdict], title: str) -> str:
    """A heading that tells the outcome, and a table of what changed, regressions first."""
    failed = [v for v in verdicts if v.outcome is Outcome.REGRESSED]
    changed = [v for v in verdicts if v not in failed and (v.change.delta or v.change.kind == "total")]
    rows = failed + changed
    lines = [
        f"### {'❌' if regressed(verdicts) else '✅'} livepro: {cell(title)}",
        "",
        "| | before | after | change | |",
        "|---|--:|--:|--:|---|",
    ]
    for verdict in rows[:MOST]:
        row = verdict.change
        said = _SIGNS[verdict.outcome] + (f": {verdict.limit}" if verdict.limit else "")
        before = f"{row.before:,}" if row.before else "-"
        lines.append(f"| {cell(row.name)} | {before} | {row.after:,} | {difference(row)} | {said} |")
    if len(rows) > MOST:
        lines.append(f"\n{len(rows) - MOST:,} more rows are left out.")
    same = len(verdicts) - len(rows)
    if same:
        lines.append(f"\n{same:,} compared without a change.")
    return "\n".join(lines) + "\n"


def difference(row: Change) -> str:
    """By how much a count changed, in instructions and percent; - where there is no baseline."""
    if not row.before and row.kind == "total":
        return "-"
    if not row.delta:
        return "0"
    growth = "" if row.growth is None else f" ({100 * row.growth:+.2f} %)"
    return f"{row.delta:+,}{growth}"


def cell(text: str) -> str:
    """`text` as it is, whatever a name has in it: as code, which no Markdown in it can end."""
    plain = "".join(c if c.isprintable() else "�" for c in text)
    longest = run = 0
    for c in plain:
        run = run + 1 if c == "`" else 0
        longest = max(longest, run)
    fence = "`" * (longest + 1)
    space = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{space}{plain}{space}{fence}".replace("|", "\\|")
