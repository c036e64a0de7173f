"""Regions of all threads together: the same again in another run, and in the words of other tools."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import livepro
from fixtures import Builder
from livepro.cli.main import main
from livepro.errors import LiveproError
from livepro.formats import looppoint
from livepro.formats.looppoint import LoopRegion, Marker
from livepro.simpoint.spinning import read_patterns, spinning
from livepro.simpoint.together import Addresses

TURNS = 4 * 10 * 1500
"""Of each of the three loops, by all threads (fixtures/c/threaded_phases.c)."""

REGIONS = [
    LoopRegion(
        1, 3, 0, None, Marker(0x401000, "a", 0x1000, 1), Marker(0x401000, "a", 0x1000, 9), 8, 5, 0.25, 1.5
    ),
    LoopRegion(
        *(2, 0, 7, Marker(0x401000, "a", 0x1000, 9)),
        *(Marker(0x401010, "a", 0x1010, 70), Marker(0x401010, "a", 0x1010, 170)),
        *(100, 4000, 0.75, 12.125),
    ),
]


def test_lists_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "pcregions.csv"
    with file.open("w") as stream:
        looppoint.write_csv(stream, REGIONS)
    assert looppoint.read_csv(str(file)) == REGIONS


def test_lists_as_gem5_takes_them_apart(tmp_path: Path) -> None:
    """By blanks first, then by the places of fields, as its LooppointCsvLoader does."""
    file = tmp_path / "pcregions.csv"
    with file.open("w") as stream:
        looppoint.write_csv(stream, REGIONS)
    with file.open(newline="") as stream:
        rows = [row for row in csv.reader(stream, delimiter=" ", quotechar="|") if len(row) > 1]
    found = {}
    for fields in [row[4].split(",") for row in rows if row[0] == "cluster"]:
        ends = (int(fields[3], 16), int(fields[6]), int(fields[7], 16), int(fields[10]))
        found[int(fields[2])] = (*ends, int(fields[11]), float(fields[14]))
    assert found == {
        1: (0x401000, 1, 0x401000, 9, 8, 1.5),
        2: (0x401010, 70, 0x401010, 170, 100, 12.125),
    }
    (warmup,) = [row[3].split(",") for row in rows if row[0] == "Warmup"]
    assert [int(warmup[0]), int(warmup[3], 16), int(warmup[6])] == [2, 0x401000, 9]
    assert [int(warmup[7], 16), int(warmup[10])] == [0x401010, 70]


def test_a_line_that_is_no_region(tmp_path: Path) -> None:
    file = tmp_path / "pcregions.csv"
    file.write_text(looppoint.HEADING + "\ncluster 0 from slice 1,global,1,0x10\n")
    with pytest.raises(LiveproError, match=":2: the line is no region"):
        looppoint.read_csv(str(file))


def test_patterns_of_waiting(tmp_path: Path, builder: Builder) -> None:
    file = tmp_path / "spin"
    file.write_text("# mine\n*!wait_for_all  # a barrier\n\n")
    assert read_patterns(str(file)) == ["*!wait_for_all"]
    file.write_text("wait_for_all\n")
    with pytest.raises(LiveproError, match=":1: 'wait_for_all' is no pattern"):
        read_patterns(str(file))
    table = livepro.run([str(builder.hosted("threaded_phases", "-O1"))]).processes[0].table
    waiting = spinning(table, ["*!wait_for_all"])
    assert {f for f, w in zip(table.function, waiting, strict=True) if w} == {"wait_for_all"}
    assert "sched_yield" in {f for f, w in zip(table.function, spinning(table), strict=True) if w}


def sniper_regions(file: Path) -> list[tuple[str, int, int, str, int, int]]:
    """Where regions begin and end for Sniper: image, offset, number of each, as Pin's controller has it."""
    found = []
    chain = re.compile(r"-control (start|stop):address:([^+:]+)\+(0x[0-9a-f]+):count(\d+):global")
    for line in file.read_text().splitlines():
        if line.startswith("#"):
            continue
        options = shlex.split(line)
        assert options[2:4] == ["-ssimuserroi", "--roi-script"]
        chains = [option.removeprefix("--trace-args=") for option in options[4:]]
        start, stop = (chain.fullmatch(text) for text in chains)
        assert start is not None
        assert stop is not None
        assert (start[1], stop[1]) == ("start", "stop")
        found.append((start[2], int(start[3], 16), int(start[4]), stop[2], int(stop[3], 16), int(stop[4])))
    return found


@pytest.mark.long(seconds=85)
@pytest.mark.parametrize(("engine", "base"), [("translate", 0), ("block", 0x400000)])
def test_regions_are_found_again(builder: Builder, engine: str, base: int, tmp_path: Path) -> None:
    """In another run, by the turns of loops that they go from and to, with as many turns in between; in a
    program that is loaded anywhere, and in one linked for an address."""
    program = builder.hosted("threaded_phases", "-O1", *(["-no-pie"] if base else []))
    (tmp_path / "spin").write_text("*!wait_for_all\n")
    command = [sys.executable, "-m", "livepro", "simpoint", "run", "--interval-size", "20k", "--thread"]
    command += [
        "together",
        "--engine",
        engine,
        "--spin",
        "spin",
        "--json",
        "study.json",
        "--loops",
        "3",
        "--",
    ]
    done = subprocess.run([*command, str(program)], capture_output=True, text=True, cwd=tmp_path)
    natively = subprocess.run(program, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, natively.stdout), done.stderr
    regions = looppoint.read_csv(str(tmp_path / "results.pcregions.csv"))
    document = json.loads((tmp_path / "results.looppoint.json").read_text())
    assert document == looppoint.to_document(regions)
    assert "left out: " in done.stderr
    assert sniper_regions(tmp_path / "results.sniper") == [
        (r.start.image, r.start.offset, r.start.number, r.end.image, r.end.offset, r.end.number)
        for r in regions
    ]

    # The three loops, 5 to 11 instructions a turn, are most of what counts; a region stands for its phase.
    study = json.loads((tmp_path / "study.json").read_text())
    whole = sum(region.length * region.multiplier for region in regions)
    assert whole == pytest.approx(study["instructions"], rel=1e-12), "sums of parts, but for their rounding"
    assert 3 <= len(regions) <= 30
    for region in regions:
        # An interval is at least as long as asked for, but for the last, and less than two looks longer.
        assert region.length < 20_000 + 2 * 2_500
        assert region.length >= 20_000 or region.slice == len(study["labels"]) - 1

    own = [region for region in regions if region.start.image == program.name]
    assert len(own) >= len(regions) - 2, "but for the loader's"
    for region in sorted(own, key=lambda region: region.end.number)[:2]:
        assert region.start.offset == region.end.offset
        assert region.relative == region.end.number - region.start.number > 0
        assert region.end.number <= TURNS
        assert not base or region.start.pc == base + region.start.offset
        place = f"{region.start.image}+{base + region.start.offset:#x}"
        again = livepro.run(
            [str(program)],
            engine=engine,
            start_at=f"{place}:{region.start.number}",
            stop_at=f"{place}:{region.end.number}",
        )
        if again.exit is None:  # it was let go, and had not ended just then
            os.waitpid(again.processes[0].pid, 0)
        assert again.region is not None
        assert again.region.ended
        process = again.processes[0]
        (row,) = np.flatnonzero(process.table.offset == base + region.start.offset)[:1]
        header = Addresses(process.table, [int(process.table.address[row])])
        assert header.executed(process.threads).tolist() == [region.relative]


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--thread", "together", "--pin-csv", "x.csv"], "--pin-csv is of one thread"),
        (["--thread", "together", "--count", "5"], "--count does not go with --thread together"),
        (["--thread", "together", "--save", "x.json"], "--save does not go with --thread together"),
        (["--thread", "together", "--spin", "none"], "none"),
        (["--spin", "none"], "--spin goes with --thread together only"),
        (["--thread", "together", "-o", "no/where"], "no/where"),
    ],
)
def test_what_is_wrong_is_said_before_the_program_runs(
    options: list[str],
    cause: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simpoint", "run", *options, "--", "touch", "it-ran"]) == 2
    assert cause in capfd.readouterr().err
    assert not (tmp_path / "it-ran").exists()


def test_a_program_without_loops(builder: Builder, capfd: pytest.CaptureFixture[str]) -> None:
    program = builder.build(Path(__file__).resolve().parents[2] / "fixtures/asm/straight.S")
    assert main(["simpoint", "run", "--thread", "together", "--interval-size", "5", "--", str(program)]) == 2
    assert "No loop was executed in the program's files." in capfd.readouterr().err
