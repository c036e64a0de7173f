"""Where threads are said to be, and what they are then counted to have executed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from livepro.engines.translate.counting.ledger import Ledger
from livepro.engines.translate.thread import NOWHERE
from livepro.engines.window import Position


def test_what_a_thread_is_said_to_have_executed_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a region begins, threads at rest are said to be where their blocks end. One that was not let run
    until the region was over was then found where it had been: its count for the block was less than none."""
    executions, at = {"now": 5}, Position(3, 0, 2, 2)
    state: Any = SimpleNamespace(
        thread=SimpleNamespace(tid=7),
        furthest=NOWHERE,
        counters=SimpleNamespace(of=lambda slot: executions["now"]),
        repeating=b"",
        asking=None,
    )
    tally: Any = SimpleNamespace(thread=state.thread)
    ledger: Any = object.__new__(Ledger)  # as much of it as the question takes
    ledger.moved, ledger._table = {}, SimpleNamespace(of=lambda tally: state)
    monkeypatch.setattr(Ledger, "_found_at", lambda self, state: at)

    assert ledger.position(tally) == at
    ledger.promise(state, at._replace(executed=2))
    assert ledger.position(tally) == at._replace(executed=2)
    ledger.moved.clear()  # the region has begun
    assert ledger.position(tally) == at._replace(executed=2)
    executions["now"] += 1  # it has come there again
    assert ledger.position(tally) == at
