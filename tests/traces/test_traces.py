"""Traces against independent readers, the disassembly, the counters, and the simulator on the same run."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter, OrderedDict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from events.streams import record
from tools import needed
from traces.tracing import champsim, fixture, livepro, traced

from fixtures import ROOT, Builder, assembly

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")

CACHE = tempfile.mkdtemp(prefix="livepro-tests-")
CACHES = ("1024,2,64", "4096,4,64", "16384,8,64")


def branch_type(record: tuple[Any, ...]) -> str:
    """As ChampSim's instruction.h describes it, written anew from the description."""
    writes, reads = set(record[3]) - {0}, set(record[4]) - {0}
    sp, flags, ip = 6, 25, 26
    other = bool(reads - {sp, flags, ip})
    if ip not in writes:
        return "none"
    if sp in writes:
        if sp in reads and ip in reads and flags not in reads:
            return "indirect call" if other else "call"
        return "return" if sp in reads and ip not in reads else "?"
    if sp in reads:
        return "?"
    if ip in reads and (flags in reads or other):
        return "conditional"
    if flags in reads:
        return "?"
    return "indirect jump" if other else "jump"


def disassembled(program: Path) -> dict[int, str]:
    """objdump's view of every instruction: address to type of branch."""
    text = subprocess.run(
        [needed("objdump", "binutils"), "-d", "--no-show-raw-insn", program],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    out = {}
    for line in text.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if match:
            words = match[2].split()
            while words and words[0] in ("bnd", "notrack", "ds", "cs", "repz", "rep", "lock", "data16"):
                words.pop(0)
            name, operand = [*words, "", ""][:2]
            name = name.split(",")[0]
            kind = "none"
            if name.startswith(("ret", "lret")):
                kind = "return"
            elif name.startswith("call"):
                kind = "indirect call" if operand.startswith("*") else "call"
            elif name.startswith("jmp"):
                kind = "indirect jump" if operand.startswith("*") else "jump"
            elif name.startswith(("j", "loop")):
                kind = "conditional"
            out[int(match[1], 16)] = kind
    return out


PROGRAMS = (
    *("accesses", "rep_movs"),
    *(
        pytest.param(name, marks=pytest.mark.long(seconds=20))
        for name in ("jump_table", "loop_family", "returns", "avx512")
    ),
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_format_has_the_events_of_the_reference(name: str, builder: Builder, tmp_path: Path) -> None:
    chosen = next(f for f in assembly() if f.name == name)
    if chosen.missing:
        pytest.skip(f"the processor has no {' '.join(chosen.missing)}")
    program = builder.assembly(chosen)
    run = record("step", [program], tmp_path / "events")
    (events,) = run["threads"]
    (count,) = run["counts"]
    kinds = Counter(kind for kind, _, _ in events)
    assert kinds["I"] == count[1]
    for form in ("din", "lackey", "npz", "champsim.gz"):
        info = traced(tmp_path / f"t.{form}", program)
        found = (info["instructions"], info["loads"], info["stores"])
        assert found == (kinds["I"], kinds["L"], kinds["S"]), form
    expected = [[kind, address] for kind, address, _ in events]
    din = [line.split() for line in (tmp_path / "t.din").read_text().splitlines()]
    assert [["LSI"[int(label)], int(address, 16)] for label, address in din] == expected
    lackey: list[list[Any]] = []
    for line in (tmp_path / "t.lackey").read_text().splitlines():
        address, size = line[3:].split(",")
        assert line[:3] in ("I  ", " L ", " S ", " M ")
        for kind in {"M": "LS"}.get(line[:2].strip(), line[:2].strip()):
            lackey.append([kind, int(address, 16), int(size)])
    assert sorted(map(tuple, lackey)) == sorted(map(tuple, events))
    assert [e for e in lackey if e[0] == "I"] == [e for e in events if e[0] == "I"]
    with np.load(tmp_path / "t.npz") as parts:
        rows = np.concatenate([parts[key] for key in sorted(parts.files)])
    names = ["I", "L", "S", "S", "G"]
    assert [[names[r["what"]], int(r["address"]), int(r["size"])] for r in rows] == events
    # ChampSim: what each instruction loads and stores, in order, however many records it takes.
    groups: list[list[Any]] = []
    records = champsim(gzip.decompress((tmp_path / "t.champsim.gz").read_bytes()))
    for r in records:
        if not groups or groups[-1][0] != r[0] or r[1]:
            groups.append([r[0], [], []])
        groups[-1][1] += [address for address in r[6] if address]
        groups[-1][2] += [address for address in r[5] if address]
    wanted: list[list[Any]] = []
    for kind, address, _ in events:
        if kind == "I":
            wanted.append([address, [], []])
        else:
            wanted[-1][1 if kind == "L" else 2].append(address)
    assert groups == wanted
    # Branches: their types are those of the disassembly, taken if what follows is not behind them.
    types = disassembled(program)
    assert {r[0]: branch_type(r) for r in records} == {r[0]: types[r[0]] for r in records}
    sizes = {address: size for kind, address, size in events if kind == "I"}
    for one, after in pairwise(records):
        kind = branch_type(one)
        assert one[1] == (kind != "none")
        assert one[2] == (one[1] if kind != "conditional" else after[0] != one[0] + sizes[one[0]])


def test_parquet_has_the_rows_of_the_npz(builder: Builder, tmp_path: Path) -> None:
    """As pyarrow reads them, types and all."""
    table = pytest.importorskip("pyarrow.parquet")
    program = fixture(builder, "accesses")
    for form in ("npz", "parquet"):
        done = livepro("trace", "-o", tmp_path / f"t.{form}", "--no-aslr", "--", program, cwd=tmp_path)
        assert "trace  " in done.stderr, done.stderr
    with np.load(tmp_path / "t.npz") as parts:
        rows = np.concatenate([parts[name] for name in sorted(parts.files)])
    found = table.read_table(tmp_path / "t.parquet")
    assert [(f.name, str(f.type)) for f in found.schema] == [
        ("what", "uint8"),
        ("size", "uint32"),
        ("address", "uint64"),
    ]
    assert len(rows) > 100
    for name in ("what", "size", "address"):
        assert found[name].to_numpy().tolist() == rows[name].tolist()


def test_branch_types_of_a_library(tmp_path: Path) -> None:
    """Every static branch of a program with its libraries, as the processor's decoder knows them."""
    from livepro import isa
    from livepro.model import Flow
    from livepro.traces.champsim import registers

    names = {
        Flow.JUMP: "jump",
        Flow.BRANCH: "conditional",
        Flow.CALL: "call",
        Flow.INDIRECT_JUMP: "indirect jump",
        Flow.INDIRECT_CALL: "indirect call",
        Flow.RETURN: "return",
    }
    machine = isa.for_machine("x86_64")
    codes = {  # the rare ones: by the stack pointer, by the instruction pointer, by an absolute address
        "ff2424": "indirect jump",
        "ff642408": "indirect jump",
        "ff2500000000": "indirect jump",
        "ff1500000000": "indirect call",
        "ff142500100000": "indirect call",
        "ff1424": "indirect call",
        "ffe4": "indirect jump",
        "e300": "conditional",
        "e2fe": "conditional",
        "e1fe": "conditional",
        "7400": "conditional",
        "e900000000": "jump",
        "e800000000": "call",
        "c3": "return",
        "c20800": "return",
        "f3c3": "return",
    }
    for text, kind in codes.items():
        code = bytes.fromhex(text)
        (flow,) = machine.decode_block(code, 0x1000).flows
        assert names[flow] == kind
        writes, reads = registers(machine.operands(code), flow)
        assert branch_type((0, 1, 1, tuple(writes), tuple(reads))) == kind, text


class Twin:
    """Cachegrind's two levels, written from its description, in plain Python."""

    def __init__(self) -> None:
        self.shape = [tuple(map(int, c.split(","))) for c in CACHES]
        self.sets: list[dict[int, OrderedDict[int, None]]] = [{}, {}, {}]
        self.fetched: list[int] = []

    def touch(self, cache: int, line: int) -> bool:
        size, ways, width = self.shape[cache]
        lines = self.sets[cache].setdefault(line % (size // width // ways), OrderedDict())
        missed = line not in lines
        lines[line] = None
        lines.move_to_end(line)
        if len(lines) > ways:
            lines.popitem(last=False)
        return missed

    def access(self, cache: int, address: int, size: int) -> tuple[bool, bool]:
        lines = range(address >> 6, ((address + size - 1) >> 6) + 1)
        missed_first = [self.touch(cache, line) for line in lines]  # each is touched
        if not any(missed_first):
            return False, False
        missed = [line for line in lines if self.touch(2, line)]
        self.fetched += missed
        return True, bool(missed)


@pytest.mark.long(seconds=85)
def test_a_trace_fed_through_a_simulator_misses_as_the_run_did(builder: Builder, tmp_path: Path) -> None:
    """One run of a program with its libraries: the simulator beside two traces of it."""
    code = """
import sys, json
from pathlib import Path
import livepro
from livepro.cachesim.geometry import Hierarchy, parse
from livepro.cachesim.model import CacheSim
from livepro.traces.trace import Trace
caches = sys.argv[1:4]
lackey = Trace(Path("t.lackey"), "lackey")
hierarchy = Hierarchy(*(parse(c, "") for c in caches))
memory = Trace(Path("t.ramulator2"), "ramulator2", hierarchy=hierarchy)
champsim = Trace(Path("t.champsim"), "champsim")
found = livepro.run(["sort", "words"], analyses=[CacheSim(*caches), lackey, memory, champsim])
files = [w for t in (lackey, memory, champsim) for w in t.close()]
told = found.analyses["cachesim"][0]["result"]["totals"]
print(json.dumps([told, found.instructions, [[w.instructions, w.loads, w.stores] for w in files]]))
"""
    (tmp_path / "words").write_text("\n".join(str(n * 7919 % 1000) for n in range(300)))
    done = subprocess.run(
        [sys.executable, "-c", code, *CACHES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT.parent), "XDG_CACHE_HOME": CACHE},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told, instructions, files = json.loads(done.stdout.splitlines()[-1])
    assert files[0] == files[1] == files[2]
    assert files[0][0] == instructions
    twin, seen = Twin(), Counter[str]()
    for line in (tmp_path / "t.lackey").read_text().splitlines():
        kind = line[:2].strip()
        address, size = line[3:].split(",")
        data = kind != "I"
        # As Cachegrind has it, data wider than a line is as wide as one, and what modifies reads.
        one, last = twin.access(int(data), int(address, 16), min(int(size), 64) if data else int(size))
        names = {"I": ("Ir", "I1mr", "ILmr"), "S": ("Dw", "D1mw", "DLmw")}.get(kind, ("Dr", "D1mr", "DLmr"))
        seen.update({names[0]: 1, names[1]: one, names[2]: last})
    assert dict(seen) == told
    lines = (tmp_path / "t.ramulator2").read_text().splitlines()
    assert [int(x[3:], 16) >> 6 for x in lines if x.startswith("LD ")] == twin.fetched
    written = [x for x in lines if x.startswith("ST ")]
    assert written
    assert len(written) <= len(twin.fetched)
    info = livepro("trace", "info", "--json", "t.champsim", cwd=tmp_path)
    assert info.returncode == 0
    found = json.loads(info.stdout)["t.champsim"]
    assert [found["instructions"], found["loads"], found["stores"]] == files[2]
    assert found["elsewhere"] == found["several targets"] == found["returns not behind a call"] == 0
    assert found["faults"] == []


def test_both_engines_write_the_same(builder: Builder, tmp_path: Path) -> None:
    program = fixture(builder, "signal_segv")
    for engine in ("step", "translate"):
        traced(tmp_path / f"{engine}.champsim", program, "--engine", engine)
    one, other = ((tmp_path / f"{engine}.champsim").read_bytes() for engine in ("step", "translate"))
    assert one == other


def test_a_full_disk_ends_the_trace_and_not_the_program(tmp_path: Path) -> None:
    script = "for i in $(seq 20); do echo $i; done > out; echo done >> out"
    done = livepro("trace", "-o", "/dev/full", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 2
    assert "/dev/full cannot be written any further: No space left on device." in done.stderr
    assert "the program went on" in done.stderr
    assert (tmp_path / "out").read_text().split() == [*map(str, range(1, 21)), "done"]


def write(out: Any, blocks: list[bytes]) -> None:
    for block in blocks:
        out.write(block)


@pytest.mark.parametrize("name", ["t", "t.gz", "t.xz"])
def test_what_was_written_before_the_disk_was_full_is_readable(name: str, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from livepro.errors import LiveproError
    from livepro.traces import output

    class Full:
        """A file on a disk that has no more room."""

        def __init__(self, file: Any, room: int) -> None:
            self.file, self.room = file, room

        def write(self, data: memoryview) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            done = int(self.file.write(data[: self.room]))
            self.room -= done
            return done

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    random = np.random.default_rng(1)
    blocks = [random.integers(0, 1 << 62, 8 * 5000).tobytes() for _ in range(60)]
    with ThreadPoolExecutor(2) as pool:
        out = output.Output(tmp_path / name, pool, 1)
        out._file = Full(out._file, 9_999_999)  # type: ignore[assignment]
        with pytest.raises(LiveproError, match="No space left on device"):
            write(out, blocks)
    data = (tmp_path / name).read_bytes()
    data = gzip.decompress(data) if name == "t.gz" else lzma.decompress(data) if name == "t.xz" else data
    assert len(data) % 64 == 0
    assert 5_000_000 < len(data) < 10_000_000
    assert b"".join(blocks).startswith(data)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--", "true"], "There is no file for the trace"),
        (["-o", "t.npz.gz", "--", "true"], "npz is compressed already"),
        (["-o", "t", "--simpoints", "p", "--", "true"], "--interval-size"),
        (["-o", "t", "--simpoints", "p", "--interval-size", "10", "--", "true"], "p:1: the line"),
        (["-o", "t", "--thread", "0", "--", "true"], "no such thread"),
        (["-o", "t", "--I1", "1,1,1", "--", "true"], "are for ramulator2"),
        (["-o", "absent/t", "--", "true"], "cannot be written: No such file"),
        (["info", "absent"], "There is no file absent"),
        (["info", "p"], "record 0 has 9 bytes, not 64"),
        (["info", "--format", "din", "p"], "p:1: 'not this' is no line of din"),
    ],
)
def test_what_is_wrong_is_told(arguments: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("not this\n")
    done = livepro("trace", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
