"""Stops at new code that compiled code answers alone."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engines.observed import TIMEOUT
from tools import needed

if platform.machine() != "x86_64":
    pytest.skip("stops are answered without Python on x86-64 alone", allow_module_level=True)

from engines.compiled_shapes import shapes_of_none

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.compiled_code import LookupTable
from livepro.engines.translate.memory import ThreadAreas
from livepro.engines.translate.translator.compiling.tables import PC
from livepro.engines.translate.translator.compiling.tables import START as FRAGMENT
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.module import CompiledModule, Text
from livepro.engines.translate.translator.x86_64.compiled.specifications import SPECIFICATIONS
from livepro.engines.translate.translator.x86_64.compiled.templates import pieces
from livepro.engines.translate.translator.x86_64.compiler import Compiler
from livepro.engines.translate.translator.x86_64.emitter import Emitter

RUN = """
import sys
from livepro.__main__ import main
from livepro.engines.translate.translator.answering import NewCode
if sys.argv[1] == "python":
    NewCode.possible = False
sys.exit(main(sys.argv[2:]))
"""
PERL = "my $s = 0; for my $i (1 .. 2000) { $s += $i % 7; $h{$i % 50} .= 'x' } print $s, sort keys %h"


def figures(
    report: Path, by: str, *command: str | Path, options: Sequence[str] = ()
) -> tuple[int, str, list[object]]:
    """Of a command that does the same each time, at the same addresses: how many stops compiled code has
    answered (unless all are to be answered `by` Python), what it has printed, and what was counted in each
    process image but a shell's. `options` are further ones of livepro's."""
    always = ["run", "--stats", "--no-cache", "--no-aslr", "--json", str(report)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, by, *always, *options, "--", *map(str, command)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "PERL_HASH_SEED": "0", "LC_ALL": "C"},
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    answered, blocks, compiled = (
        re.search(rf"^ +{name} +([\d,]+)$", told, re.MULTILINE)
        for name in ("answered by compiled code", "blocks translated", "by compiled code")
    )
    assert answered is not None
    assert blocks is not None
    assert compiled is not None
    assert 0 < int(compiled[1].replace(",", "")) < int(blocks[1].replace(",", ""))
    processes = json.loads(report.read_text())["processes"]
    counted = [_counts(process) for process in processes if process["command"][0] != "sh"]
    return int(answered[1].replace(",", "")), done.stdout, sorted(counted, key=str)


def _counts(process: dict[str, Any]) -> object:
    functions = sorted(
        (f["module"], f["function"], f["instructions"], f["blocks"]) for f in process["functions"]
    )
    kinds = {name: value for name, value in process["threads"][0].items() if name != "tid"}
    return process["modules"], functions, kinds


@pytest.mark.parametrize("program", ["perl", "cc1"])
def test_nothing_is_counted_otherwise(program: str, tmp_path: Path) -> None:
    """cc1 is far from its libraries: what leads from one's landings to the other's takes a jump far away, for
    which there must be room behind all that compiled code has made."""
    tool = "perl" if program == "perl" else "gcc"
    needed(tool, tool)
    command: list[str | Path] = ["perl", "-e", PERL]
    if program == "cc1":
        (tmp_path / "one.c").write_text("int f(int x) { return x + 1; }\n")
        cc1 = subprocess.run(
            ["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True
        ).stdout
        command = [cc1.strip(), "-quiet", "-O1", tmp_path / "one.c", "-o", "/dev/null"]
    Compiler().prepare()
    answered, printed, counted = figures(tmp_path / "json", "compiled", *command)
    none, same, alike = figures(tmp_path / "json", "python", *command)
    assert answered > 1000
    assert none == 0
    assert (printed, counted) == (same, alike)
    assert len(counted) == 1


def test_stops_are_answered_in_several_processes_at_once(tmp_path: Path) -> None:
    """Each counts what it does alone."""
    needed("perl", "perl")
    Compiler().prepare()
    once, _, alone = figures(tmp_path / "json", "compiled", "sh", "-c", 'perl -e "$0"; :', PERL)
    script = 'for i in 1 2 3 4; do perl -e "$0" > /dev/null & done; wait; perl -e "$0"'
    answered, printed, counted = figures(tmp_path / "json", "compiled", "sh", "-c", script, PERL)
    none, same, alike = figures(tmp_path / "json", "python", "sh", "-c", script, PERL)
    assert answered > once > 1000
    assert none == 0
    assert (printed, counted) == (same, alike)
    assert len(counted) == 5
    assert alone[0] in counted


def vectors(directory: Path) -> list[dict[str, int]]:
    """The basic-block vectors that a run has written: instructions by the block's address."""
    (pcs,), (blocks,) = directory.glob("pc.out.*"), directory.glob("bb.out.*")
    names = dict(re.findall(r"^F:(\d+):(\w+):", pcs.read_text(), re.MULTILINE))
    found = []
    for line in blocks.read_text().splitlines():
        if line.startswith("T"):
            vector: dict[str, int] = {}
            for block, count in re.findall(r":(\d+):(\d+)", line):
                vector[names[block]] = vector.get(names[block], 0) + int(count)
            found.append(vector)
    return found


@pytest.mark.parametrize("size", [10_000_000, 1_000_000])
def test_intervals_are_cut_where_they_are_otherwise(size: int, tmp_path: Path) -> None:
    """Blocks are given allowances, and ask for them before anything but compiled code knows of them; or, in
    short intervals, each execution takes from a budget."""
    needed("perl", "perl")
    Compiler().prepare()
    script = PERL.replace("2000", "200000").replace("$h{", "$i < 2000 and $h{")
    seen = {}
    for by in ("compiled", "python"):
        options = ["-o", str(tmp_path / by), "--interval-size", str(size)]
        answered, *_ = figures(tmp_path / f"{by}.json", by, "perl", "-e", script, options=options)
        assert (answered > 1000) is (by == "compiled")
        seen[by] = vectors(tmp_path / by)
    assert seen["compiled"] == seen["python"]
    sizes = [sum(vector.values()) for vector in seen["compiled"]]
    assert len(sizes) > 10
    assert set(sizes[:-1]) == {size}


START, BASE = 1 << 30, 1 << 31
CODE = b"\x75\x0e\xc3".ljust(16, b"\xcc") + b"\xc3"
"""0: jne 16; 2: ret; 16: ret."""
ROOM = 16, 1 << 19, 1 << 18, 1 << 20


class Asked:
    """`arrive` of a module whose first block has been translated, with what follows if it does not branch."""

    def __init__(self, countdown: Countdown = Countdown.NONE) -> None:
        emitter, self.image = Emitter(1 << 20, {}, countdown), np.zeros(1 << 20, np.uint8)
        self.told = np.zeros(layout.DATA_SIZE // 4, np.int32)
        self.shapes = shapes_of_none()
        text, made_for = Text(START, 1 << 16, self.shapes), pieces(emitter.lookup, emitter.landing(0))
        self.module = CompiledModule(
            *(text, BASE, self.image, *made_for), low=False, records=False, filter=None, asks=emitter.asks
        )
        self.lookup = LookupTable(
            np.full(layout.LOOKUP_ENTRIES, 1, np.uint64),
            np.zeros(layout.LOOKUP_ENTRIES, np.int64),
            1,
            emitter.landing(0).otherwise,
        )
        self.log = np.zeros((4, tables.LOG_COLUMNS), np.int64)
        while True:
            self.module.begin(0)
            made = self.module.run(0, 0, ROOM, lands=False, likely=True)
            if not self.module.prepare(lambda at, size: CODE.ljust(1 << 16, b"\xcc")[:size]):
                break
        assert made is not None
        self.module.publish()
        assert made.rows[:, PC].tolist() == [0, 2]
        ((target, self.stub),) = made.stubs.tolist()
        assert target == 16
        self.begin()

    def begin(self) -> None:
        """Have it stand by, once more."""
        self.at = self.module.stand_by((*self.module.ends, *ROOM[2:]), 0, self.lookup, self.told, self.log)

    def arrive(self, stop: int, target: int, *, row: int = 0) -> int:
        """What it returns."""
        arguments = (ctypes.c_int64 * 4).from_address(self.at)
        arguments[:] = stop, target, 7, row
        number = list(SPECIFICATIONS).index("arrive")
        return int(self.shapes.native.entry(number, self.at))

    def made(self) -> list[int]:
        """The blocks made since it has stood by."""
        return self.module.made().rows[:, PC].tolist()  # type: ignore[no-any-return]


def test_a_stub_leads_to_what_is_made_for_it() -> None:
    """For each thread that has run into it; the branch to it leads there from then on."""
    asked = Asked()
    there = asked.arrive(BASE + asked.stub, 0, row=1)
    assert asked.arrive(BASE + asked.stub, 0, row=2) == there
    assert asked.log[1:3].tolist() == [[0, 16, 0, 0, 1], [0, 16, 0, 1, 1]]
    made = asked.module.made()
    assert made.rows[:, [PC, FRAGMENT]].tolist() == [[16, there - BASE]]
    (field,) = asked.module.links_to(16)
    assert field + 4 + int(asked.image[field : field + 4].view("<i4")[0]) == there - BASE


@pytest.mark.parametrize("countdown", [Countdown.NONE, Countdown.ALLOWANCES])
def test_the_process_is_told_how_long_blocks_with_allowances_are(countdown: Countdown) -> None:
    asked, begin = Asked(countdown), layout.LENGTHS // 4
    groups = asked.told[layout.CELLS // 4 :][:2]
    assert asked.arrive(0, START + 16) > 0
    told = countdown is Countdown.ALLOWANCES
    assert asked.told[begin + 6 : begin + 9].tolist() == [0, told, 0]  # a return, counted in cell 7
    assert groups.tolist() == [0, told]
    asked.told[begin + 7], groups[1] = 0, 5
    assert asked.arrive(0, START + 2) > 0  # which was made before
    assert asked.told[begin + 7] == 0
    assert groups.tolist() == [0, 5]


def test_counters_that_are_told_of_stay_in_use_until_others_are() -> None:
    """Compiled code has told of some that are yet to be entered, as others are."""
    areas: Any = ThreadAreas(SimpleNamespace(map=bytearray(layout.DATA_SIZE)), [])  # type: ignore[arg-type]
    groups, group = areas.told[layout.CELLS // 4 :][:2], layout.GROUP
    areas.note_lengths(0, [3, 4], (0, 2))
    groups[1] = 5
    areas.note_lengths(2, [5], (0, 3))
    assert areas.told[layout.LENGTHS // 4 :][:4].tolist() == [3, 4, 5, 0]
    assert groups.tolist() == [0, 5]
    areas.note_lengths(8 * group, [6], (8 * group, 8 * group + 1))  # after a flush
    assert groups.tolist() == [8, 9]
    areas.note_lengths(0, [7], (0, 1))
    assert groups.tolist() == [0, 1]


@pytest.mark.parametrize("off", [-1, 1, 4])
def test_another_stop_is_left_to_python(off: int) -> None:
    asked = Asked()
    assert asked.arrive(BASE + asked.stub + off, 0) == -1
    assert asked.made() == []


def test_an_indirect_branch_leads_to_a_landing() -> None:
    """Of a block that is new, and of one that is there already; the lookup table has both."""
    asked = Asked()
    for target in (16, 2):
        there = asked.arrive(0, START + target)
        assert asked.lookup.table[START + target & layout.LOOKUP_ENTRIES - 1] == there
        assert asked.arrive(0, START + target) == there
    made = asked.module.made()
    assert made.rows[:, PC].tolist() == [16]
    assert made.landings[:, 0].tolist() == [16, 2]
    assert asked.module.land(asked.lookup) == []  # they have been entered
    asked.begin()
    assert asked.arrive(0, START + 16) == asked.lookup.table[16]  # and are known later


@pytest.mark.parametrize("target", [17, 1 << 15])
def test_what_cannot_be_decoded_is_left_to_python(target: int) -> None:
    """int3 is; the translator in Python knows what it is for."""
    asked = Asked()
    assert asked.arrive(0, START + target) == -1
    assert asked.made() == []
