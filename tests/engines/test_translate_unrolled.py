"""Further copies of blocks that branch to themselves (`unrolled`). What is counted in them is part of the
contract, with the fixture self_loops: here, that there are some, and that each leads to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import livepro
from fixtures import Builder, assembly
from livepro.engines.translate.translator import unrolled
from livepro.engines.translate.translator.unrolled import Unrolled


class Seen:
    """What became of further copies: how many there were in each process, and what was counted in each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copies: list[list[int]] = []
        gather = Unrolled.gather

        def gathering(into: Unrolled, counts: Any) -> None:
            slots, _ = into.pairs()
            self.copies.append([int(counts[slot]) for slot in slots.tolist() if slot < len(counts)])
            gather(into, counts)

        monkeypatch.setattr(unrolled.Unrolled, "gather", gathering)


@pytest.fixture
def program(builder: Builder) -> str:
    return str(builder.assembly(next(f for f in assembly() if f.name == "self_loops")))


@pytest.mark.parametrize("size", [0, 100])
def test_a_short_loop_goes_round_through_all_its_copies(
    size: int, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the run that makes them, and in one that finds them kept; each executes its part of the turns."""
    expected = next(f for f in assembly() if f.name == "self_loops").instructions
    counted = []
    for _ in range(2):
        seen = Seen(monkeypatch)
        result = livepro.run([program], engine="translate", cache=str(tmp_path), interval_size=size)
        assert result.instructions == expected
        counted.append(sorted(seen.copies[-1], reverse=True))
        monkeypatch.undo()
    first, kept = counted
    assert first == kept
    # To `two`, whose first turn is part of the block before it, branches lead 1000 times.
    assert first[:3] == [250] * 3


def test_copies_of_a_loop_are_one_block(program: str) -> None:
    """Also where all is dropped again and again."""
    for cache_size in (None, 1000):
        (process,) = livepro.run([program], engine="translate", cache=False, cache_size=cache_size).processes
        assert len(set(process.table.address.tolist())) == len(process.table)
