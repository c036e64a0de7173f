"""The simulators keep to the region of a run that is counted."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from cachesim.test_cachegrind import livepro

from fixtures import ASM_FLAGS, ROOT, Builder

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")


SEEN = """
import numpy as np
from livepro.events import Analysis
from livepro.events.analysis import CONDITIONAL, RETURN

class Seen(Analysis):
    "What there is of each kind"

    def state(self):
        counted = {"instructions": 1, "accesses": 2, "branches": 2}
        return {name: np.zeros(kinds, np.int64) for name, kinds in counted.items()}

    def instruction(state, thread, instruction, address, size):
        state.instructions[0] += 1

    def access(state, thread, instruction, address, size, write):
        state.accesses[1 if write else 0] += 1

    def branch(state, thread, instruction, address, target, taken, kind):
        if kind == CONDITIONAL:
            state.branches[0] += 1
        elif kind == RETURN:
            state.branches[1] += 1
"""


EVENTS = ("Ir", "Bc", "Br", "bimodal_m", "ras_m")


NUMBERS = [
    # By branches.S: four turns, from an even ebx (36) on, of six instructions each, and one more in the
    # two odd ones. The alternating branch is wrong each time, the loop's the first time only; the last of
    # it leads to the place where the region ends.
    ("start=5 stop=9", (26, 8, 4, 5, 0), 4),
    # All but the first instruction and 36 turns: of those left 4 * 6 + 2, and the end.
    ("start=37", (32, 8, 5, 6, 1), 5),
    # The first instruction and two turns.
    ("stop=3", (14, 4, 2, 3, 0), 2),
    # The same three by numbers of instructions: one, and 26 for four turns.
    ("skip=27 count=26", (26, 8, 4, 5, 0), 4),
    ("skip=235", (32, 8, 5, 6, 1), 5),
    ("count=14", (14, 4, 2, 3, 0), 2),
    # The fifth turn's instructions are numbers 28 to 33: call, ret, test, jz, dec, jnz. The branch, which
    # is taken and not known, with the one before it, alone, and with the one behind it; one that is no
    # branch; the return, whose call was not seen.
    ("skip=29 count=2", (2, 1, 0, 1, 0), 0),
    ("skip=30 count=1", (1, 1, 0, 1, 0), 0),
    ("skip=30 count=2", (2, 1, 0, 1, 0), 0),
    ("skip=31 count=1", (1, 0, 0, 0, 0), 0),
    ("skip=28 count=1", (1, 0, 1, 0, 1), 0),
    ("start=5 skip=3 count=1", (1, 1, 0, 1, 0), 0),
]
"""Regions, what there is in them (`EVENTS`), and how many writes."""


@pytest.mark.some(7)
@pytest.mark.parametrize(
    ("engine", "where", "wanted", "writes"),
    [(engine, *row) for row in NUMBERS for engine in ("translate", "block" if "count" in row[0] else "step")],
)
def test_numbers_of_a_region(
    engine: str, where: str, wanted: tuple[int, ...], writes: int, builder: Builder, tmp_path: Path
) -> None:
    program = builder.build(ROOT / "cachegrind" / "branches.S", ASM_FLAGS)
    with program.open("rb") as file:
        (turn,) = ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name("turn")
    options = []
    for name, number in (one.split("=") for one in where.split()):
        place = f"{program.name}+{turn['st_value']:#x}:{number}"
        options += [f"--{name}-at", place] if name in ("start", "stop") else [f"--{name}", number]
    own = tmp_path / "seen.py"
    own.write_text(SEEN)
    options += ["--predictors", "bimodal,ras", "--cachesim", "--analysis", f"{own}:Seen"]
    report = tmp_path / "run.json"
    done = livepro("run", "--engine", engine, *options, "--json", report, "--", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    (process,) = told["processes"]
    instructions, conditional, returns = wanted[:3]
    assert sum(thread["instructions"] for thread in process["threads"]) == instructions
    totals = dict(zip(EVENTS, wanted, strict=True))
    assert told["analyses"]["predictors"][0]["result"]["totals"] == totals
    simulated = told["analyses"]["cachesim"][0]["result"]["totals"]
    (seen,) = told["analyses"][f"{own}:Seen"]
    assert seen["result"]["instructions"] == [instructions]
    assert seen["result"]["accesses"] == [returns, writes]
    assert seen["result"]["branches"] == [conditional, returns]
    # A return reads what a call or, at the end, a push has written.
    assert [simulated[event] for event in ("Ir", "Dr", "Dw")] == [instructions, returns, writes]


def test_a_region_of_threads(builder: Builder, tmp_path: Path) -> None:
    """All threads are halted where one of them comes to the place: what each has executed in between is what
    is simulated, whichever that is."""
    program = builder.hosted("false_sharing", "-O1", "-pthread", "-no-pie", "-fno-pie")
    report = tmp_path / "run.json"
    options = ("--start-at", "count", "--stop-at", "puts", "--cachesim", "--analysis", "sharing")
    done = livepro("run", *options, "--json", report, "--", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "counted\n")
    told = json.loads(report.read_text())
    (process,) = told["processes"]
    executed = sum(thread["instructions"] for thread in process["threads"])
    assert told["analyses"]["cachesim"][0]["result"]["totals"]["Ir"] == executed
    rows = told["analyses"]["sharing"][0]["result"]["falsely_shared"]
    (apart,) = [row for row in rows if row["place"].startswith("apart")]
    assert apart["accesses"] == 4002  # two of them by the first thread, right before puts


@pytest.mark.parametrize("engine", ["translate", "block"])
def test_a_region_of_threads_by_number(engine: str, builder: Builder, tmp_path: Path) -> None:
    """What is skipped and counted is the sum over all threads: so is what is simulated."""
    program = builder.hosted("false_sharing", "-O1", "-pthread", "-no-pie", "-fno-pie")
    report = tmp_path / "run.json"
    options = ("--engine", engine, "--start-at", "count", "--skip", "1000", "--count", "7000", "--cachesim")
    done = livepro("run", *options, "--json", report, "--", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "counted\n")
    told = json.loads(report.read_text())
    (process,) = told["processes"]
    assert sum(thread["instructions"] for thread in process["threads"]) == 7000
    assert told["analyses"]["cachesim"][0]["result"]["totals"]["Ir"] == 7000


def test_what_does_not_go_with_regions(builder: Builder, tmp_path: Path) -> None:
    program = builder.hosted("false_sharing", "-O1", "-pthread", "-no-pie", "-fno-pie")
    for options, words in (
        (
            ("--start-at", "main", "--analysis", "mica:interval_size=9"),
            "they do not go with a region yet",
        ),
        (("--start-at", "main", "--cachesim", "--interval-size", "1M"), "intervals are of the whole run"),
    ):
        done = livepro("run", *options, "--", program, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr


def test_a_consumer_that_fails_at_a_bound_ends_nothing_but_the_analysis() -> None:
    from livepro.errors import LiveproError
    from livepro.events.pump import Pump

    class Broken:
        name = "broken"

        def see(self, *_: object) -> None:
            raise AssertionError("it has failed before")

        def told(self, *_: object) -> None:
            return None

        def keeps(self, *, waiting: bool) -> None:
            assert waiting

        def bound(self, *_: object, begins: bool) -> None:
            raise ValueError(f"begins: {begins}")

    let_go = []
    pump = Pump([Broken()])
    pump.abandon = lambda: let_go.append(True)
    pump.keeps(waiting=True)
    pump.bound({}, {}, begins=True, divisible=False)
    pump.close()
    with pytest.raises(LiveproError, match=r"broken failed \(ValueError: begins: True\)"):
        pump.check()
    assert let_go == [True]
