"""The part of the engines' contract that is about commands given while a program runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from engines.observed import Observed, converse

from fixtures import Builder

Step = tuple[str, Any]


def spin(*turns: int) -> int:
    """What spin (fixtures/c/spin.h) executes, called with so many turns each time."""
    return sum(2 * n + 2 for n in turns)


class ControlContract:
    """Reset, snapshot, pause, resume and status, from outside the program."""

    engine: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}

    def converse(self, tmp_path: Path, steps: Sequence[Step], program: Path, **options: Any) -> Observed:
        options = self.options | options
        seen = converse(steps, [program], tmp_path / "conversation.json", engine=self.engine, **options)
        assert seen.stderr == b""
        assert seen.faults == []
        assert seen.result["warnings"] == []
        assert seen.result["exit"] == 0
        return seen

    @pytest.mark.parametrize("size", [0, 100])
    def test_reset_snapshot_pause_and_resume(self, size: int, builder: Builder, tmp_path: Path) -> None:
        """Each command finds the program waiting, so the counts between two are those of its work."""
        steps: list[Step] = [
            ("await", "ready\n"),
            ("send", "AC"),
            ("await", "AC"),
            ("rest", ""),
            ("snapshot", "before"),
            ("reset", ""),
            ("snapshot", "reset"),
            ("send", "B"),
            ("await", "B"),
            ("rest", ""),
            ("snapshot", "B, done"),
            ("pause", ""),
            ("send", "Z"),
            ("await", "Z"),
            ("rest", ""),
            ("snapshot", "paused"),
            ("resume", ""),
            ("send", "D"),
            ("await", "D"),
            ("rest", ""),
            ("status", ""),
            ("send", "."),
        ]
        seen = self.converse(tmp_path, steps, builder.hosted("control", "-static"), interval_size=size)
        before, reset, worked, paused = (s["threads"] for s in seen.result["snapshots"])
        assert [s["label"] for s in seen.result["snapshots"]] == ["before", "reset", "B, done", "paused"]
        assert before[0]["functions"]["spin"] == spin(100, 300)
        assert reset[0]["instructions"] == 0
        assert worked[0]["functions"]["spin"] == spin(200)
        assert paused == worked
        (thread,) = seen.threads
        assert thread["functions"]["spin"] == spin(200, 400)
        # Around spin the program does the same in each portion; none is lost at the seams.
        around = worked[0]["instructions"] - spin(200)
        assert 0 < around < 100
        if size:
            whole, rest = divmod(thread["instructions"], size)
            assert thread["intervals"] == [size] * whole + [rest] * (rest > 0)
        status = seen.result["answers"][-1]
        assert spin(200, 400) < status["instructions"] < thread["instructions"]
        assert (status["paused"], status["snapshots"], status["threads"]) == (False, 4, 1)
        assert status["engine"] == self.engine

    @pytest.mark.parametrize("size", [0, 7])
    def test_threads_that_run_meanwhile(self, size: int, builder: Builder, tmp_path: Path) -> None:
        """Commands find threads anywhere: counts and vectors must agree whatever was in the way
        (which `faults` compares), nothing may be counted in a pause or before a reset."""
        steps: list[Step] = [("await", "ready\n"), ("snapshot", "early"), ("pause", "")]
        steps += [("reset", ""), ("snapshot", "empty"), ("resume", "")]
        for turn in range(6):
            steps += [
                ("pause", ""),
                ("snapshot", "held"),
                ("sleep", 0.02),
                ("snapshot", "held"),
                ("resume", ""),
            ]
            steps += [("sleep", 0.02), ("reset", "")] if turn == 2 else [("sleep", 0.02)]
        steps += [("pause", ""), ("snapshot", "held"), ("send", "."), ("await", "done\n")]
        seen = self.converse(tmp_path, steps, builder.hosted("busy_threads", "-static"), interval_size=size)
        early, empty, *held = (s["threads"] for s in seen.result["snapshots"])
        assert len(early) == 5
        assert [len(threads) for threads in held] == [4] * 13  # the brief one had ended before the reset
        assert held[0:-1:2] == held[1:-1:2]
        assert [t["faults"] for threads in held for t in threads] == [[]] * 52
        whole = [sum(t["instructions"] for t in threads) for threads in held]
        assert [t["instructions"] for t in empty] == [0] * 4
        assert whole[:6] == sorted(whole[:6])
        assert whole[6:] == sorted(whole[6:])
        final = [dict(thread, intervals=[], vectors="") for thread in seen.threads]
        assert [t for t in final if t["tid"] in {t["tid"] for t in held[-1]}] == held[-1]
        for thread in seen.threads:
            assert set(thread["intervals"][:-1]) <= {size}
            assert sum(thread["intervals"]) == (thread["instructions"] if size else 0)

    def test_commands_of_the_program_itself(self, builder: Builder, tmp_path: Path) -> None:
        """Through the C header. (The exact counts of commands: fixtures/asm/commands.S.)"""
        program = builder.hosted("inprocess", "-static")
        seen = self.converse(tmp_path, [("await", "\n")], program)
        first, second = (s["threads"][0] for s in seen.result["snapshots"])
        assert [s["label"] for s in seen.result["snapshots"]] == ["first / 50 % \u00e4", "second"]
        assert first["functions"]["spin"] == spin(100)
        assert second["functions"]["spin"] == spin(100, 200)
        assert seen.threads[0]["functions"]["spin"] == spin(100, 200)
