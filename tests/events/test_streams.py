"""The engines' event streams: proved addresses, equal from engine to engine, equal to the counts."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
from events.streams import proved, record, record_all, symbols

from fixtures import Builder, Fixture, assembly

MACHINE = platform.machine()
ENGINES = ("step", "block", "translate")
PUSHED = {"x86_64": 8, "aarch64": 16}[MACHINE]
"""Bytes by which the fixtures with proved addresses first lower the stack."""
SOME = (
    *(
        "accesses",
        "avx512",
        "direction_flag",
        "execve",
        "fork",
        "mid_block",
        "mov_ss",
        "rep_cmps",
        "rep_fault",
    ),
    *("segments", "segment_instructions", "signal_nested", "signal_segv", "smc_mprotect", "threads_handoff"),
    *("vfork", "x87", "accesses_extended", "exclusive", "lse", "neon", "pauth", "pc_relative", "sve"),
)
DIFFERENT = {
    "commands": "resets its counts",
    "spin": "takes its signals when they come",
    "threads_join": "may wait for a thread, or not",
    "threads_straight": "may wait for a thread, or not",
    "vsyscall": "the translate engine counts the call's instruction as the one behind it",
}


def fixtures(*, long: bool) -> list[Any]:
    chosen = [f for f in assembly() if not f.heavy and f.name not in DIFFERENT and (f.name in SOME) != long]
    return [pytest.param(f, id=f.name) for f in chosen]


def instructions(events: list[list[Any]]) -> int:
    return sum(event[0] == "I" for event in events)


def recorded(
    fixture: Fixture, program: Path, output: Path, *settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """Runs of the fixture, each one's stream as long as its counts.

    An interrupt makes a store-exclusive fail, and the program says by its exit status that it tried
    again: such a run has other events than one without, so they are made again until there was none."""
    for _ in range(10):
        found = record_all(settings, [program, *fixture.args], output)
        for run in found:
            counts = sorted(count for _, count in run["counts"])
            assert sorted(map(instructions, run["threads"])) == counts
        if not (fixture.varies and any(run["exit"] for run in found)):
            return found
    raise AssertionError(f"{fixture.name} was interrupted in ten runs")


def compare(fixture: Fixture, builder: Builder, directory: Path) -> None:
    if fixture.missing:
        pytest.skip(f"the processor has no {' '.join(fixture.missing)}")
    program, output = builder.assembly(fixture), directory / "runs"
    runs = recorded(
        fixture,
        program,
        output,
        *({"engine": name} for name in ENGINES),
        {"engine": "translate", "chunk_words": 40},  # a chunk is full again and again
        {
            "engine": "translate",
            "chunk_words": 200,
            "turn": 50,
        },  # and smaller while there are several threads
    )
    _, _, translated, small, _ = runs
    plain = [{"engine": name, "addresses": False} for name in ("step", "translate")]
    if MACHINE == "x86_64":
        compiled = {"engine": "translate", "kept": str(directory / "kept"), "compiled": True}
        runs += recorded(fixture, program, output, compiled)
        plain.append({**compiled, "addresses": False})
    for run in runs:
        assert run["exit"] == runs[0]["exit"]
        assert run["threads"] == runs[0]["threads"]
    for run in recorded(fixture, program, output, *plain):
        assert run["exit"] == runs[0]["exit"]
        assert run["threads"] == [[e for e in events if e[0] not in "LS"] for events in runs[0]["threads"]]
    assert small["chunks"] >= translated["chunks"]


@pytest.mark.some(9)
@pytest.mark.parametrize("fixture", fixtures(long=False))
def test_streams_are_equal(fixture: Fixture, builder: Builder, tmp_path: Path) -> None:
    compare(fixture, builder, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("fixture", fixtures(long=True))
def test_streams_of_all_fixtures_are_equal(fixture: Fixture, builder: Builder, tmp_path: Path) -> None:
    compare(fixture, builder, tmp_path)


PROVED = [pytest.param(f, id=f.name) for f in assembly() if f.name.startswith("accesses")]


@pytest.mark.parametrize("fixture", PROVED)
@pytest.mark.parametrize("engine", ENGINES)
def test_addresses_are_those_proved(engine: str, fixture: Fixture, builder: Builder, tmp_path: Path) -> None:
    if fixture.missing:
        pytest.skip(f"the processor has no {' '.join(fixture.missing)}")
    program = builder.assembly(fixture)
    (events,) = record(engine, [program], tmp_path / "events")["threads"]
    accesses = [event for event in events if event[0] in "LS"]
    first_push = next((address for kind, address, _ in accesses if kind == "S" and address >> 40), 0)
    names = symbols(program) | {"stack": first_push + PUSHED}
    assert accesses == proved(fixture.source, names)


@pytest.mark.parametrize("chunk", [1, 7, 20])
def test_registers_are_the_programs_own_if_livepro_fails_at_a_full_chunk(
    chunk: int, builder: Builder, tmp_path: Path
) -> None:
    """Where some are borrowed."""
    program = builder.assembly(next(f for f in assembly() if f.name == "registers_kept"))
    run = record("translate", [program], tmp_path / "run", chunk_words=40, fails=chunk)
    assert run["exit"] == 0
    assert any("as planned" in warning for warning in run["warnings"])


@pytest.mark.skipif(MACHINE != "x86_64", reason="of AArch64 programs nothing is kept")
def test_what_is_kept_records_where_the_program_is_now(builder: Builder, tmp_path: Path) -> None:
    """An operand relative to its instruction is elsewhere when its module is."""
    program, kept, places = builder.hosted("own_address", "-fpie", "-pie"), tmp_path / "kept", set()
    for n in range(3):
        run = record("translate", [program], tmp_path / str(n), kept=str(kept), aslr=True)
        place = int(run["stdout"], 16)
        assert (run["put_back"] > 0) == (n > 0)
        assert run["threads"][0].count(["S", place, 8]) == 1000
        places.add(place)
    assert len(places) > 1  # once in 2**27 runs all three are at one place


@pytest.mark.long(seconds=45)
@pytest.mark.skipif(MACHINE != "x86_64", reason="of AArch64 programs nothing is kept")
@pytest.mark.parametrize("aslr", [False, True])
def test_what_is_kept_records_the_same(aslr: bool, tmp_path: Path) -> None:
    """Libraries lie elsewhere in each run if addresses are random."""
    kept = tmp_path / "kept"

    def runs(*command: str) -> list[dict[str, Any]]:
        found = [
            record("translate", command, tmp_path / str(run), kept=str(kept), aslr=aslr) for run in range(3)
        ]
        for run in found:
            assert sorted(map(instructions, run["threads"])) == sorted(count for _, count in run["counts"])
        return found

    first, *others = runs("/bin/echo", "hello")
    assert first["put_back"] == 0
    for run in others:
        assert run["put_back"] > 1000
        assert aslr or run["threads"] == first["threads"]
    for run in runs("/bin/sh", "-c", "(echo one); echo two | cat"):  # a child has what its parent has
        assert run["stdout"] == "one\ntwo\n"
