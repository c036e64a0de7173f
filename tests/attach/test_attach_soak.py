"""A short soak; `python -m tests.soak --times 200` is the long one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attach.targets import ROOT
from soak import ledger
from soak.programs import present
from soak.rounds import ENGINES, Outcome, Rounds, draw
from soak.runtimes import RUNTIMES, judge

from fixtures import Builder

SEED = 1


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["cpython", "java-g1", "shell", "waits", "server"])
def test_attached_to_again_and_again(name: str, tmp_path: Path) -> None:
    rounds = Rounds(tmp_path)
    for number in range(2):
        drawn, generator = draw(SEED, number, [name], ["translate"], ["once"])
        outcome = rounds.make(drawn, generator)
        assert outcome.kind == "right", outcome.told


WAYS = "once,several,files,windows,cycles,interrupted,live,run"
"""All but `commanded`: an answer to a question for metrics may yet fail, beside an unharmed program."""
PROGRAMS = [name for name in present() if name != "go"]
"""All but Go's, whose handler of SIGTRAP the translate engine may yet lose."""


@pytest.mark.long(seconds=90)
def test_a_round_of_each_program(tmp_path: Path) -> None:
    """Those programs that this machine has, engines by turns; minutes at most."""
    if os.environ.get("CI"):
        missing = [runtime.package for runtime in RUNTIMES.values() if not runtime.present]
        assert missing == [], f"Debian packages that CI must have: {missing}"
    results = tmp_path / "rounds"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.soak",
            "--seed",
            str(SEED),
            "--times",
            "19",
            "--minutes",
            "1.5",
            "--ways",
            WAYS,
            "--results",
            results,
            *PROGRAMS,
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(results.read_text().splitlines()) > 5


def test_rounds_are_drawn_by_their_seed_and_number() -> None:
    programs = ["node", "shell"]
    first = [draw(3, n, programs, ENGINES) for n in range(40)]
    again = [draw(3, n, programs, ENGINES) for n in range(40)]
    assert [drawn for drawn, _ in first] == [drawn for drawn, _ in again]
    assert [g.random() for _, g in first] == [g.random() for _, g in again]
    assert [drawn.program for drawn, _ in first[:4]] == ["node", "shell", "node", "shell"]
    assert [drawn.fresh for drawn, _ in first[:6]] == [True, True, False, False, True, True]
    assert {drawn.engines[0] for drawn, _ in first} == set(ENGINES)
    assert not [drawn for drawn, _ in first if drawn.way == "run" and drawn.program == "shell"]
    assert [drawn for drawn, _ in first] != [draw(4, n, programs, ENGINES)[0] for n in range(40)]


@pytest.mark.parametrize(
    ("out", "status", "verdict"),
    [
        ("ready\nwrong 0 of 12\n", 0, "right"),
        ("wrong 0 of 12\n", None, "right"),
        ("ready\nwrong 2 of 12\n", 0, "wrong: wrong 2 of 12, status 0: ''"),
        ("ready\nwrong 0 of 12\n", 3, "wrong: wrong 0 of 12, status 3: ''"),
        ("ready\n", -5, "died of signal 5: ''"),
        ("ready\n", 0, "ended with 0: 'ready\\n' ''"),
    ],
)
def test_a_programs_last_words_are_judged(out: str, status: int | None, verdict: str) -> None:
    assert judge(out, "", status, 0) == verdict


def test_a_program_that_is_hurt_is_noticed(tmp_path: Path, builder: Builder) -> None:
    """What the soak must not miss: a thread that loses a register, and a process that is killed."""
    from soak.runtimes import Busy

    hurt = Busy("checks", builder)
    hurt.target.process.kill()
    assert hurt.verdict(30).startswith("died of signal 9")


def test_the_ledger_grows_by_a_line(tmp_path: Path) -> None:
    outcomes = [
        Outcome(0, "node", "once", True, "right", "", 5),
        Outcome(1, "node", "once", True, "death", "what it said", 2),
        Outcome(2, "node", "once", False, "wrong", "what it said"),
    ]
    row = ledger.line(outcomes, datetime(2026, 1, 2, tzinfo=UTC))
    assert row.startswith("| 2026-01-02 | ")
    assert row.endswith(" | 2 | 1 | 1 | 1 | 0 | 7 |\n")
    assert row.count("|") == ledger.HEAD.splitlines()[0].count("|")
    page = tmp_path / "page.md"
    page.write_text("# A page\n")
    ledger.append(page, outcomes)
    ledger.append(page, outcomes)
    assert page.read_text() == "# A page\n\n" + ledger.HEAD + 2 * ledger.line(outcomes)


def test_outcomes_are_read_as_they_were_written() -> None:
    outcome = Outcome(1, "node", "once", True, "death", "what it said")
    assert Outcome(**json.loads(json.dumps(outcome.document()))) == outcome
