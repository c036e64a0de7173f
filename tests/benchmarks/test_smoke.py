"""The benchmarks run, at their smallest: their tables and their JSON say what was measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools import needed

ROOT = Path(__file__).resolve().parents[2]


def benchmark(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """One run of the benchmarks; `path` comes first where programs are searched."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.run", "--scale", "small", "--repeat", "1", *arguments],
        cwd=ROOT,
        env={**os.environ, "PATH": os.pathsep.join(filter(None, [path, os.environ["PATH"]]))},
        capture_output=True,
        text=True,
    )


def cells(line: str) -> list[str]:
    """The cells of one line of a Markdown table."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def tables(text: str) -> list[list[list[str]]]:
    """The Markdown tables of a text: rows of cells, the first row the header."""
    out: list[list[list[str]]] = []
    before = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("|"):
            if not before.startswith("|"):
                out.append([])
            out[-1].append(cells(line))
        before = line
    return [[rows[0], *rows[2:]] for rows in out]


def test_a_small_workload_under_every_tool(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = benchmark("--workloads", "gzip,start", "--markdown", "--json", str(report))
    assert done.returncode == 0, done.stderr
    ratios, seconds, start = tables(done.stdout)
    assert ratios[0] == [
        "workload",
        "native, s",
        "translate",
        "cold",
        "vectors",
        "exp-bbv",
        "bound",
        "vectors add",
    ]
    assert seconds[0] == [
        "workload",
        "million instructions",
        "native",
        "translate",
        "cold",
        "vectors",
        "exp-bbv",
    ]
    assert start[0] == ["command", "median", "least", "bound"]
    assert [row[0] for row in start[1:]] == ["python3 -c pass", "livepro --version", "livepro run -- true"]

    results: dict[str, Any] = json.loads(report.read_text())
    row = results["workloads"]["gzip"]
    of = row["runners"]
    assert list(of) == ["native", "translate", "cold", "vectors", "exp-bbv"]
    assert all(one["verdict"] == "ok" for one in of.values())
    assert all(len(one["cpu"]) == len(one["wall"]) == 1 for one in of.values())
    for one in of.values():
        assert one["cpu_ratio"] == one["cpu"][0] / of["native"]["cpu"][0]
        assert one["wall_ratio"] == one["wall"][0] / of["native"]["wall"][0]
    assert ratios[1][:6] == [
        "gzip",
        f"{of['native']['cpu_median']:.3f}",
        *(f"{of[name]['cpu_ratio']:.2f}" for name in ("translate", "cold", "vectors", "exp-bbv")),
    ]
    assert seconds[1][1] == f"{row['instructions'] / 1e6:,.1f}"
    assert row["instructions"] > 1 << 20  # gzip looks at each byte of a mebibyte


def test_another_output_is_no_time(tmp_path: Path) -> None:
    tool = tmp_path / "valgrind"
    tool.write_text("#!/bin/sh\necho something else\n")
    tool.chmod(0o755)
    done = benchmark("--workloads", "xz", "--runners", "exp-bbv", "--markdown", path=str(tmp_path))
    ratios, seconds = tables(done.stdout)
    assert ratios[1][2] == "other output"
    assert seconds[1][3] == "other output"


def test_a_run_of_livepro_that_takes_too_long_fails_the_benchmark(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = benchmark(
        *("--workloads", "true", "--runners", "translate", "--limit", "0.05", "--json", str(report))
    )
    assert done.returncode == 1
    of = json.loads(report.read_text())["workloads"]["true"]["runners"]
    assert of["native"]["verdict"] == "ok"
    assert of["translate"]["verdict"] == "too long"
    assert of["translate"]["cpu_ratio"] is None


def test_unknown_names_are_refused() -> None:
    done = benchmark("--workloads", "gzip,nothing")
    assert done.returncode == 1
    assert done.stderr.startswith("There is no workload 'nothing'; there are true, ls, ")


def test_attaching_is_measured() -> None:
    """Every row has its two numbers, and no thread was held for nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.attach", "--threads", "5", "--turns", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    ((_, *rows),) = tables(done.stdout)
    assert len(rows) == 9
    times = {name: float(worst) for name, _, worst, _ in rows}
    assert 0 < times["attach: CPU time of that"] <= times["attach: first stop to last thread running"]
    assert 0 < times["detach: CPU time of that"] <= times["detach: until the last thread is free"]


def test_turns_are_measured() -> None:
    """A row for each part of the work and one for all of it; counting costs something."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.turns", "--turns", "40", "--repeat", "1", "--programs", "c"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    ((_, *rows),) = tables(done.stdout)
    assert [name for name, *_ in rows] == ["c, product", "c, sorting", "c, strings", "c"]
    native = [int(took.replace(",", "")) for _, took, *_ in rows]
    assert native[-1] == sum(native[:-1]) > 0
    assert all(float(plain) > 0 and float(vectors) > 0 for *_, plain, vectors, _ in rows)


@pytest.mark.long  # compiles the analyses of three commands
def test_the_event_stream_is_measured() -> None:
    needed("valgrind", "valgrind")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.events", "--scale", "small", "gzip"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    heading, row = done.stdout.splitlines()
    assert heading.split() == ["program", "native", "blocks", "record", "split", "cachesim", "cachegrind"]
    assert row.split()[0] == "gzip"
    assert row.count("x") == 5  # each of them ended as natively, with the same output
