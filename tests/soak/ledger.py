"""The ledger: a line for each soak, in a table that docs/trust.md ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import ledgers

from soak.rounds import Outcome

HEAD = (
    "| date | commit | processor | nothing kept | with what was kept | deaths | wrong results | errors "
    "| attachments |\n|---|---|---|---|---|---|---|---|---|\n"
)
"""What `line` is a row of; the fourth and fifth are rounds."""


def line(outcomes: Sequence[Outcome], when: datetime | None = None) -> str:
    """A soak's row."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    fresh = sum(outcome.fresh for outcome in outcomes)
    attached = sum(outcome.attachments for outcome in outcomes)
    cells = (fresh, len(outcomes) - fresh, kinds["death"], kinds["wrong"], kinds["error"], attached)
    return ledgers.row(*cells, when=when)


def append(file: Path, outcomes: Sequence[Outcome]) -> None:
    """Add a soak's row to the end of a file, with the table's head where that does not end with a table."""
    ledgers.append(file, HEAD, line(outcomes))
