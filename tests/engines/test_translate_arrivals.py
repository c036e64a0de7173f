"""How one process follows others in the same file."""

from __future__ import annotations

from livepro.engines.translate.translator.arrivals import FEWEST, MOST, Arrival, FileArrivals, Follower


def arrivals(count: int) -> FileArrivals:
    """So many, at one offset after the other."""
    found = FileArrivals()
    assert [found.add(Arrival(n, lands=False)) for n in range(count)] == [None] * count
    return found


def offsets(follower: Follower, of: FileArrivals, *numbers: int | None) -> list[int]:
    """Those of what is wanted."""
    return [place.offset for place in follower.wanted(of, numbers)]


def test_arrivals_are_numbered_in_the_order_of_the_first_at_each_place() -> None:
    found = arrivals(3)
    assert found.add(Arrival(1, lands=False)) == 1
    assert found.add(Arrival(1, lands=True)) is None  # by an indirect branch, which is something else
    assert len(found.all) == 4


def test_what_others_came_to_next_is_wanted() -> None:
    """Twice as much each time that the process comes to the next of it, up to a bound."""
    found, follower = arrivals(4000), Follower()
    at, width = 100, FEWEST
    for _ in range(8):
        assert offsets(follower, found, at) == list(range(at + 1, at + 1 + width))
        at, width = at + width, min(2 * width, MOST)
    assert width == MOST
    assert offsets(follower, found, 500) == list(range(501, 501 + FEWEST))  # elsewhere: from the fewest on


def test_nothing_is_wanted_twice_at_once_nor_behind_the_last() -> None:
    found, follower = arrivals(40), Follower()
    assert offsets(follower, found, 20, 22, None) == list(range(21, 21 + FEWEST))
    assert offsets(follower, found, 37, 39) == [38, 39]
    assert offsets(follower, found, 39, None) == []
    assert follower.seen == 40


def test_a_forked_child_follows_anew() -> None:
    """It knows how many arrivals there have been."""
    found, follower = arrivals(100), Follower()
    offsets(follower, found, 10)
    child = follower.copy()
    assert child.seen == 100
    assert offsets(child, found, 10 + FEWEST) == list(range(11 + FEWEST, 11 + 2 * FEWEST))
