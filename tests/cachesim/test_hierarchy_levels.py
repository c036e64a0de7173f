"""What accesses do to hierarchies of caches, compared with a twin written from the definitions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from cachesim.hierarchy_twin import KINDS, Twin, events_of
from hypothesis import given, settings
from hypothesis import strategies as st

from livepro.cachesim.hierarchy import levels
from livepro.cachesim.hierarchy.asking import ACCESS_MODIFIED, LOST, demand
from livepro.cachesim.hierarchy.machine import HOLDS, Machine, read
from livepro.cachesim.hierarchy.state import Lines, misses_of

CORES = 2
STATS = {
    **{f"{kind} accesses": levels.ACCESSES + n for n, kind in enumerate(KINDS)},
    **{f"{kind} misses": levels.MISSES + n for n, kind in enumerate(KINDS)},
    "prefetched": levels.PREFETCHED,
    "useful": levels.USEFUL,
    "written back": levels.WRITTEN_BACK,
    "invalidated": levels.INVALIDATED,
    "taken": levels.TAKEN,
}


def simulated(machine: Machine, accesses: list[tuple[int, int, int]]) -> tuple[Counter[Any], Counter[str]]:
    """What the levels met, and the misses by event, of accesses (core, line, kind), compiled."""
    lines = Lines(machine)
    for _ in range(CORES):
        lines.add_core()
    events = misses_of(machine)
    columns = np.zeros((len(machine.levels) + 1, 3), np.int64)
    for column, (place, kind, _) in enumerate(events):
        columns[place, kind] = column
    columns[-1, ACCESS_MODIFIED], columns[-1, LOST] = len(events), len(events) + 1
    counts, missed = np.zeros((1, len(events) + 2), np.int64), np.zeros(len(events) + 2, np.int64)
    for core, line, kind in accesses:
        first = machine.heads[kind > 0]
        demand(*lines.arrays(), columns, counts, missed, first, core, line, kind, 0)
    assert counts[0].tolist() == missed.tolist()
    met: Counter[Any] = Counter()
    for level, row in zip(machine.levels, lines.stat, strict=True):
        met.update({(level.name, what): int(row[at]) for what, at in STATS.items()})
    met["memory", "read"], met["memory", "written"] = map(int, lines.memory[:2])
    met["others", "modified"], met["others", "lost"] = map(int, missed[-2:])
    return +met, +Counter({name: int(n) for (_, _, name), n in zip(events, missed[:-2], strict=True)})


def expected(machine: Machine, accesses: list[tuple[int, int, int]]) -> tuple[Counter[Any], Counter[str]]:
    """The same by the twin."""
    twin, events = Twin(machine, CORES), Counter[str]()
    for core, line, kind in accesses:
        events.update(twin.access(core, machine.heads[kind > 0], line, KINDS[kind]))
    assert set(events) <= set(events_of(machine))
    return +twin.met, events


@st.composite
def machines(draw: Any) -> Machine:
    """Hierarchies of two to four levels, small enough to overflow."""
    depth = draw(st.integers(1, 3))
    shared_from = draw(st.integers(2, 4))
    entries = []
    for number in range(1, depth + 1):
        for holds in ("instructions", "data") if number == 1 else ("both",):
            ways = draw(st.sampled_from([1, 2, 4]))
            sets = draw(st.sampled_from([1, 2, 3, 4])) * (1 if number == 1 else 2)
            entry = {"name": f"L{number}{holds[0].upper()}", "holds": holds, "ways": ways}
            entry["size"] = 64 * ways * sets
            entry["next"] = f"L{number + 1}B" if number < depth else "memory"
            entry["shared"] = number >= shared_from
            entry["policy"] = draw(st.sampled_from(["lru", "plru", "fifo", "random", "srrip"]))
            entry["prefetch"] = draw(st.sampled_from(["none", "none", "next-line"]))
            through = number == 1 and draw(st.integers(0, 3)) == 0
            if through:
                entry["write"] = "through"
            if number > 1:
                kinds = ["neither", "inclusive"]
                kinds += ["exclusive"] * all(e.get("write") != "through" for e in entries)
                entry["inclusion"] = draw(st.sampled_from(kinds))
            entries.append(entry)
    return read({"coherence": draw(st.sampled_from(["none", "mesi"])), "cache": entries}, "drawn")


def stream(seed: int, count: int) -> list[tuple[int, int, int]]:
    """Accesses of both cores: half of them near each other, the others anywhere."""
    rng = np.random.default_rng(seed)
    near = rng.integers(0, 6, count) + np.arange(count) // 40
    line = np.where(rng.integers(0, 2, count), near, rng.integers(0, 60, count))
    return list(
        zip(
            rng.integers(0, CORES, count).tolist(),
            line.tolist(),
            rng.integers(0, 3, count).tolist(),
            strict=True,
        )
    )


@settings(max_examples=100, deadline=None)
@given(machines(), st.integers(0, 2**32), st.sampled_from([30, 300]))
def test_equal_to_the_twin(machine: Machine, seed: int, count: int) -> None:
    accesses = stream(seed, count)
    assert simulated(machine, accesses) == expected(machine, accesses)


@pytest.mark.long(seconds=110)
@settings(max_examples=3000, deadline=None)
@given(machines(), st.integers(0, 2**32))
def test_equal_to_the_twin_often(machine: Machine, seed: int) -> None:
    accesses = stream(seed, 1000)
    assert simulated(machine, accesses) == expected(machine, accesses)


def alone(policy: str, ways: int, accesses: list[int]) -> int:
    """The misses of reads in a fully associative cache."""
    data = {"name": "D", "holds": "data", "ways": "full", "size": 64 * ways, "policy": policy}
    code = {"name": "I", "holds": "instructions", "ways": 1, "size": 64}
    found = simulated(read({"cache": [data, code]}, "test"), [(0, line, 1) for line in accesses])
    return found[1]["Dmr"]


@pytest.mark.parametrize(
    ("policy", "accesses", "misses"),
    [
        # Four ways. 0 is used again before 4 comes: LRU replaces 1, FIFO 0.
        ("lru", [0, 1, 2, 3, 0, 4, 0], 5),
        ("fifo", [0, 1, 2, 3, 0, 4, 0], 6),
        # Five lines in a circle: LRU and FIFO have always just lost the one that comes.
        ("lru", [0, 1, 2, 3, 4] * 3, 15),
        ("fifo", [0, 1, 2, 3, 4] * 3, 15),
        # Filled in order the tree points to 0. Of 0 1 2 3 0 it points to the right half, there to 2 (3 was
        # used last): 4 replaces 2.
        ("plru", [0, 1, 2, 3, 0, 4, 1, 3], 5),
        ("plru", [0, 1, 2, 3, 0, 4, 2], 6),
        # All four come in with 2, and 0, used again, has 0. 4 has the others go to 3, and replaces 1, the
        # first; 0 has gone to 1. 5 then replaces 2.
        ("srrip", [0, 1, 2, 3, 0, 4, 0, 3], 5),
        ("srrip", [0, 1, 2, 3, 0, 4, 5, 0, 3], 6),
    ],
)
def test_what_is_replaced(policy: str, accesses: list[int], misses: int) -> None:
    assert alone(policy, 4, accesses) == misses


def test_kinds_have_events_where_a_cache_holds_them() -> None:
    machine = read(
        {
            "cache": [
                {"name": "I", "holds": "instructions", "ways": 1, "size": 64, "next": "B"},
                {"name": "D", "holds": "data", "ways": 1, "size": 64, "next": "B"},
                {"name": "B", "holds": "both", "ways": 2, "size": 128},
            ]
        },
        "test",
    )
    assert [name for _, _, name in misses_of(machine)] == ["Imi", "Dmr", "Dmw", "Bmi", "Bmr", "Bmw"]
    assert HOLDS["both"] == (0, 1, 2)
    # 0 is fetched, written, and pushed out of D by 1 (written back to B, which has it), then of B by 2 and 3:
    # I and D ask B for 0, 0, 1, and D for 2 and 3.
    met, events = simulated(machine, [(0, 0, 0), (0, 0, 2), (0, 1, 1), (0, 2, 1), (0, 3, 1)])
    assert events == {"Imi": 1, "Dmw": 1, "Dmr": 3, "Bmi": 1, "Bmr": 3}
    assert (met["D", "written back"], met["B", "written back"]) == (1, 1)
    assert (met["memory", "read"], met["memory", "written"]) == (4, 1)
