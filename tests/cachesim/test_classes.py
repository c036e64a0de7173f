"""Misses by class: a program that was worked out, a plain Python twin, and another simulator's misses."""

from __future__ import annotations

import json
import platform
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from cachesim.test_cachegrind import build, livepro

from fixtures import ASM_FLAGS, ROOT, Builder
from livepro.cachesim.classes.classing import EVENTS
from livepro.cachesim.classes.state import ClassedCache
from livepro.cachesim.geometry import Geometry
from livepro.events.spans.operand import READ1, READ2, REWRITE, WRITE, described

recorded = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")


def twin(
    cache: Geometry, accesses: list[tuple[int, int, int]]
) -> tuple[dict[int, Counter[str]], int, Counter[int]]:
    """By the definitions: events by instruction, spared hits, and how often there was each distance."""
    sets: list[list[int]] = [[] for _ in range(cache.sets)]
    recent: list[int] = []
    counts: dict[int, Counter[str]] = {}
    distances: Counter[int] = Counter()
    spared = 0
    for instruction, address, size in accesses:
        for line in range(address // cache.line, (address + size - 1) // cache.line + 1):
            own = counts.setdefault(instruction, Counter())
            own["accesses"] += 1
            ways = sets[line % cache.sets]
            hit = line in ways
            if hit:
                ways.remove(line)
            ways.insert(0, line)
            del ways[cache.ways :]
            held = line in recent[: cache.sets * cache.ways]
            if line in recent:
                distances[recent.index(line)] += 1
                recent.remove(line)
                cause = "conflict" if held else "capacity"
            else:
                cause = "compulsory"
            recent.insert(0, line)
            if not hit:
                own["misses"] += 1
                own[cause] += 1
            elif not held:
                spared += 1
    return counts, spared, distances


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_the_twin(seed: int) -> None:
    """Random accesses to twice or eight times as many lines as there is room for, in pieces."""
    generator = random.Random(seed)
    cache = Geometry(*generator.choice([(1024, 2, 64), (512, 1, 32), (2048, 8, 64), (4096, 64, 64)]))
    room = cache.size * generator.choice([2, 8])
    accesses, words = [], []
    for n in range(4000):
        size = generator.choice([1, 4, 8, 8, 8, 64, 3000 if n % 400 == 0 else 16])
        near = generator.random() < 0.5
        address = 0x10000 + (
            accesses[-1][1] - 0x10000 + 8 if near and accesses else generator.randrange(room)
        )
        instruction = generator.randrange(50)
        accesses.append((instruction, address, size))
        words.append(described(instruction, size, generator.choice([READ1, READ2, WRITE, REWRITE])))
    simulated = ClassedCache(cache)
    addresses, operands = np.array([a for _, a, _ in accesses], np.int64), np.array(words, np.int64)
    at = 0
    while at < len(accesses):
        end = min(at + generator.randrange(1, 900), len(accesses))
        simulated.access(addresses, operands, at, end, max(i for i, _, _ in accesses[:end]) + 1)
        at = end
    counts, spared, distances = twin(cache, accesses)
    found = {
        n: {event: count for event, count in zip(EVENTS, row, strict=True) if count}
        for n, row in enumerate(simulated.counts.tolist())
        if any(row)
    }
    assert found == {n: dict(counter) for n, counter in counts.items()}
    cold = sum(counter["compulsory"] for counter in counts.values())
    assert simulated.totals.tolist() == [*simulated.counts.sum(axis=0).tolist(), spared]
    assert simulated.curve().tolist() == [
        cold + sum(number for distance, number in distances.items() if distance >= 1 << n) for n in range(48)
    ]


def measured(tmp_path: Path, *options: Any) -> tuple[dict[str, Any], str]:
    report = tmp_path / "run.json"
    done = livepro("run", "--json", report, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (told,) = (told for rows in json.loads(report.read_text())["analyses"].values() for told in rows)
    return told["result"], done.stderr


@recorded
@pytest.mark.parametrize("engine", ["translate", "step"])
def test_numbers_that_were_worked_out(engine: str, builder: Builder, tmp_path: Path) -> None:
    """By the comment of classes.S."""
    program = builder.build(ROOT / "cachegrind" / "classes.S", ASM_FLAGS)
    result, shown = measured(
        tmp_path, "--engine", engine, "--analysis", "misses:cache=1K,2,64", "--", program
    )
    assert result["totals"] == {
        **{"accesses": 114, "misses": 113, "compulsory": 53, "capacity": 33, "conflict": 27, "spared": 1}
    }
    assert [(row["size"], row["misses"]) for row in result["curve"]] == [
        *((64, 114), (128, 114), (256, 87), (512, 87), (1024, 87), (2048, 54), (4096, 53))
    ]
    functions = {name: counts for name, _, *counts in result["functions"]}
    assert functions["conflicts"] == [30, 3, 0, 27, 30]
    assert functions["capacity"] == [113 - 30, 50, 33, 0, 84]
    assert "    conflict                  27   23.89% of misses" in shown
    assert "       2 KiB                54   47.37%  ██████████████" in shown


@recorded
def test_misses_are_those_of_the_hierarchy(tmp_path: Path) -> None:
    """A simulator of its own, and the same rules: accesses to lines, LRU."""
    program = build("walks", tmp_path, "-O1")
    machine = tmp_path / "one.toml"
    cache = '[[cache]]\nname = "L1{}"\nholds = "{}"\nsize = "2K"\nways = 2\npolicy = "lru"\n'
    text = 'name = "one"\nline = 64\n' + cache.format("I", "instructions") + cache.format("D", "data")
    machine.write_text(text)
    other, _ = measured(tmp_path, "--hierarchy", machine, "--", program)
    result, _ = measured(tmp_path, "--analysis", "misses:cache=2048,2,64", "--", program)
    level = other["levels"]["L1D"]
    assert result["totals"]["accesses"] == level["reads"] + level["writes"]
    assert result["totals"]["misses"] == level["read_misses"] + level["write_misses"]
    assert result["totals"]["conflict"] > 0


def test_what_is_no_cache_is_refused(tmp_path: Path) -> None:
    done = livepro("run", "--analysis", "misses:cache=1000,3,64", "--", "true", cwd=tmp_path)
    assert done.returncode == 2
    assert "1000 bytes are not a multiple of 3 lines of 64 bytes" in done.stderr
