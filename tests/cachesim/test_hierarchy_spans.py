"""The simulator of hierarchies sees streams of threads as its twin sees their events."""

from __future__ import annotations

import dataclasses
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from cachesim.hierarchy_twin import KINDS, Thread, Twin
from events.test_kernels import MACHINE, blocks, stream

from livepro.cachesim.hierarchy import levels, model
from livepro.cachesim.hierarchy.machine import Machine, machine, read, ready
from livepro.cachesim.hierarchy.model import HierarchySim
from livepro.cachesim.hierarchy.state import HierarchyImage
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.events.replay import flatten

SMALL = read(
    {
        "line": 32,
        "cache": [
            {
                "name": "I",
                "holds": "instructions",
                "size": 128,
                "ways": 2,
                "next": "B",
                "prefetch": "next-line",
            },
            {"name": "D", "holds": "data", "size": 512, "ways": 4, "policy": "srrip", "prefetch": "stride"}
            | {"next": "B"},
            {
                "name": "B",
                "holds": "both",
                "size": "2K",
                "ways": 4,
                "policy": "plru",
                "inclusion": "inclusive",
            }
            | {"shared": True, "prefetch": "next-line"},
        ],
        "tlb": [
            {"name": "IT", "holds": "instructions", "entries": 1, "ways": 1, "next": "T2"},
            {"name": "DT", "holds": "data", "entries": 2, "ways": "full", "next": "T2"},
            {"name": "T2", "holds": "both", "entries": 3, "ways": "full", "policy": "random", "shared": True},
        ],
    },
    "small",
)


COHERENT = [
    dataclasses.replace(SMALL, coherent=True),
    *(
        read(
            {
                "coherence": "mesi",
                "cache": [
                    {"name": "I", "holds": "instructions", "size": "1K", "ways": 2, "next": "B"},
                    {"name": "D", "holds": "data", "size": "1K", "ways": 2, "next": "B", "write": write},
                    {"name": "B", "holds": "both", "size": "4K", "ways": 4, "prefetch": "next-line"}
                    | ({"next": "C"} if last else {}),
                    *(
                        [{"name": "C", "holds": "both", "size": "8K", "ways": 4, "shared": True} | last]
                        if last
                        else []
                    ),
                ],
            },
            "coherent",
        )
        for write in ("back", "through")
        for last in ({}, {"inclusion": "inclusive"}, {"inclusion": "exclusive"})
    ),
]
"""Private caches before a shared one of each kind, and before memory."""


Bounds = tuple[tuple[int, list[int]], tuple[int, list[int]]]
"""Before which round of chunks a region is told to begin and to end, and at which positions of threads."""


def simulated(
    of: Machine,
    threads: list[list[np.ndarray[Any, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    bounds: Bounds | None = None,
) -> dict[Any, int]:
    """What levels and memory met, of the chunks of threads that take turns."""
    known = blocks()
    monkeypatch.setattr(model, "machine", lambda name: of)
    image = StreamImage(0, SimpleNamespace(process=None), MACHINE)  # type: ignore[arg-type]
    image.blocks = known
    consumer = HierarchySim().consumer("hierarchy", MACHINE)
    told = [StreamThread(n, None, image, None) for n in range(len(threads))]  # type: ignore[arg-type]
    if bounds is not None:
        consumer.keeps(waiting=True)
    for number, chunks in enumerate(zip(*threads, strict=True)):
        for which, (turn, positions) in enumerate(bounds or ()):
            if turn == number:
                consumer.bound(dict(zip(told, positions, strict=True)), {}, begins=which == 0)
        for thread, words in zip(told, chunks, strict=True):
            consumer.see(thread, words.view(np.int64), known.tables())
    found = consumer.finished(image)
    assert isinstance(found, HierarchyImage)
    names = [f"{kind} {what}" for what in ("accesses", "misses") for kind in KINDS]
    names += ["prefetched", "useful", "written back", "invalidated", "taken"]
    assert len(names) == levels.STATS
    met = {
        (level.name, what): int(count)
        for level, row in zip(of.levels, found.stat, strict=True)
        for what, count in zip(names, row, strict=True)
    }
    totals = found.totals()
    met |= {("others", "modified"): totals.get("Hitm", 0), ("others", "lost"): totals.get("Inv", 0)}
    return {key: count for key, count in met.items() if count}


def expected(
    of: Machine, threads: list[list[np.ndarray[Any, Any]]], bounds: Bounds | None = None
) -> dict[Any, int]:
    twin = Twin(of, len(threads))
    executed = [0] * len(threads)
    told = [Thread(twin, n) for n in range(len(threads))]
    for chunks in zip(*threads, strict=True):
        for n, (thread, words) in enumerate(zip(told, chunks, strict=True)):
            instruction = 0
            for kind, address, size in flatten(blocks(), words):
                executed[n] += kind == "I"
                if bounds is not None and not bounds[0][1][n] < executed[n] <= bounds[1][1][n]:
                    continue
                if kind == "I":
                    instruction = address
                    thread.fetch(address, size)
                elif kind in "LS":
                    thread.access(instruction, address, size, "r" if kind == "L" else "w")
    return {key: count for key, count in twin.met.items() if count and key[0] != "memory"}


@pytest.mark.parametrize("name", ["small", *ready()])
def test_equal_to_the_twin(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = SMALL if name == "small" else machine(name)
    threads = [[stream(blocks(), 300, 10 * n + part) for part in range(3)] for n in range(2)]
    assert simulated(of, threads, monkeypatch) == expected(of, threads)


@pytest.mark.parametrize("of", COHERENT)
def test_coherent_ones_equal_to_the_twin(of: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = [[stream(blocks(), 40, 10 * n + part) for part in range(12)] for n in range(3)]
    found = simulated(of, threads, monkeypatch)
    assert found == expected(of, threads)
    assert found["others", "modified"] > 20
    assert found["others", "lost"] > 20


def test_an_instruction_that_strides_is_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block of the tests reads and writes [rdi], and pops: rdi goes up by 32, a line, each time."""
    of = SMALL
    words = [word for n in range(32) for word in (0, *[0x500000 + 32 * n] * 2, 0x600000)]
    threads = [[np.array(words, np.uint64)]]
    found = simulated(of, threads, monkeypatch)
    assert found == expected(of, threads)
    # The read meets 0, 32, 64 (the distance again), 96 (and again: it is trusted): lines 7 and on come early.
    assert found["D", "prefetched"] == 32 - 3
    assert found["D", "r misses"] == 7 + 1  # lines 0 to 6, and the stack


def instructions(words: np.ndarray[Any, Any]) -> int:
    return sum(kind == "I" for kind, _, _ in flatten(blocks(), words))


@pytest.mark.parametrize("seed", range(12))
def test_regions_are_exact(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they begin and end: between records, within one, both within the same; told before what lies
    in front of them has been seen, or right where a thread stands."""
    generator = random.Random(seed)
    threads = [[stream(blocks(), 60, 100 * seed + 10 * n + part) for part in range(4)] for n in range(2)]
    counts = [[instructions(words) for words in thread] for thread in threads]
    first, second = sorted(generator.choices(range(4), k=2))
    begins, ends = [], []
    for of_chunks in counts:
        # A thread has executed more than has been handed on, if anything.
        begin = sum(of_chunks[:first]) + generator.choice([0, generator.randrange(40)])
        least = max(sum(of_chunks[:second]), begin)
        begins.append(begin)
        ends.append(least + generator.choice([0, 1, 2, generator.randrange(60)]))
    bounds = (first, begins), (second, ends)
    assert simulated(SMALL, threads, monkeypatch, bounds) == expected(SMALL, threads, bounds)
