from __future__ import annotations

import numpy as np

from livepro.analyses.phases import MOST
from livepro.live.history import KEPT, History


def add(history: History, *blocks: int, instructions: int = 100) -> None:
    found = np.array(blocks, np.int64)
    history.add(0.25, instructions if blocks else 0, 10, found, np.full(len(found), 100, np.int64))


def test_the_same_code_is_the_same_phase() -> None:
    history = History()
    for blocks in ((1, 2, 3), (1, 2, 3), (), (7, 8), (1, 2, 3), (1, 2, 3, 4)):
        add(history, *blocks)
    assert [m.phase for m in history.moments()] == [0, 0, None, 1, 0, 0]


def test_there_is_an_end_to_new_phases() -> None:
    history = History()
    for number in range(3 * MOST):
        add(history, 1000 * number)
    assert max(m.phase or 0 for m in history.moments()) == MOST - 1


def test_a_long_run_is_kept_in_longer_moments() -> None:
    history = History()
    samples = 5 * KEPT + 3
    for number in range(samples):
        add(history, 1 if number < 2 * KEPT else 99)
    moments = history.moments()
    assert KEPT // 2 <= len(moments) <= KEPT
    assert sum(m.seconds for m in moments) == samples * 0.25
    assert sum(m.instructions for m in moments) == samples * 100
    assert len({m.seconds for m in moments[:-1]}) == 1  # all alike, but for the one that fills
    phases = [m.phase for m in moments]
    assert phases == sorted(phases, key=str)
    assert 0.35 < phases.count(0) / len(phases) < 0.45
