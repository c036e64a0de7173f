"""Faults are planned, made and judged as they should; a sample of them is survived."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tools import turn

from injection.campaign import Outcome, exhaustive, numbers, sampled
from injection.faults import CALLS_FAIL, ERRORS, KINDS, PHASES, Fault, Point, exception
from injection.hook import Hook
from injection.table import table

ROOT = Path(__file__).resolve().parents[2]
PARTS = 4
"""In so many days all faults are made."""

POINTS = Counter(
    {
        Point("engines.base:Engine.leave", "detach"): 1,
        Point("linux.ptrace:call", "attach"): 9,
        Point("ptrace PTRACE_CONT", "run"): 2,
    }
)
OUTCOME = Outcome(
    "threads",
    "translate",
    Fault(Point("linux.ptrace:call", "attach"), 2, "call", "EIO"),
    True,
    "right",
    70,
    "said",
    False,
)


def injection(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.injection", *arguments], capture_output=True, text=True, cwd=ROOT
    )


def test_first_second_and_last_call() -> None:
    assert [numbers(n) for n in (1, 2, 3, 9)] == [[1], [1, 2], [1, 2, 3], [1, 2, 9]]


def test_every_point_fails_in_turn() -> None:
    made = list(exhaustive(POINTS, ERRORS, ["call"], 0))
    assert [(f.point.name, f.number) for f in made] == [
        ("engines.base:Engine.leave", 1),
        *(("linux.ptrace:call", n) for n in (1, 2, 9)),
        *(("ptrace PTRACE_CONT", n) for n in (1, 2)),
    ]
    assert len({f.kind for f in made}) > 3
    assert all(f.kind in CALLS_FAIL for f in made if not f.point.is_function)
    turned = list(exhaustive(POINTS, ERRORS, ["call"], 1))
    assert [f.kind for f in turned] != [f.kind for f in made]
    every = list(exhaustive(POINTS, ERRORS, ["call", "return"], 0, every=True))
    assert len(every) == 4 * 2 * len(ERRORS) + 2 * len(CALLS_FAIL)


def test_a_sample_is_drawn_by_its_seed() -> None:
    first = list(sampled(POINTS, 200, 1))
    assert first == list(sampled(POINTS, 200, 1))
    assert first != list(sampled(POINTS, 200, 2))
    assert {f.kind for f in first} == set(KINDS)
    assert all(1 <= f.number <= POINTS[f.point] for f in first)
    assert all(f.moment == "call" and f.kind in CALLS_FAIL for f in first if not f.point.is_function)


def test_an_oserror_is_of_its_own_class() -> None:
    assert isinstance(exception("ESRCH", "it"), ProcessLookupError)
    assert isinstance(exception("EPERM", "it"), PermissionError)
    assert isinstance(exception("KeyError", "it"), KeyError)


class Attachment:
    """What the hook knows the phase by."""

    _began: float | None = None
    _ended: float | None = None

    class engine:
        leaving = False


def test_the_hook_fails_the_right_call_in_its_phase_and_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    point = Point("linux.ptrace:call", "run")
    hook = Hook(Fault(point, 2, "call", "KeyError"))
    hook.passes(point.name, "call")  # there is no attachment yet
    hook._attachment = Attachment()
    hook.passes(point.name, "call")  # another phase
    Attachment._began = 1.0
    try:
        hook.passes(point.name, "call")
        hook.passes(point.name, "return")
        hook.passes("linux.ptrace:raw", "call")
        with pytest.raises(KeyError, match=r"linux\.ptrace:call"):
            hook.passes(point.name, "call")
        hook.passes(point.name, "call")
    finally:
        Attachment._began = None
    assert capfd.readouterr().err == "[injected: run linux.ptrace:call #2 at its call: KeyError]\n"


def test_the_table_tells_who_did_not_survive() -> None:
    died = Outcome(**{**vars(OUTCOME), "verdict": "died of signal 5: ''"})
    shown = table([OUTCOME, OUTCOME, died])
    assert shown.startswith("3 attachments, 3 faults made, 2 survived;")
    assert re.search(r"^EIO +3 +2  1 died of signal 5$", shown, re.MULTILINE)
    assert re.search(r"^linux\.ptrace:call +3 +2  1 died of signal 5$", shown, re.MULTILINE)
    assert "(all survived)" in table([OUTCOME])


def test_outcomes_are_read_as_they_were_written() -> None:
    assert Outcome.read(json.loads(json.dumps(OUTCOME.document()))) == OUTCOME


def test_letting_go_is_survived_when_it_fails(tmp_path: Path) -> None:
    results = tmp_path / "outcomes"
    done = injection(
        "--only", "lifecycle.detaching:Detacher.begin", "--phase", "detach", "--results", results
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = [Outcome.read(json.loads(line)) for line in results.read_text().splitlines()]
    assert outcomes
    assert [o for o in outcomes if not o.made or o.livepro == 0] == []


@pytest.mark.parametrize("failing", ["NewCode.enter", "CompiledBuilder.enter_ways", "TranslatedModule.made"])
def test_what_threads_run_in_before_it_is_entered_is_left(failing: str, tmp_path: Path) -> None:
    """Compiled code has let them go on there, and an error comes before anybody else knows of it: the program
    hung or died."""
    if platform.machine() != "x86_64":
        pytest.skip("compiled code answers stops on x86-64 alone: nothing is run before it is entered")
    results = tmp_path / "outcomes"
    done = injection(
        *("--only", failing, "--number", "1", "--seed", "1", "--moments", "call,return", "--every-kind"),
        *("--results", results),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(Outcome.read(json.loads(line)).made for line in results.read_text().splitlines())


@pytest.mark.long(seconds=120)
@pytest.mark.parametrize("phase", PHASES)
def test_every_fault_is_survived(phase: str, tmp_path: Path) -> None:
    """Each function, ptrace request and system call fails at its first, second and last call. Those are some
    two thousand attachments: a fourth of them whenever this runs, another one than the last time."""
    part = f"{turn(PARTS) + 1}/{PARTS}"
    results = tmp_path / "outcomes"
    done = injection("--phase", phase, "--seed", "1", "--part", part, "--results", results)
    assert done.returncode == 0, f"part {part}\n{done.stdout}{done.stderr}"
    assert len(results.read_text().splitlines()) > 300 // PARTS


@pytest.mark.long(seconds=35)
@pytest.mark.parametrize(
    "way",
    [
        ("--engine", "translate"),
        ("--engine", "block"),
        ("--engine", "step"),
        ("--target", "python"),
        ("--kinds", "KILL-FRONT"),
    ],
    ids=" ".join,
)
def test_a_sample_is_survived(way: tuple[str, ...]) -> None:
    """Of faults drawn, at the end of what failed, too, and by the other engines. (All kinds but SIGKILL to
    the tracer itself, which nothing can be promised for.)"""
    number = "12" if "python" in way else "60"
    done = injection("--times", number, "--seed", "1", *way)
    assert done.returncode == 0, done.stdout + done.stderr
