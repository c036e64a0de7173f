"""Compiled kernels against plain Python twins, on streams with every pattern of access."""

from __future__ import annotations

import platform
import random
from collections import Counter, OrderedDict
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
if platform.machine() != "x86_64":
    pytest.skip("written for x86-64 programs", allow_module_level=True)

from livepro import isa
from livepro.cachesim.model import EVENTS, CacheSim
from livepro.cachesim.simulated import Simulated
from livepro.engines.stream import GOES_ON, INTERRUPTED, PARTIAL, head
from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.stream.recorder import StreamImage, StreamThread
from livepro.errors import LiveproError
from livepro.events import Analysis, counting
from livepro.events.examples import Split, Strides
from livepro.events.kernels import Kernel
from livepro.events.replay import flatten
from livepro.events.spans.dividing import RegionRecords
from livepro.events.spans.feeding import CONDITIONAL, Feed, Slice
from livepro.events.spans.flattening import Turns
from livepro.events.spans.listing import Listing
from livepro.isa.access import Pattern

MACHINE = isa.for_machine("x86_64")

CODES = tuple(
    bytes.fromhex(text)
    for text in (
        "488b07488907c3",  # mov rax, [rdi]; mov [rdi], rax; ret
        "f3a4f3aa90",  # rep movsb; rep stosb; nop
        "62f17c492806c4e2792c0e74fe",  # vmovaps zmm0{k1}, [rsi]; vmaskmovps xmm1, xmm0, [rsi]; je
        "62f27d498b06ffe0",  # vpcompressd [rsi]{k1}, zmm0; jmp rax
        "62f27d4992048eff10",  # vpgatherdd zmm0{k1}, [rsi + zmm1 * 4]; call [rax]
        "480fc70ef0010eebfe",  # cmpxchg8b; lock add [rsi], ecx; jmp
        "0fae060fae26e8fbffffff",  # fxsave; xsave; call
    )
)


def blocks() -> StreamBlocks:
    out = StreamBlocks(MACHINE)
    for number, code in enumerate(CODES):
        block = MACHINE.decode_block(code, 0x401000 + 0x40 * number)
        sizes = bytes(b - a for a, b in zip(block.addresses, block.addresses[1:], strict=False))
        out.block(block.address, block.code, sizes, block.flows, block.target or 0)
    return out


def stream(known: StreamBlocks, records: int, seed: int) -> np.ndarray[Any, Any]:
    """Records of all kinds."""
    generator = random.Random(seed)

    def words(accesses: Any) -> list[int]:
        out: list[int] = []
        for access in accesses:
            at = 0x500000 + generator.randrange(1 << 13)
            if access.pattern is Pattern.ONE:
                out.append(at)
            elif access.pattern is Pattern.STRING:
                out += (at, at + generator.randrange(-5, 6) * access.size)
            elif access.pattern is Pattern.LANES:
                out.append(generator.getrandbits(access.lanes))
                out += (at + generator.randrange(999) for _ in range(access.lanes))
            else:
                out += (at, generator.getrandbits(max(access.lanes, 10)))
        # The operands of a repeated instruction go the same way.
        strings = [n for n, access in enumerate(accesses) if access.pattern is Pattern.STRING]
        if len(strings) == 2:
            out[3] = out[2] + out[1] - out[0]
        return out

    out: list[int] = []
    for _ in range(records):
        block = generator.choice(known.blocks)
        what = generator.random()
        if what < 0.05:
            out += (head(0, GOES_ON), 0x401000)
        elif what < 0.2:
            count = generator.randrange(1, len(block.accesses))
            strings = any(a.pattern is Pattern.STRING for a in block.accesses[count])
            out.append(head(block.number, PARTIAL | (INTERRUPTED if strings else 0), count))
            for accesses in block.accesses[: count + strings]:
                out += words(accesses)
        else:
            out.append(block.number)
            for accesses in block.accesses:
                out += words(accesses)
    return np.array(out, np.uint64)


class Log(Analysis):
    """All events, in order"""

    def state(self) -> dict[str, Any]:
        return {"rows": np.zeros((1 << 16, 3), np.int64), "n": np.zeros(1, np.int64)}

    def instruction(state, thread, instruction, address, size):  # type: ignore[no-untyped-def]
        state.rows[state.n[0]] = (0, address, size)
        state.n[0] += 1

    def access(state, thread, instruction, address, size, write):  # type: ignore[no-untyped-def]
        state.rows[state.n[0]] = (1 if write == 0 else 2, address, size)
        state.n[0] += 1


def run(analysis: Analysis, directory: Path, records: int, seed: int) -> tuple[Any, list[Any]]:
    known = blocks()
    kernel = Kernel(analysis, "test", directory)
    tables = known.tables()
    state = kernel.state()
    kernel.grow(state, len(tables.address))
    last = np.array([-1, 0], np.int64)
    events: list[Any] = []
    for part in range(3):
        words = stream(known, records, seed + part)
        events += flatten(known, words)
        kernel.consume(words.view(np.int64), 0, tables, last, state)
    return dict(zip(kernel.names, state, strict=True)), events


def test_the_loop_shows_what_plain_python_shows(tmp_path: Path) -> None:
    state, events = run(Log(), tmp_path, 300, 1)
    kinds = {"I": 0, "L": 1, "S": 2}
    wanted = [(kinds[kind], address, size) for kind, address, size in events if kind != "G"]
    assert state["rows"][: state["n"][0]].tolist() == [list(row) for row in wanted]
    assert len({row[0] for row in wanted}) == 3
    again, _ = run(Log(), tmp_path, 300, 1)  # from what is kept
    assert (again["rows"] == state["rows"]).all()


class Accesses(Analysis):
    """Accesses only, in order, with their instructions"""

    def state(self) -> dict[str, Any]:
        return {"rows": np.zeros((1 << 16, 3), np.int64), "n": np.zeros(1, np.int64)}

    def access(state, thread, instruction, address, size, write):  # type: ignore[no-untyped-def]
        state.rows[state.n[0]] = (instruction, address, size * 4 + write)
        state.n[0] += 1


class Blocks(Analysis):
    """Blocks and branches only, in order"""

    def state(self) -> dict[str, Any]:
        return {"rows": np.zeros((1 << 16, 3), np.int64), "n": np.zeros(1, np.int64)}

    def block(state, thread, instruction, length):  # type: ignore[no-untyped-def]
        state.rows[state.n[0]] = (0, instruction, length)
        state.n[0] += 1

    def branch(state, thread, instruction, address, target, taken, kind):  # type: ignore[no-untyped-def]
        state.rows[state.n[0]] = (1, instruction, target)
        state.n[0] += 1


class Everything(Blocks):
    """The same, and nothing of each instruction: which takes another loop"""

    def instruction(state, thread, instruction, address, size):  # type: ignore[no-untyped-def]
        state.n[0] += 0


class AllAccesses(Accesses):
    """The same, and nothing of each instruction: which takes another loop"""

    def instruction(state, thread, instruction, address, size):  # type: ignore[no-untyped-def]
        state.n[0] += 0


@pytest.mark.parametrize(("short", "long"), [(Accesses(), AllAccesses()), (Blocks(), Everything())])
def test_what_asks_for_less_is_shown_the_same(short: Analysis, long: Analysis, tmp_path: Path) -> None:
    found, _ = run(short, tmp_path, 300, 1)
    wanted, events = run(long, tmp_path, 300, 1)
    assert (found["rows"] == wanted["rows"]).all()
    assert found["n"][0] == wanted["n"][0] > 300
    if isinstance(short, Accesses):
        assert found["n"][0] == sum(kind in "LS" for kind, _, _ in events)


@pytest.mark.parametrize("analysis", [Log(), AllAccesses(), Accesses()])
def test_a_region_has_what_is_between_its_bounds(analysis: Analysis, tmp_path: Path) -> None:
    """Instruction by instruction, of records in chunks; an access has its instruction's number."""
    known = blocks()
    kernel, tables = Kernel(analysis, "test", tmp_path), known.tables()
    chunks = [stream(known, 40, seed) for seed in range(3)]
    events = [event for words in chunks for event in flatten(known, words)]
    numbered, number = [], 0
    for kind, address, size in events:
        number += kind == "I"
        if kind in ("ILS" if isinstance(analysis, Log) else "LS"):
            numbered.append((number, kind, address, size))
    generator = random.Random(1)
    for begin, end in [
        (0, 1),
        (0, number),
        *(sorted(generator.sample(range(number), 2)) for _ in range(150)),
    ]:
        state = kernel.state()
        kernel.grow(state, len(tables.address))
        last = np.array([-1, 0], np.int64)
        records = RegionRecords(waiting=begin > 0)
        for position in (begin, end) if begin else (end,):
            assert list(records.bound(position, None, tables)) == []
        for words in chunks:
            for piece, lower in records.pieces(words.view(np.int64), tables):
                kernel.consume(piece, 0, tables, last, state, lower)
        rows = dict(zip(kernel.names, state, strict=True))["rows"][: state[kernel.names.index("n")][0]]
        wanted = [(kind, address, size) for n, kind, address, size in numbered if begin < n <= end]
        if isinstance(analysis, Log):
            assert rows.tolist() == [["ILS".index(kind), address, size] for kind, address, size in wanted]
        else:
            assert rows[:, 1].tolist() == [address for _, address, _ in wanted]
            assert (rows[:, 2] >> 2).tolist() == [size for _, _, size in wanted]


class Lru:
    """A set-associative cache, from its definition."""

    def __init__(self, size: int, ways: int, line: int) -> None:
        self.ways, self.line, self.sets = ways, line, size // ways // line
        self.held: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(self.sets)]

    def misses(self, address: int, size: int) -> bool:
        out = False
        for line in range(address // self.line, (address + size - 1) // self.line + 1):
            held = self.held[line % self.sets]
            if line in held:
                held.move_to_end(line)
            else:
                out = True
                held[line] = None
                if len(held) > self.ways:
                    held.popitem(last=False)
        return out


@pytest.mark.parametrize("branches", [False, True])
def test_caches_are_what_their_definition_says(branches: bool) -> None:
    known = blocks()
    image = StreamImage(0, SimpleNamespace(process=None), MACHINE)  # type: ignore[arg-type]
    image.blocks = known
    thread = StreamThread(0, None, image, None)  # type: ignore[arg-type]
    simulator = CacheSim("512,2,32", "1024,4,32", "4096,4,64", branches=branches)
    consumer = simulator.consumer("cachesim", MACHINE)
    events: list[Any] = []
    for part in range(3):
        words = stream(known, 400, 5 + part)
        events += flatten(known, words)
        consumer.see(thread, words.view(np.int64), known.tables())
    simulated = consumer.finished(image)
    assert isinstance(simulated, Simulated)
    table = simulated.table(known.instructions)
    i1, d1, ll = Lru(512, 2, 32), Lru(1024, 4, 32), Lru(4096, 4, 64)
    counts: Counter[str] = Counter()
    before: Any = None
    for kind, address, size in events:
        if kind == "I":
            counts["Ir"] += 1
            if i1.misses(address, size):
                counts["I1mr"] += 1
                counts["ILmr"] += ll.misses(address, size)
        elif kind in "LS":
            size = min(size, 32)
            modifies = kind == "S" and before is not None and before == ("L", address, size)
            if not modifies:
                name = "r" if kind == "L" else "w"
                counts["D" + name] += 1
                if d1.misses(address, size):
                    counts[f"D1m{name}"] += 1
                    counts[f"DLm{name}"] += ll.misses(address, size)
        before = (kind, address, size)
    found = table.sum(axis=0)
    assert dict(zip(EVENTS[:9], found[:9].tolist(), strict=True)) == {
        name: counts[name] for name in EVENTS[:9]
    }
    assert all(counts.values())


def test_examples_are_what_plain_python_counts(tmp_path: Path) -> None:
    state, events = run(Split(), tmp_path, 200, 9)
    crossing = Counter(
        kind for kind, address, size in events if kind in "LS" and address // 64 != (address + size - 1) // 64
    )
    assert state["crossing"].tolist() == [crossing["L"], crossing["S"]]
    assert state["all"].tolist() == [sum(e[0] == "L" for e in events), sum(e[0] == "S" for e in events)]
    state, events = run(Strides(), tmp_path, 200, 9)
    stores = [0, *(address for kind, address, _ in events if kind == "S")]
    strides = Counter(abs(b - a).bit_length() for a, b in pairwise(stores))
    assert {n: c for n, c in enumerate(state["strides"].tolist()) if c} == dict(strides)


def test_tables_count_by_key() -> None:
    table, wanted = counting.table(100), Counter()
    generator = random.Random(3)
    for _ in range(2000):
        key = generator.choice((0, 5, -7, 1 << 50)) + generator.randrange(20)
        counting.count(table, key)
        wanted[key] += 1
    assert dict(counting.rows(table)) == dict(wanted)
    small = counting.table(1)
    counting.count(small, 1)
    counting.count(small, 2)
    with pytest.raises(ValueError, match="more different keys"):
        counting.count(small, 3)


class Broken(Analysis):
    def state(self) -> dict[str, Any]:
        return {"n": np.zeros(1, np.int64)}

    def access(state, thread, instruction, address, size, write):  # type: ignore[no-untyped-def]
        state.n[0] += address.unheard_of


def test_what_cannot_be_compiled_is_told_with_its_line(tmp_path: Path) -> None:
    kernel = Kernel(Broken(), "mine.py:Broken", tmp_path)
    with pytest.raises(
        LiveproError, match=r"mine.py:Broken cannot be compiled.*test_kernels.py, line \d+: `state.n\[0\] \+="
    ):
        kernel.compile(blocks().tables())


def test_who_has_no_events_takes_no_turn() -> None:
    # Threads take turns at the two arrays: where one had nothing to give, the next one filled those that the
    # simulator was still reading, and went round in circles.
    known = blocks()
    turns = Turns(1 << 12)
    seen: list[Slice] = []

    class Keeper:
        def take(self, part: Slice) -> None:
            seen.append(part)

        def cut(self, retired: int) -> None:
            raise AssertionError

    listing = Listing()
    feeds = [Feed(Keeper(), listing, turns, CONDITIONAL) for _ in range(2)]
    tables = known.tables()
    feeds[0].see(stream(known, 200, 1).view(np.int64), tables)
    feeds[0].flush()
    (first,) = seen
    kept = first.events.begins[: first.end].tolist()
    feeds[0].flush()
    feeds[1].release(tables)
    feeds[1].see(stream(known, 300, 2).view(np.int64), tables)
    assert first.events.begins[: first.end].tolist() == kept
    feeds[1].flush()
    assert len(seen) == 2
    assert seen[1].events is not first.events
