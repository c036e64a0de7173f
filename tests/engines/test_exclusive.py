"""What an exclusive sequence has executed, told from where it was left."""

from __future__ import annotations

from livepro.engines.step.exclusive import way_taken
from livepro.isa.base import ExclusiveSequence

PLAIN = ExclusiveSequence((0, 4, 8, 12), 16, ((8, 100),))  # load, compare, branch, store
MEETING = ExclusiveSequence((0, 4, 8, 12, 16, 20), 24, ((8, 100), (16, 100)))
WAITING = ExclusiveSequence((0, 4, 8), 12, ((4, 0),))
SKIPPING = ExclusiveSequence((0, 4, 8, 12), 16, ((4, 12),))


def test_straight_ways() -> None:
    assert PLAIN.plain
    assert way_taken(PLAIN, 16, []) == ([4, 8, 12, 16], True)
    assert way_taken(PLAIN, 100, []) == ([4, 8, 100], True)


def test_stops_within() -> None:
    """By a signal, say: before the instruction at the program counter."""
    assert way_taken(PLAIN, 0, []) == ([], True)
    assert way_taken(PLAIN, 8, []) == ([4, 8], True)
    assert way_taken(PLAIN, 12, []) == ([4, 8, 12], True)


def test_ways_that_were_looked_for() -> None:
    assert way_taken(SKIPPING, 16, [4, 12]) == ([4, 12, 16], True)
    assert way_taken(SKIPPING, 12, [4, 12]) == ([4, 12], True)
    assert way_taken(WAITING, 12, [4, 8]) == ([4, 8, 12], True)


def test_ways_that_cannot_be_known() -> None:
    """The word has changed since the look: the first branch that leads there is assumed."""
    assert way_taken(MEETING, 100, [4, 8, 12, 16, 20]) == ([4, 8, 100], False)
    assert way_taken(SKIPPING, 8, [4, 12]) == ([4, 8], False)


def test_elsewhere() -> None:
    assert way_taken(PLAIN, 5000, []) == ([], False)
