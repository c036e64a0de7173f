"""The part of the engines' contract that is about regions of interest."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from elftools.elf.elffile import ELFFile
from engines.observed import regions

import livepro
from fixtures import Builder, Fixture, assembly

Case = dict[str, Any]


def run_cases(
    engine: str, program: Path, cases: Sequence[Case], tmp_path: Path, *arguments: str, stdin: str = ""
) -> list[dict[str, Any]]:
    """What `regions.py` says of each case."""
    out = tmp_path / "regions.json"
    arguments = (str(out), engine, json.dumps(cases), str(program), *arguments)
    assert regions(arguments, out, stdin.encode()) == b""
    answers: list[dict[str, Any]] = json.loads(out.read_text())
    return answers


def fixture_of(name: str) -> Fixture:
    """This machine's fixture of that name."""
    return next(fixture for fixture in assembly() if fixture.name == name)


def place_of(program: Path, symbol: str) -> str:
    """MODULE+0xOFFSET of a symbol."""
    with program.open("rb") as file:
        (found,) = ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name(symbol)
    return f"{program.name}+{found['st_value']:#x}"


ALL, WORK, WITHIN, LAST = 628, 204, 202, 5
"""Of regions.S, for each machine: all of it, `work`, `work` up to `within`, all from `finish` on."""


def before(arrival: int) -> int:
    """Instructions of regions.S before the arrival at `turn` with that number, from 1 to 300."""
    call, turn = divmod(arrival - 1, 100)
    return 1 + call * (1 + WORK + 2) + 1 + 1 + 2 * turn


def counted_arrivals(turn: str, within: str) -> list[tuple[Case, int]]:
    """Regions from and to a place that is reached many times, and what is to be counted in them."""
    return [
        ({"start_at": "work:2"}, ALL - before(101) + 1),
        ({"start_at": "work:1"}, ALL - 2),
        ({"start_at": f"{turn}:50"}, ALL - before(50)),
        ({"start_at": f"{turn}:300"}, ALL - before(300)),
        ({"stop_at": f"{turn}:1"}, before(1)),
        ({"stop_at": f"{turn}:101"}, before(101)),
        ({"start_at": f"{turn}:50", "stop_at": f"{turn}:250"}, before(250) - before(50)),
        ({"start_at": f"{turn}:50", "stop_at": f"{turn}"}, 2),
        ({"start_at": f"{turn}:50", "stop_at": f"{turn}:51"}, 2),
        ({"start_at": f"{turn}:50", "stop_at": f"{within}:2"}, before(200) + 3 - before(50)),
        ({"start_at": f"{turn}:150", "skip": 5, "count": 7}, 7),
        ({"start_at": f"{turn}:150", "skip": 5, "stop_at": f"{turn}:160"}, 15),
        ({"skip": 10, "stop_at": f"{turn}:160"}, before(160) - 10),
    ]


def late(warnings: Sequence[str]) -> int:
    """By how many instructions a region began or ended late, as far as it is said: nothing else may be."""
    total = 0
    for warning in warnings:
        said = re.fullmatch(
            r"The region began or ended (\d+) instructions late\."
            r"|(\d+) instructions were (?:skipped|counted) instead of (\d+)\.",
            warning,
        )
        assert said is not None, warnings
        late, done, asked = (int(number or 0) for number in said.groups())
        total += late + abs(done - asked)
    return total


class RegionContract:
    """Counting begins and ends where it was asked to, to the instruction."""

    engine: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}

    def cases(self, program: Path, cases: Sequence[Case], tmp_path: Path) -> list[dict[str, Any]]:
        return run_cases(self.engine, program, [self.options | case for case in cases], tmp_path)

    @pytest.mark.parametrize("size", [0, 7])
    def test_proved_regions(self, size: int, builder: Builder, tmp_path: Path) -> None:
        program = builder.assembly(fixture_of("regions"))
        within = place_of(program, "within")
        ended: list[tuple[Case, int]] = [
            ({"start_at": "work"}, ALL - 2),
            ({"start_at": "_start"}, ALL),
            ({"start_at": f"{program.name}!finish"}, LAST),
            ({"stop_at": "finish"}, ALL - LAST),
            ({"start_at": "work", "stop_at": "finish"}, ALL - 2 - LAST),
            ({"start_at": "work", "stop_at": "work"}, WORK + 3),
            ({"start_at": within}, ALL - 2 - WITHIN),
            ({"start_at": "work", "stop_at": within}, WITHIN),
            ({"skip": 10}, ALL - 10),
            ({"skip": 10, "count": 50}, 50),
            ({"skip": ALL - 1}, 1),
            ({"skip": ALL - 2, "count": 2}, 2),
            ({"count": 3}, 3),
            ({"start_at": "work", "skip": 5, "count": 7}, 7),
            ({"start_at": "work", "skip": WITHIN, "stop_at": "finish"}, ALL - 2 - LAST - WITHIN),
            *counted_arrivals(place_of(program, "turn"), within),
        ]
        cases = [options | {"interval_size": size} for options, _ in ended]
        for (options, count), seen in zip(ended, self.cases(program, cases, tmp_path), strict=True):
            assert seen == seen | {
                "instructions": count,
                "intervals": count if size else 0,
                "faults": [],
                "exit": 0,
                "began": True,
                "ended": True,
                "warnings": [],
            }, options

    def test_regions_that_are_not_reached(self, builder: Builder, tmp_path: Path) -> None:
        program = builder.assembly(fixture_of("regions"))
        cases: list[Case] = [
            {"start_at": "libother!work"},
            {"skip": ALL + 1},
            {"start_at": "finish", "stop_at": "work"},
            {"skip": 8, "count": ALL},
        ]
        nowhere, short, on, fewer = self.cases(program, cases, tmp_path)
        assert [(s["began"], s["ended"], s["instructions"]) for s in (nowhere, short, on, fewer)] == [
            (False, False, 0),
            (False, False, 0),
            (True, False, LAST),
            (True, False, ALL - 8),
        ]
        assert nowhere["warnings"] == [
            "libother!work, where counting was to begin, was never reached. No file that was mapped has "
            "such a place."
        ]
        assert short["warnings"] == ["Fewer than the 629 instructions to be skipped were executed."]
        assert on["warnings"] == ["work, where counting was to end, was not reached."]
        assert fewer["warnings"] == ["Fewer than the 628 instructions to be counted were executed."]

    def test_arrivals_that_do_not_come(self, builder: Builder, tmp_path: Path) -> None:
        program = builder.assembly(fixture_of("regions"))
        cases: list[Case] = [
            {"start_at": "work:4"},
            {"stop_at": "work:4"},
            {"start_at": "work:3", "stop_at": "work:2"},
            {"start_at": "finish", "stop_at": "work:4"},
        ]
        seen = self.cases(program, cases, tmp_path)
        assert [(s["began"], s["ended"], s["instructions"], s["warnings"]) for s in seen] == [
            (False, False, 0, ["work, where counting was to begin, was reached 3 times, not 4."]),
            (True, False, ALL, ["work, where counting was to end, was reached 3 times, not 4."]),
            (
                *(True, False, ALL - before(300 - 99) + 1),
                ["work, where counting was to end, was reached for the 2nd time before counting began."],
            ),
            (True, False, LAST, ["work, where counting was to end, was reached 3 times, not 4."]),
        ]

    def test_arrivals_of_threads_that_are_called_away(self, builder: Builder, tmp_path: Path) -> None:
        """The numbers of all threads add up, and a signal right before the place does not count twice."""
        threads = 4
        program = builder.hosted("arrivals", "-static")
        each = 400 if self.engine == "translate" else 60
        whole = threads * each
        first, last = whole // 4, whole // 4 * 3
        cases: list[Case] = [
            {"start_at": f"turn:{first}"},
            {"start_at": f"turn:{first}", "stop_at": f"turn:{last}"},
        ]
        answers = run_cases(
            self.engine, program, [self.options | case for case in cases], tmp_path, str(threads), str(each)
        )
        expected = [whole - first + 1, last - first]
        for seen, number in zip(answers, expected, strict=True):
            assert (seen["exit"], seen["began"], seen["ended"], seen["faults"]) == (0, True, True, [])
            assert seen["warnings"] == []
            assert seen["entered"].get("turn") == number

    def test_threads_that_sleep(self, builder: Builder, tmp_path: Path) -> None:
        """A system call that is begun again, since a signal without a handler came, counts once."""
        fixture = fixture_of("restart_sleep")
        program, whole = builder.assembly(fixture), fixture.instructions
        cases: list[Case] = [
            {"skip": skip, "count": count, "interval_size": size}
            for skip, count, size in ((8, 0, 0), (13, 7, 0), (8, 4, 5), (10, 0, 5), (14, 6, 0))
        ]
        for case, seen in zip(cases, self.cases(program, cases, tmp_path), strict=True):
            assert (seen["exit"], seen["ended"], seen["faults"]) == (0, True, []), case
            counted, asked = seen["instructions"], case["count"] or whole - case["skip"]
            assert seen["intervals"] == (counted if case["interval_size"] else 0), case
            # Which of the two runs when is chance; one that wakes ends its block.
            assert abs(counted - asked) <= late(seen["warnings"]), (case, seen)

    @pytest.mark.parametrize(
        "program",
        [pytest.param("million", marks=pytest.mark.long(seconds=55)), "threads_join", "threads_straight"],
    )
    def test_snapshots_every_so_often(self, program: str, builder: Builder) -> None:
        """Each has the instructions of all threads together that were asked for, to the last one."""
        every = {"million": 777, "threads_join": 61, "threads_straight": 701}[program]
        built = builder.assembly(fixture_of(program))
        result = livepro.run([str(built)], engine=self.engine, snapshot_every=every)
        found = [
            sum(t.counts(result.processes).instructions(result.processes[t.process].table) for t in taken)
            for taken in (snapshot.threads for snapshot in result.snapshots)
        ]
        assert found == [every * n for n in range(1, result.instructions // every + 1)]
        assert program != "million" or result.instructions == 1_000_000
        assert not result.warnings

    def test_arrivals_of_one_thread(self, builder: Builder) -> None:
        """The third thread goes round 200 times or more, two instructions each; others as they please."""
        built = builder.assembly(fixture_of("threads_join"))
        turn = place_of(built, "worker")
        for start, stop in ((20, 90), (1, 2), (199, 200)):
            options = {"start_at": f"{turn}:{start}@3", "stop_at": f"{turn}:{stop}@3"}
            result = livepro.run([str(built)], engine=self.engine, **options)
            if result.exit is None:  # it was let go, and had not ended just then
                os.waitpid(result.processes[0].pid, 0)
            assert result.region is not None
            assert result.region.ended
            table = result.processes[0].table
            assert result.processes[0].threads[2].instructions(table) == 2 * (stop - start)
        never = livepro.run([str(built)], engine=self.engine, start_at=f"{turn}:1@1")
        assert never.region is not None
        assert not never.region.began

    def test_several_threads(self, builder: Builder, tmp_path: Path) -> None:
        """The sum over all of them is as asked for, unless it is said by how much it is not."""
        program = builder.hosted("pthreads", "-static")
        cases: list[Case] = [{"start_at": "spin", "skip": 500, "count": 2000}]
        (seen,) = self.cases(program, cases, tmp_path)
        assert (seen["exit"], seen["ended"], seen["faults"]) == (0, True, [])
        assert abs(seen["instructions"] - 2000) <= late(seen["warnings"]), seen
