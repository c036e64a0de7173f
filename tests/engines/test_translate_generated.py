"""Generated code that gives up its place to other code."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.linux.proc import AddressSpace

PAGE = 4096


class Labels:
    """Stands in for the labeller: knows nothing, and is told what to call."""

    def __init__(self) -> None:
        self.replaced: Any = None

    def label(self, pc: int) -> None:
        return None


PROCESS: Any = SimpleNamespace(pid=os.getpid(), space=AddressSpace([]))
"""One that says nothing of the code it makes."""


def test_blocks_of_what_is_gone_are_dropped_once() -> None:
    dropped: list[int] = []
    labels = Labels()
    generated = GeneratedCode(PROCESS, dropped.append)
    generated.use(cast("Any", labels))
    addresses = [5 * PAGE - 1, 5 * PAGE, 5 * PAGE, 6 * PAGE + 8, 9 * PAGE - 1, 9 * PAGE]
    for slot, pc in enumerate(addresses):
        generated.note(pc, slot, generated.label(pc))
    labels.replaced(5 * PAGE, 9 * PAGE)
    assert dropped == [5 * PAGE, 6 * PAGE + 8, 9 * PAGE - 1]  # in order, what was noted twice too
    labels.replaced(0, 10 * PAGE)
    assert dropped[3:] == [5 * PAGE - 1, 9 * PAGE]
    labels.replaced(0, 10 * PAGE)
    assert len(dropped) == 5


def test_what_a_forked_child_gives_up_is_its_own() -> None:
    mine: list[int] = []
    theirs: list[int] = []
    generated = GeneratedCode(PROCESS, mine.append)
    generated.use(cast("Any", Labels()))
    generated.note(PAGE, 0, generated.label(PAGE))
    labels = Labels()
    child = GeneratedCode(PROCESS, theirs.append)
    generated.fork_into(child)
    child.use(cast("Any", labels))
    labels.replaced(0, 2 * PAGE)
    assert (mine, theirs) == ([], [PAGE])
    generated.begin_anew()
    assert generated.labels == {}
