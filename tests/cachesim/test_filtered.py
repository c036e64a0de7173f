"""What is filtered in the target is simulated as all of it is: the same numbers, line by line."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fixtures import ROOT, Builder, Fixture, assembly
from livepro import isa
from livepro.cachesim.model import CacheSim
from livepro.engines.stream.filtering import NO_LINE, CodePages, Lines
from livepro.errors import LiveproError
from livepro.events.pump import Pump

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")

SMALL = ":i1='4096,1,64':d1='1024,2,64':ll='8192,4,64'"
SOME = (
    *(
        "accesses",
        "accesses_extended",
        "accesses_masked",
        "avx512",
        "direction_flag",
        "execve",
        "fork",
        "masked_fault",
        "mid_block",
        "rep_cmps",
    ),
    *("rep_fault", "segments", "signal_nested", "signal_segv", "smc_alias", "smc_mprotect", "vfork", "x87"),
)
DIFFERENT = {
    "commands": "resets its counts",
    "long_blocks": "takes minutes to translate",
    "rip_far": "has code at a multiple of 16 TiB, which cannot be told",
    "spin": "takes its signals when they come",
    "threads_exit_group": "threads are killed anywhere",
    "threads_join": "may wait for a thread, or not",
    "threads_straight": "may wait for a thread, or not",
}


LONG = pytest.mark.long(seconds=5)


def fixtures() -> list[Any]:
    chosen = [f for f in assembly() if not f.heavy and f.name not in DIFFERENT]
    return [pytest.param(f, id=f.name, marks=[] if f.name in SOME else [LONG]) for f in chosen]


def test_all_is_recorded_where_lines_cannot_be_left_out() -> None:
    """As of AArch64 programs."""
    for i1, fits in (("32768,8,64", True), ("4096,1,64", True), ("2048,2,64", False)):
        for lines in (False, True):
            simulator = CacheSim(i1=i1, d1="32768,8,64", ll="1048576,16,64", filtered=True)
            pump = Pump([simulator.consumer("cachesim", isa.for_machine("x86_64"))])
            assert (pump.filter(lines=lines) is not None) == (lines and fits)


def test_code_is_told_by_its_page() -> None:
    """Of pages whose numbers are equal modulo 2**32 only one can be there: 16 TiB apart."""
    pages = CodePages()
    pages.claim(0x5555_5555_4000, 0x5555_5555_6000)
    pages.claim(0x7FFF_F7DC_3000, 0x7FFF_F7F5_8000)
    pages.claim(0x5555_5555_4FFF, 0x5555_5556_0000)
    pages.claim(0x40_0000, 0x40_1000)
    for address in (0x6555_5555_4000, 0x0555_5555_5800, 0x1000_0040_0000):
        with pytest.raises(LiveproError, match="16 TiB"):
            pages.claim(address, address + 4)
    with pytest.raises(LiveproError, match="16 TiB"):
        pages.claim(0x1000_0000_0010, 0x1000_0000_0020)  # as if there were none


def told(
    program: Path, directory: Path, options: str, *livepro: str, args: tuple[str, ...] = (), kept: str = ""
) -> Any:
    """The program's exit status and output, and what the simulator tells of each process image."""
    out = directory / "out.json"
    out.unlink(missing_ok=True)
    command = [
        "run",
        "--quiet",
        "--no-aslr",
        *livepro,
        "--analysis",
        f"cachesim{options}",
        "--json",
        str(out),
    ]
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "livepro", *command, "--", str(program), *args],
        env=environment | ({"LIVEPRO_CACHE_DIR": kept} if kept else {}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "warning" not in done.stderr
    report = json.loads(out.read_text())
    found = report["analyses"]
    results = [
        {key: entry["result"][key] for key in ("totals", "lines", "functions")}
        for entries in found.values()
        for entry in entries
    ]
    # What is executed is counted once more, by what counts for all other figures.
    assert sum(result["totals"]["Ir"] for result in results) == report["instructions"]
    return done.returncode, done.stdout, results


@pytest.mark.some(8)
@pytest.mark.parametrize("shape", ["", SMALL], ids=["usual", "small"])
@pytest.mark.parametrize("fixture", fixtures())
def test_what_hits_anyway_is_not_missed(
    fixture: Fixture, shape: str, builder: Builder, tmp_path: Path
) -> None:
    if fixture.missing:
        pytest.skip(f"the processor has no {' '.join(fixture.missing)}")
    program, args = builder.assembly(fixture), tuple(fixture.args)
    reduced, whole = (
        told(program, tmp_path, f":filtered={filtered}{shape}", "--no-cache", args=args)
        for filtered in (True, False)
    )
    assert reduced == whole


def test_a_real_program(tmp_path: Path) -> None:
    """Put back from what is kept, too, and from chunks that are full again and again."""
    kept, program = str(tmp_path / "kept"), Path("/bin/true")
    first = told(program, tmp_path, ":filtered=True", kept=kept)
    assert first[2][0]["totals"]["Ir"] > 50_000
    assert told(program, tmp_path, ":filtered=True", kept=kept) == first
    assert told(program, tmp_path, ":filtered=True", "--stream-memory", "1M", kept=kept) == first
    assert told(program, tmp_path, ":filtered=False", kept=kept) == first


@pytest.mark.parametrize("name", ["signal_flood", "signal_storm"])
def test_signals_between_any_two_instructions(name: str, builder: Builder, tmp_path: Path) -> None:
    """Filters and the writing of entries are interrupted: the program is what it is without, and all that
    is executed is counted."""
    program = builder.hosted(name)
    status, output, (result,) = told(program, tmp_path, ":filtered=True")
    native = subprocess.run([program], capture_output=True, text=True)
    assert (status, output) == (native.returncode, native.stdout)
    assert 0 < result["totals"]["D1mr"] <= result["totals"]["Dr"] < result["totals"]["Ir"]


class Twin:
    """LRU as its definition says it: the least recently used line of a set makes room."""

    def __init__(self, sets: int, ways: int) -> None:
        self._sets: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
        self._ways = ways

    def ordered(self, index: int) -> list[int]:
        """The lines of a set, from the one used last."""
        return list(reversed(self._sets[index]))

    def misses(self, line: int, *, look: bool = False) -> bool:
        """Whether a line misses; unless that is all that is asked it is there then."""
        lines = self._sets[line % len(self._sets)]
        missed = line not in lines
        if look:
            return missed
        if missed and len(lines) == self._ways:
            lines.popitem(last=False)
        lines[line] = None
        lines.move_to_end(line)
        return missed


@pytest.mark.parametrize(("sets", "ways"), [(1, 1), (2, 3), (16, 12), (64, 2)])
def test_the_simulation_of_entries_is_lru(sets: int, ways: int) -> None:
    """Of threads that take turns, each of which looks in a cache of its own first, which is empty where its
    turn begins, and tells at its end what is in it."""
    from livepro.cachesim.entries import room, take_missed, take_order, touch

    random, lines = np.random.default_rng(sets * ways), Lines(64, sets, ways)
    size, w = int(room(np.uint64(ways))), np.uint64(ways)
    twin, cache, clock = Twin(sets, ways), np.zeros(size * sets, np.int64), np.zeros(2, np.int64)
    missed = looked = 0
    for _ in range(60):
        clock[1] = clock[0]
        own = Twin(sets, ways)
        for line in random.integers(1, 3 * sets * ways, int(random.integers(1, 800))).tolist():
            expected, at = twin.misses(line), np.uint64(size * (line % sets))
            assert not (expected and not own.misses(line, look=True))
            if own.misses(line):
                looked += 1
                assert bool(take_missed(cache, at, w, line, clock)) == expected
                missed += expected
        rows = np.full(lines.words, NO_LINE - (1 << 64), np.int64)
        for index in range(sets):
            for way, line in enumerate(own.ordered(index)):
                rows[(index * 64 + lines.offset(way)) // 8] = -line * 64
        take_order(cache, rows, clock, 6, sets, w)
        if random.integers(3) == 0:  # what nobody has looked at
            for line in random.integers(1, 3 * sets * ways, 50).tolist():
                at = np.uint64(size * (line % sets))
                assert bool(touch(cache, at, w, line, clock)) == twin.misses(line)
    assert missed < looked
