"""The table of survivors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from injection.campaign import Outcome


def table(outcomes: Sequence[Outcome], every: bool = False) -> str:
    """Survivors by kind of fault, by phase, and by what failed (with `every`, else only where one died)."""
    made = [outcome for outcome in outcomes if outcome.made]
    spared = [outcome for outcome in outcomes if not outcome.made]
    lines = [
        f"{len(outcomes)} attachments, {len(made)} faults made, {sum(o.survived for o in made)} survived; "
        f"without their fault, which they did not come to, {sum(o.survived for o in spared)} of {len(spared)}"
    ]
    for title, key in (
        ("program", lambda o: f"{o.target}, {o.engine}"),
        ("kind of fault", lambda o: o.fault.kind),
        ("moment", lambda o: f"{o.fault.point.phase}, {o.fault.moment}"),
    ):
        lines += ["", *_part(title, made, key)]
    lines += ["", *_part("what failed", made, lambda o: o.fault.point.name, every)]
    return "\n".join(lines)


def _part(
    title: str, outcomes: Iterable[Outcome], key: Callable[[Outcome], str], every: bool = True
) -> list[str]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    lines = [f"{title:<72} {'made':>5} {'survived':>8}  what else became of it"]
    for name, group in sorted(groups.items()):
        survived = sum(outcome.survived for outcome in group)
        if survived < len(group) or every:
            others: dict[str, int] = defaultdict(int)
            for outcome in group:
                if not outcome.survived:
                    others[outcome.verdict.partition(",")[0].partition(":")[0]] += 1
            told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(others.items()))
            lines.append(f"{name:<72} {len(group):5} {survived:8}  {told}".rstrip())
    if len(lines) == 1:
        lines.append("(all survived)")
    return lines
