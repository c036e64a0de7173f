"""The code caches of processes whose children are seen late."""

from __future__ import annotations

from typing import Any

from livepro.engines.translate.threads.table import ThreadTable


class Thing:
    """A process, or a code cache."""


def test_a_code_cache_is_wanted_until_a_child_has_copied_it() -> None:
    """Whoever is killed as it forks can end before its child is seen, which then takes over what its parent
    has translated, and what the code of that was."""
    table: Any = ThreadTable()
    parent, child, space, copy = Thing(), Thing(), Thing(), Thing()
    table.spaces[parent] = table.inherited[child] = space
    assert table.give_up(parent) == (space, False)
    del table.inherited[child]
    table.spaces[child] = copy
    assert table.give_up(child) == (copy, True)
    assert table.spaces == table.inherited == {}


def test_a_child_that_ends_unseen_wants_nothing_any_more() -> None:
    table: Any = ThreadTable()
    parent, child, space = Thing(), Thing(), Thing()
    table.spaces[parent] = table.inherited[child] = space
    assert table.give_up(child) == (None, True)
    assert table.give_up(parent) == (space, True)
