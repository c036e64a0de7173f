"""Valgrind's exp-bbv as an independent referee: on programs without libc its total is
the number of instructions that the hardware retires, to the instruction.

Not so for whole programs with glibc: Valgrind shows them another CPU (so that
glibc's resolvers pick other string functions) and another auxiliary vector, and
replaces some functions. There only regions could be compared.

Where Valgrind's way of counting or its decoder differs, a fixture says why in its
REFEREE line. The general cases: exp-bbv counts an instruction when it begins, so
one that faults counts, and counts again when it is repeated; its totals of a
forked child start from the parent's; and Valgrind 3.19 runs no AVX-512.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from engines.observed import Observed, observe

from fixtures import Builder, Fixture, assembly, freestanding

VARIANTS = ("-O0", "-O2", "-O3 -march=haswell")
"""haswell is the newest of gcc's CPUs whose instructions Valgrind 3.19 knows."""


@dataclass(frozen=True)
class Verdict:
    """The totals at the end of an exp-bbv run, over its threads."""

    status: int
    output: bytes
    instructions: int
    reps: int
    unique_reps: int
    fldcw: int


def referee(program: Path, *args: str) -> Verdict:
    """Run a program under exp-bbv."""
    command = ["valgrind", "--tool=exp-bbv", "--instr-count-only=yes", "--smc-check=all"]
    log = program.with_suffix(".log")
    files = [f"--bb-out-file={program}.bb", f"--log-file={log}"]
    done = subprocess.run([*command, *files, str(program), *args], capture_output=True, timeout=60)
    text = log.read_text()

    def total(name: str) -> int:
        found = re.findall(rf"# +{name}: (\d+)", text)
        assert found, text
        return sum(map(int, found))

    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Verdict(
        status,
        done.stdout,
        total("Total instructions"),
        total("Total reps"),
        total("Unique reps"),
        total("Total fldcw instructions"),
    )


def confirmed() -> list[Fixture]:
    return [f for f in assembly() if not (f.no_referee or f.fuzzy)]


@pytest.mark.parametrize("fixture", confirmed(), ids=lambda fixture: fixture.name)
def test_referee_confirms_the_proof(fixture: Fixture, builder: Builder) -> None:
    """The counts proved in the sources, against Valgrind: no engine takes part."""
    verdict = referee(builder.assembly(fixture), *fixture.args)
    (proved,) = fixture.processes
    assert verdict.status == proved.exit
    assert verdict.instructions == proved.instructions
    assert verdict.unique_reps == proved.rep_instructions
    assert verdict.fldcw == fixture.fldcw


@pytest.mark.some(8)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("fixture", freestanding(), ids=lambda fixture: fixture.name)
def test_step_agrees(fixture: Fixture, variant: str, builder: Builder, tmp_path: Path) -> None:
    """C programs without libc: what the step engine counts is what exp-bbv counts."""
    program = builder.freestanding(fixture, *variant.split())
    verdict = referee(program)
    seen = observe([program], tmp_path / "run.json", engine="step")
    assert seen.faults == []
    assert seen.stdout == verdict.output != b""
    assert seen.result["exit"] == verdict.status == 0
    assert totals(seen) == (verdict.instructions, verdict.unique_reps, verdict.fldcw)
    assert 0 <= verdict.reps - seen.total("rep_iterations") <= verdict.unique_reps


def totals(seen: Observed) -> tuple[int, int, int]:
    return seen.result["instructions"], seen.total("rep_instructions"), seen.total("fldcw")


@pytest.mark.parametrize("fixture", freestanding(), ids=lambda fixture: fixture.name)
def test_native_instructions_give_the_same_output(fixture: Fixture, builder: Builder, tmp_path: Path) -> None:
    """Built for this very CPU, AVX-512 included where it has it, which Valgrind cannot
    run: the same output as at -O0, and the same count twice."""
    program = builder.freestanding(fixture, "-O3", "-march=native")
    plain = subprocess.run([builder.freestanding(fixture, "-O0")], capture_output=True, timeout=20)
    first, second = (observe([program], tmp_path / f"run{n}.json", engine="step") for n in range(2))
    assert first.stdout == second.stdout == plain.stdout
    assert first.result["instructions"] == second.result["instructions"] > 1000


@pytest.mark.parametrize("name", ["rep_movs", "rep_scas", "direction_flag", "self_reading"])
def test_the_referees_reps(name: str, builder: Builder) -> None:
    """What exp-bbv means by "Total reps": Valgrind runs a rep as a loop whose last pass
    sees that the count is used up, so a rep that its count ends shows one pass more
    than it has iterations; one that a comparison ends does not. (rep lods is an
    exception: Valgrind 3.19 ignores its prefix.)"""
    fixture = next(f for f in assembly() if f.name == name)
    (proved,) = fixture.processes
    ended_by_comparison = {"rep_scas": 4 * 2}.get(name, 0)
    by_count = proved.rep_instructions - ended_by_comparison
    assert referee(builder.assembly(fixture)).reps == proved.rep_iterations + by_count
