"""Parts of a run that are traced: simulation points, regions, threads, a process that runs for a while."""

from __future__ import annotations

import gzip
import json
import lzma
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from events.streams import record
from traces.tracing import champsim, fixture, livepro, traced

from fixtures import Builder

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")


def test_points_are_parts_of_the_whole(builder: Builder, tmp_path: Path) -> None:
    program = fixture(builder, "hundred_thousand")
    traced(tmp_path / "all.champsim", program)
    whole = champsim((tmp_path / "all.champsim").read_bytes())
    (tmp_path / "p.simpoints").write_text("3 0\n0 1\n4 2\n")
    (tmp_path / "p.weights").write_text("0.5 0\n0.25 1\n0.25 2\n")
    options = ("--simpoints", "p.simpoints", "--weights", "p.weights", "--interval-size", "10001")
    traced(tmp_path / "t.xz", program, *options, "--warmup", "777")
    listed = [line.split() for line in (tmp_path / "t.xz.points").read_text().splitlines()[1:]]
    assert {(row[0], row[2], row[3]) for row in listed} == {
        ("t.point0.xz", "3", "0.5"), ("t.point1.xz", "0", "0.25"), ("t.point2.xz", "4", "0.25"),
    }  # fmt: skip
    for point, interval in ((0, 3), (1, 0), (2, 4)):
        found = champsim(lzma.decompress((tmp_path / f"t.point{point}.xz").read_bytes()))
        begin = max(0, interval * 10001 - 777)
        assert found == whole[begin : (interval + 1) * 10001]
    traced(tmp_path / "part.champsim", program, "--skip", "5", "--count", "99")
    assert champsim((tmp_path / "part.champsim").read_bytes()) == whole[5:104]


@pytest.mark.some(4)
@pytest.mark.parametrize("engine", ["step", "translate"])
@pytest.mark.parametrize(
    ("start", "stop", "more"), [("5", "9", []), ("3", "", ["--skip", "7", "--count", "100"]), ("", "4", [])]
)
def test_regions_are_parts_of_the_whole(
    engine: str, start: str, stop: str, more: list[str], builder: Builder, tmp_path: Path
) -> None:
    """From and to the arrival with a number at a loop's header."""
    program = fixture(builder, "nested_loops")
    traced(tmp_path / "all.champsim", program)
    whole = champsim((tmp_path / "all.champsim").read_bytes())
    ips = [r[0] for r in whole]
    header = next(ip for ip in ips if ips.count(ip) > 12)
    at = [n for n, ip in enumerate(ips) if ip == header]
    place = f"{program.name}+{header:#x}"  # it is linked to run there
    options = [*(["--start-at", f"{place}:{start}"] if start else []), *more, "--engine", engine]
    options += ["--stop-at", f"{place}:{stop}"] if stop else []
    traced(tmp_path / "t.champsim", program, *options)
    begin = at[int(start) - 1] if start else 0
    end = at[int(stop) - 1] if stop else begin + 107
    begin += 7 if more else 0
    assert champsim((tmp_path / "t.champsim").read_bytes()) == whole[begin:end]


def test_each_thread_has_a_file(builder: Builder, tmp_path: Path) -> None:
    program = fixture(builder, "threads_handoff")
    run = record("step", [program], tmp_path / "events")
    traced(tmp_path / "t.din.gz", program)
    for number, events in enumerate(run["threads"]):
        name = f"t.{number + 1}.din.gz" if number else "t.din.gz"
        text = gzip.decompress((tmp_path / name).read_bytes()).decode()
        found = Counter("LSI"[int(line[0])] for line in text.splitlines())
        assert found == Counter(kind for kind, _, _ in events)


def test_a_point_beyond_the_end_is_told(builder: Builder, tmp_path: Path) -> None:
    program = fixture(builder, "hundred_thousand")
    (tmp_path / "p").write_text("30 0\n")
    done = livepro(
        "trace", "-o", "t", "--simpoints", "p", "--interval-size", "10000", "--", program, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "beyond the end of this run" in done.stderr


def test_the_last_interval_may_be_a_shorter_point(builder: Builder, tmp_path: Path) -> None:
    """Of 100,000 instructions."""
    program = fixture(builder, "hundred_thousand")
    (tmp_path / "p").write_text("1 0\n3 1\n")
    command = ("trace", "-o", "t", "--simpoints", "p", "--interval-size", "30000", "--warmup", "1000")
    done = livepro(*command, "--", program, cwd=tmp_path)
    assert done.returncode == 0
    assert "point1 ends with the run, after 11,000 instructions of 31,000" in done.stderr
    assert "point0" not in done.stderr.partition("warning")[2]
    told = livepro("trace", "info", "t.point1", cwd=tmp_path).stdout
    assert re.search(r"instructions +(\d+,\d+)", told)[1] == "11,000"  # type: ignore[index]


@pytest.mark.long(seconds=55)
def test_a_process_that_runs_is_traced_for_a_while_and_goes_on(tmp_path: Path) -> None:
    script = "while [ ! -e stop ]; do :; done; echo ended > out"
    with subprocess.Popen(["sh", "-c", script], cwd=tmp_path) as process:
        done = livepro("trace", "-o", "t.gz", "--pid", str(process.pid), "--duration", "1s", cwd=tmp_path)
        assert process.poll() is None
        (tmp_path / "stop").touch()
        assert process.wait(60) == 0
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == "ended\n"
    told = json.loads(livepro("trace", "info", "--json", "t.gz", cwd=tmp_path).stdout)["t.gz"]
    row = next(line for line in done.stderr.splitlines() if line.endswith("t.gz")).split()
    assert [f"{told[name]:,}" for name in ("instructions", "loads", "stores")] == row[:3]
    assert told["instructions"] > 1000
    assert told["faults"] == []
