"""A code cache that is too small: everything is dropped again and again, and no count with it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engines.observed import REPOSITORY, Observed, observe

from fixtures import Builder, assembly

FUNCTIONS, VERSIONS, ADDS, CALLS = 48, 6, 6, 3
"""fixtures/c/churn.c"""

SPREAD = 4 << 20
"""Bytes by which what a process holds varies from one moment to another."""


def per_thread(seen: Observed) -> list[dict[str, Any]]:
    return [{k: t[k] for k in ("instructions", "digest", "vectors", "rep_iterations")} for t in seen.threads]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="all copies of the program fit elsewhere")
def test_who_waits_in_a_system_call_goes_on_in_its_block(builder: Builder, tmp_path: Path) -> None:
    """Though its copy was dropped meanwhile: the same blocks are executed, in whole."""
    fixture = next(f for f in assembly() if f.name == "threads_handoff")
    program = builder.assembly(fixture)
    whole, evicted = (
        observe([program], tmp_path / "out", engine="translate", cache=False, aslr=False, **limit)
        for limit in ({}, {"cache_size": 1000})
    )
    assert (whole.result["stats"]["flushes"], evicted.result["stats"]["flushes"] > 0) == (0, True)
    assert evicted.result["instructions"] == fixture.instructions
    assert per_thread(evicted) == per_thread(whole)


@pytest.mark.long
@pytest.mark.parametrize("size", [0, 500_000])
def test_python_starts_with_the_same_counts(size: int, builder: Builder, tmp_path: Path) -> None:
    """Block by block, and interval by interval. (The vDSO's clock is not read: it takes a longer way when
    the kernel changes the time meanwhile, as natively.)"""
    clock = builder.hosted("clock_by_call", "-shared", "-fPIC")
    whole, evicted = (
        observe(
            ["/usr/bin/python3", "-S", "-P", "-c", "print(sum([1, 2.5]))"],
            tmp_path / "out",
            engine="translate",
            cache=False,
            aslr=False,
            interval_size=size,
            env={"PYTHONHASHSEED": "0", "LD_PRELOAD": str(clock)},
            **limit,
        )
        for limit in ({}, {"cache_size": 1_000_000 if size else 700_000})
    )
    for seen in (whole, evicted):
        assert (seen.stdout, seen.faults, seen.result["warnings"]) == (b"3.5\n", [], [])
    assert (whole.result["stats"]["flushes"], evicted.result["stats"]["flushes"] > 2) == (0, True)
    assert per_thread(evicted) == per_thread(whole)


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{pid} is gone")


def churn(rounds: int, builder: Builder, tmp_path: Path) -> tuple[int, int, int]:
    """How often the code cache was full, and livepro's memory (bytes) half-way and at the end."""
    threads, size = 3, 40_000
    program = builder.hosted("churn", "-static")
    script = Path(__file__).with_name("churning.py")
    with subprocess.Popen(
        [
            sys.executable,
            str(script),
            str(tmp_path / "out"),
            str(size),
            str(program),
            str(rounds),
            str(threads),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": str(REPOSITORY)},
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        held = []
        for said in (b"half\n", b"end\n"):
            assert run.stdout.readline() == said
            held.append((resident(run.pid), resident(_target(run.pid))))
            run.stdin.write(b"x")
            run.stdin.flush()
        assert run.stdout.read() == b"0 wrong\n"
        assert run.wait(timeout=600) == 0
    (ours, theirs), (ours_later, theirs_later) = held
    seen = json.loads((tmp_path / "out").read_text())
    assert (seen["exit"], seen["warnings"]) == (0, [])
    assert seen["flushes"] > rounds // 10
    executed = rounds * FUNCTIONS * 2 * CALLS * (ADDS + 2)
    assert sorted(seen["generated"]) == [0, 0, *[executed] * threads]
    assert theirs_later < theirs + SPREAD
    assert ours_later < ours + SPREAD
    return seen["flushes"], ours, ours_later


def _target(pid: int) -> int:
    """The program that a livepro process runs: the only child that executes anything."""
    children = [
        int(c) for t in Path(f"/proc/{pid}/task").iterdir() for c in (t / "children").read_text().split()
    ]
    return next(c for c in children if b"churn" in Path(f"/proc/{c}/cmdline").read_bytes())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program writes x86-64 code")
def test_code_that_comes_and_goes(builder: Builder, tmp_path: Path) -> None:
    """Memory does not grow behind the middle of the run: neither livepro's nor the program's."""
    churn(40, builder, tmp_path)


@pytest.mark.long(seconds=95)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program writes x86-64 code")
def test_code_that_comes_and_goes_for_long(builder: Builder, tmp_path: Path) -> None:
    churn(1000, builder, tmp_path)
