"""MICA's analyses in plain Python, written from their definitions: what the compiled kernels must equal.

Nothing here is fast: stacks are lists, tables dictionaries, every number is counted where its definition says
so.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from livepro.analyses.itypes import Grouping
from livepro.engines.stream import COUNT_SHIFT, FLAGS_SHIFT, GOES_ON, INTERRUPTED, PARTIAL
from livepro.isa.access import READ, WRITE, Pattern, expand
from livepro.isa.operands import RegisterKind
from livepro.mica.settings import WINDOWS
from livepro.model import Flow

MICA_REGISTERS = {RegisterKind.GENERAL, RegisterKind.X87, RegisterKind.MMX, RegisterKind.VECTOR}


class Operand(NamedTuple):
    kind: str  # read1, read2, write
    address: int
    size: int


class Event(NamedTuple):
    """An instruction executed, or one repetition of it. `retires` says that the instruction counts here."""

    address: int
    code: bytes
    operands: tuple[Operand, ...]
    retires: bool
    taken: bool | None  # conditional branches whose outcome is known


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def events(isa: Any, blocks: Any, stream: Sequence[int], mica: bool) -> Iterator[Event]:
    """The events of a whole stream."""
    at = 0
    records = []
    while at < len(stream):
        first = stream[at]
        flags = first >> FLAGS_SHIFT & 0xFF
        if flags & GOES_ON:
            records.append((stream[at + 1], None))
            at += 2
            continue
        number = first & 0xFFFF_FFFF
        block, sizes = blocks.blocks[number], blocks.sizes[number]
        count = first >> COUNT_SHIFT if flags & PARTIAL else len(sizes)
        executed = []
        address, place = block.address, at + 1
        for index in range(count + bool(flags & INTERRUPTED)):
            accesses = block.accesses[index]
            words = []
            for access in accesses:
                words.append(stream[place : place + access.words])
                place += access.words
            executed.append((address, sizes[index], accesses, words, index < count))
            address += sizes[index]
        records.append((block.address, (number, executed, not flags)))
        at = place
    for n, (_, record) in enumerate(records):
        if record is None:
            continue
        number, executed, whole = record
        code = blocks.codes[number]
        start = blocks.blocks[number].address
        for k, (address, size, accesses, words, done) in enumerate(executed):
            encoding = code[address - start : address - start + size]
            taken = None
            last = whole and k == len(executed) - 1
            if last and n + 1 < len(records) and isa.describe(encoding).flow is Flow.BRANCH:
                taken = records[n + 1][0] != address + size
            if accesses and accesses[0].pattern is Pattern.STRING:
                turns = [list(expand(a, w)) for a, w in zip(accesses, words, strict=True)]
                kinds = [
                    "write" if a.kind == WRITE else "read2" if m else "read1" for m, a in enumerate(accesses)
                ]
                many = len(turns[0])
                if not many:
                    never = [
                        Operand(kind, signed(w[0]), a.size)
                        for kind, w, a in zip(kinds, words, accesses, strict=True)
                    ]
                    yield Event(address, encoding, tuple(never) if mica else (), not mica, None)
                for turn in range(many):
                    each = [
                        Operand(kind, signed(t[turn][0]), t[turn][1])
                        for kind, t in zip(kinds, turns, strict=True)
                    ]
                    counts = done and turn == (0 if mica else many - 1)
                    yield Event(address, encoding, tuple(each), counts, None)
                continue
            reads, writes = [], []
            read_number = write_number = 0
            for access, w in zip(accesses, words, strict=True):
                pieces = list(expand(access, w))
                if access.kind & READ:
                    read_number += 1
                    if not (mica and read_number > 2):
                        reads += [("read1" if read_number == 1 else "read2", signed(a), s) for a, s in pieces]
                if access.kind & WRITE:
                    write_number += 1
                    if not (mica and write_number > 1):
                        writes += [("write", signed(a), s) for a, s in pieces]
            if mica:  # the size of the first read is that of both
                size1 = next((s for kind, _, s in reads if kind == "read1"), None)
                reads = [(k, a, size1 if k == "read2" and size1 is not None else s) for k, a, s in reads]
            made = [Operand(*o) for o in (*reads, *writes)]
            yield Event(address, encoding, tuple(made), True, taken)


class Twin:
    """All analyses of one thread. `intervals` is a list of (instructions, events, values by analysis)."""

    def __init__(self, isa: Any, settings: Any, spec: Any) -> None:
        self.isa, self.settings = isa, settings
        self.mica = settings.dialect.value == "mica"
        self.grouping = Grouping(spec)
        self.intervals: list[tuple[int, int, dict[str, list[int]]]] = []
        self.now = 0  # T
        one = (settings.ilp_size,) if "ilp_one" in settings.analyses else ()
        self.windows = (WINDOWS if "ilp" in settings.analyses else ()) + one
        self.clock = [0] * len(self.windows)
        self.fifo: list[deque[int]] = [deque() for _ in self.windows]
        self.register_there: list[dict[str, int]] = [defaultdict(int) for _ in self.windows]
        self.history = 0
        self.own_history: dict[int, int] = defaultdict(int)
        self.tables: dict[Any, dict[Any, int]] = {}
        self.outcome: dict[int, bool] = {}
        self.uses: Counter[str] = Counter()
        self.touched: set[str] = set()
        self.born: dict[str, int] = {}
        self.last_local: dict[Any, int] = defaultdict(int)
        self.last_global: dict[str, int] = defaultdict(int)
        self.stack: list[int] = []
        self.pages: tuple[set[int], ...] = (set(), set(), set(), set())
        self.begin()

    def begin(self) -> None:
        self.retired = self.count = 0
        self.cycles = [0] * len(self.windows)
        self.block_there: list[dict[int, int]] = [defaultdict(int) for _ in self.windows]
        self.types: Counter[str] = Counter()
        self.missed: Counter[Any] = Counter()
        self.executed: Counter[int] = Counter()
        self.taken: Counter[int] = Counter()
        self.transitions: Counter[int] = Counter()
        self.operands = self.instances = self.used = 0
        self.ages: list[int] = []
        self.strides: dict[Any, list[int]] = defaultdict(list)
        self.footprint: tuple[set[int], ...] = (set(), set(), set(), set())
        self.distances: list[int] = []
        self.cold = 0

    def run(self, happened: Iterator[Event]) -> Twin:
        for event in happened:
            self.event(event)
        if self.settings.interval_size:
            self.cut()
        return self

    def event(self, event: Event) -> None:
        self.now += 1
        self.count += 1
        registers = self.isa.operands(event.code)
        reads, writes = self.tracked(registers.reads), self.tracked(registers.writes)
        self.step_ilp(event, reads, writes)
        for group in self.grouping.groups(self.isa.describe(event.code)):
            self.types[group] += 1
        if event.taken is not None:
            self.branch(event.address, event.taken)
        self.step_registers(registers.number, reads, writes)
        self.step_memory(event)
        if event.retires:
            self.retired += 1
            if self.retired == self.settings.interval_size:
                self.cut()

    def tracked(self, registers: Any) -> list[str]:
        if self.mica:
            return list(dict.fromkeys(r.name for r in registers if r.kind in MICA_REGISTERS))
        return list(dict.fromkeys(r.whole for r in registers if r.kind is not RegisterKind.OTHER))

    def blocks(self, operand: Operand, bits: int) -> range:
        return range(operand.address >> bits, (operand.address + operand.size - 1 >> bits) + 1)

    def step_ilp(self, event: Event, reads: list[str], writes: list[str]) -> None:
        bits = self.settings.block_size
        for w, size in enumerate(self.windows):
            there, memory = self.register_there[w], self.block_there[w]
            ready = [self.clock[w], *(there[r] for r in reads)]
            for operand in event.operands:
                if operand.kind != "write" and operand.size:
                    ready += [memory[b] for b in self.blocks(operand, bits)]
            t = max(ready)
            for register in writes:
                there[register] = t + 1
            for operand in event.operands:
                if operand.kind == "write" and operand.size:
                    for block in self.blocks(operand, bits):
                        memory[block] = t + 1
            self.fifo[w].append(t)
            if len(self.fifo[w]) == size:
                self.clock[w] += 1
                self.cycles[w] += 1
                while self.fifo[w] and self.fifo[w][0] < self.clock[w]:
                    self.fifo[w].popleft()

    def branch(self, address: int, taken: bool) -> None:
        start = -1 if self.settings.ppm_initial is None else self.settings.ppm_initial
        for h in (4, 8, 12):
            for variant in ("GAg", "PAg", "GAs", "PAs"):
                history = self.history if variant[0] == "G" else self.own_history[address]
                own = variant[2] == "s"
                table = self.tables.setdefault((variant, h, address if own else None), {})
                initial = start if own else 0
                entry = [table.get((i, history % 2**i), initial) for i in range(h + 1)]
                order = max((i for i in range(h + 1) if entry[i]), default=0)
                if (entry[order] > 0) != taken:
                    self.missed[h, variant] += 1
                for i in range(order, h + 1):
                    new = entry[i] + (1 if taken else -1)
                    if new == 0:
                        new = 1 if taken else -1
                    table[i, history % 2**i] = max(-127, min(127, new))
        self.history = self.history * 2 + taken
        self.own_history[address] = self.own_history[address] * 2 + taken
        self.executed[address] += 1
        self.taken[address] += taken
        self.transitions[address] += self.outcome.get(address, taken) != taken
        self.outcome[address] = taken

    def step_registers(self, count: int, reads: list[str], writes: list[str]) -> None:
        self.operands += count
        for register in reads:
            self.ages.append(min(127, self.now - self.born[register]) if register in self.born else 0)
            self.uses[register] += 1
            self.touched.add(register)
        for register in writes:
            if register in self.touched:
                self.instances += 1
                self.used += min(127, self.uses[register])
            self.uses[register] = 0
            self.touched.add(register)
            self.born[register] = self.now

    def step_memory(self, event: Event) -> None:
        block, page = self.settings.block_size, self.settings.page_size
        for operand in event.operands:
            kind = "write" if operand.kind == "write" else "read"
            slot = event.address, operand.kind
            self.strides[kind, "local"].append(abs(operand.address - self.last_local[slot]))
            self.strides[kind, "global"].append(abs(operand.address - self.last_global[kind]))
            self.last_local[slot] = self.last_global[kind] = operand.address + operand.size - 1
            if operand.size:
                for which, bits in ((0, block), (1, page)):
                    self.footprint[which].update(self.blocks(operand, bits))
            if kind == "read":
                for reference in self.blocks(operand, block):
                    if reference in self.stack:
                        self.distances.append(self.stack.index(reference))
                        self.stack.remove(reference)
                    else:
                        self.cold += 1
                    self.stack.insert(0, reference)
        code = Operand("code", signed(event.address), len(event.code))
        for which, bits in ((2, block), (3, page)):
            self.footprint[which].update(self.blocks(code, bits))

    def values(self) -> dict[str, list[int]]:
        out: dict[str, list[int]] = {}
        cycles = list(self.cycles)
        if "ilp_one" in self.settings.analyses:
            out["ilp_one"] = [cycles.pop()]
        out["ilp"] = cycles
        out["itypes"] = [self.types[name] for name in self.grouping.names]
        out["ppm"] = [self.missed[h, v] for h in (4, 8, 12) for v in ("GAg", "PAg", "GAs", "PAs")]
        total = self.executed
        out["ppm"] += [
            total.total(),
            sum(min(self.transitions[a], n - self.transitions[a]) for a, n in total.items()),
            sum(min(self.taken[a], n - self.taken[a]) for a, n in total.items()),
        ]
        ages = [sum(age <= limit for age in self.ages) for limit in (1, 2, 4, 8, 16, 32, 64)]
        out["reg"] = [self.operands, self.instances, self.used, len(self.ages), *ages]
        out["stride"] = []
        for kind in ("read", "write"):
            out["stride"].append(len(self.strides[kind, "local"]))
            for which in ("local", "global"):
                for limit in (0, 8, 64, 512, 4096, 32768, 262144):
                    out["stride"].append(sum(s <= limit for s in self.strides[kind, which]))
        out["memfootprint"] = [len(of) for of in self.footprint]
        buckets = [0] * 19
        for distance in self.distances:
            buckets[bisect.bisect([2**k for k in range(1, 19)], distance)] += 1
        references = self.cold + len(self.distances)
        out["memstackdist"] = [references, self.cold, *buckets]
        full = [self.distances.count(d) for d in range(128)]
        out["fullmemstackdist"] = [references, self.cold, *full, len(self.distances) - sum(full)]
        return {name: out[name] for name in self.settings.analyses}

    def cut(self) -> None:
        self.intervals.append((self.retired, self.count, self.values()))
        self.begin()
