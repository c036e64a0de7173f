"""The engines' event streams: proved addresses, equal from engine to engine, equal to the counts."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
from events.streams import proved, record, symbols

from fixtures import Builder, Fixture, assembly

MACHINE = platform.machine()
ENGINES = {"x86_64": ("step", "block", "translate"), "aarch64": ("step", "block")}[MACHINE]
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
    fixture: Fixture, program: Path, engine: str, output: Path, words: int, turn: int, **options: Any
) -> dict[str, Any]:
    """A run of the fixture, its stream as long as its counts.

    An interrupt makes a store-exclusive fail, and the program says by its exit status that it tried
    again: such a run has other events than one without, so it is made again until there was none."""
    for _ in range(10):
        found = record(engine, [program, *fixture.args], output, chunk_words=words, turn=turn, **options)
        counts = sorted(count for _, count in found["counts"])
        assert sorted(map(instructions, found["threads"])) == counts
        if not (fixture.varies and found["exit"]):
            return found
    raise AssertionError(f"{fixture.name} was interrupted in ten runs under {engine}")


def compare(fixture: Fixture, builder: Builder, directory: Path) -> None:
    if fixture.missing:
        pytest.skip(f"the processor has no {' '.join(fixture.missing)}")
    program = builder.assembly(fixture)
    seen = {
        name: recorded(fixture, program, engine, directory / name, words, turn)
        for name, engine, words, turn in (
            *((name, name, 1 << 16, 0) for name in ENGINES),
            ("small", ENGINES[-1], 40, 0),  # a chunk is full again and again
            ("turns", ENGINES[-1], 200, 50),  # and smaller while there are several threads
        )
    }
    if "translate" in ENGINES:
        options = {"kept": str(directory / "kept"), "compiled": True}
        seen["compiled"] = recorded(
            fixture, program, "translate", directory / "compiled", 1 << 16, 0, **options
        )
    for found in seen.values():
        assert found["exit"] == seen["step"]["exit"]
        assert found["threads"] == seen["step"]["threads"]
    assert seen["small"]["chunks"] >= seen[ENGINES[-1]]["chunks"]


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


@pytest.mark.skipif("translate" not in ENGINES, reason="nothing is kept of what other engines record")
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
@pytest.mark.skipif("translate" not in ENGINES, reason="nothing is kept of what other engines record")
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
