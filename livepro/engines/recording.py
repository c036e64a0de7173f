"""What an engine writes down while the target runs: blocks, and per thread how often.

Plain lists and dictionaries, cheap to add to; `session` turns them into the
frozen arrays of the model when the run is over.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import sub
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.alike import Alike
from livepro.engines.window import Counts, Position, Window
from livepro.isa.base import CodeBlock
from livepro.linux.proc import Mapping
from livepro.model import CodeLabel, Interval
from livepro.model.shifted import Shifted
from livepro.tracee import TracedProcess, TracedThread

CutRule = Callable[[int], int]
"""From a position in a thread's instruction stream to the next position (greater)
at which an interval ends."""


class BlockStore:
    """The basic blocks of one process image, by row, in order of first execution.

    In parallel: `addresses`, `codes` (the bytes), `lengths` (instructions),
    `sizes` (bytes of each instruction, as a bytes object), `modules` (path of
    the mapping) and `offsets` (file offset of the first byte; for code that is
    not file-backed the offset in its mapping). `known` are ranges of rows whose
    instructions have been described before; `labels` (by row) say who made code that
    was made while the program ran.
    """

    def __init__(self) -> None:
        # (Arrays: a program may start thousands of processes, whose records stay. See `share`, too.)
        self._addresses = array("Q")
        self.addresses: Sequence[int] = self._addresses
        self.codes: list[bytes] = []
        self.lengths = array("I")
        self.sizes: list[bytes] = []
        self.modules: list[str] = []
        self.offsets = array("Q")
        self.known: list[KnownKinds] = []
        self.labels: dict[int, CodeLabel] = {}
        self._length_array = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.addresses)

    def add(self, block: CodeBlock, mapping: Mapping | None) -> int:
        """Append a block; returns its row."""
        bounds = block.addresses
        return self.append(block.address, block.code, bytes(map(sub, bounds[1:], bounds)), mapping)

    def append(self, address: int, code: bytes, sizes: bytes, mapping: Mapping | None) -> int:
        """Append a block by its parts; `sizes` are those of its instructions in bytes."""
        return self.put(address, code, sizes, *located(address, mapping))

    def put(self, address: int, code: bytes, sizes: bytes, module: str, offset: int) -> int:
        """Append a block by its parts; returns its row."""
        self._addresses.append(address)
        self.codes.append(code)
        self.lengths.append(len(sizes))
        self.sizes.append(sizes)
        self.modules.append(module)
        self.offsets.append(offset)
        return len(self.codes) - 1

    def extend(
        self,
        addresses: list[int],
        codes: list[bytes],
        sizes: list[bytes],
        mapping: Mapping,
        kinds: npt.NDArray[np.uint16],
        instructions: Sequence[Any],
    ) -> None:
        """Append blocks of one mapping by their parts. `kinds`
        are the rows in `instructions` of what each of theirs is like."""
        first = len(self.addresses)
        self._addresses.extend(addresses)
        self.codes += codes
        self.lengths.extend(map(len, sizes))
        self.sizes += sizes
        self.modules += [mapping.path] * len(addresses)
        shift = mapping.offset - mapping.start
        self.offsets.extend(address + shift for address in addresses)
        self.known.append(KnownKinds(first, len(addresses), kinds, instructions))

    def extend_mixed(
        self,
        addresses: list[int],
        codes: list[bytes],
        sizes: list[bytes],
        mappings: Sequence[Mapping | None],
        kinds: npt.NDArray[np.uint16],
        instructions: Sequence[Any],
    ) -> None:
        """The same for blocks of several mappings."""
        first = len(self.addresses)
        places = [located(*each) for each in zip(addresses, mappings, strict=True)]
        self._addresses.extend(addresses)
        self.codes += codes
        self.lengths.extend(map(len, sizes))
        self.sizes += sizes
        self.modules += [module for module, _ in places]
        self.offsets.extend(offset for _, offset in places)
        self.known.append(KnownKinds(first, len(addresses), kinds, instructions))

    def length_array(self) -> npt.NDArray[np.int64]:
        """`lengths` of the rows that are complete, as an array. For one thread, which need not
        be the one that appends."""
        known, rows = self._length_array, len(self.offsets)
        if len(known) < rows:
            more = np.array(self.lengths[len(known) : rows], np.int64)
            known = self._length_array = np.concatenate((known, more))
        return known

    def share(self, alike: Alike) -> None:
        """Have in common with other stores what is equal in both: all but where the modules are mapped, where
        a program was started again. Nothing may be appended after that."""
        self.codes = alike.of_list(self.codes)
        self.sizes = alike.of_list(self.sizes)
        self.modules = alike.of_list(self.modules)
        self.lengths = alike.of_machine_values(self.lengths)
        self.offsets = alike.of_machine_values(self.offsets)
        if self.addresses is self._addresses:
            self.addresses = Shifted.of(self._addresses, self.offsets, alike.of_array)
            self._addresses = array("Q")
        self.known = [
            KnownKinds(known.first, known.count, alike.of_array(known.kinds), known.instructions)
            for known in self.known
        ]


def located(address: int, mapping: Mapping | None) -> tuple[str, int]:
    """The module and offset (see `BlockStore`) of an address in a mapping."""
    if mapping is None:
        return "", address
    return mapping.path or "[anon]", address - mapping.start + mapping.offset


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """Of the instructions of `count` rows from `first` on, block after block, which of
    `instructions` (see `isa.kinds.restore`) each is like: equal in all but its code."""

    first: int
    count: int
    kinds: npt.NDArray[np.uint16]
    instructions: Sequence[Any]


class ThreadTally:
    """What one thread has executed so far.

    `entries` counts complete executions by row, `partial` executions that left
    after the first k instructions by (row, k). With a cut rule, `intervals`
    are the basic block vectors closed so far; `spend` is told of all that is counted
    while there is one or the other (`cutting`). `window` says what of all that is
    not to be reported. An engine that keeps counts elsewhere while a thread lives sets
    `closed` once they are all here. Once nothing more will be counted they may be in `final`
    instead of the dictionaries, by row: as arrays they take a tenth of the memory.
    """

    def __init__(
        self,
        thread: TracedThread,
        store: BlockStore,
        cut: CutRule | None,
        spend: Callable[[int], None] | None = None,
    ) -> None:
        self.thread = thread
        self.store = store
        self.entries: defaultdict[int, int] = defaultdict(int)
        self.partial: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.rep_iterations = 0
        self.closed = False
        self.final: Counts | None = None
        self.total = 0
        """Instructions of a closed tally, without what its window leaves out."""
        self.intervals: list[Interval] = []
        self._cut = cut
        self._position = 0
        self._next = cut(0) if cut else 0
        self._vector: defaultdict[int, int] = defaultdict(int)
        self._began = 0
        self._skip = 0
        self.cutting = cut is not None or spend is not None
        self._vectors = cut is not None
        self._spend = spend
        self.window = Window()
        self.executed: int | None = None
        """All instructions executed, whatever the window; None until nothing more will be."""

    def complete(self, row: int) -> None:
        """Count one complete execution of a block."""
        self.entries[row] += 1
        if self.cutting:
            self.advance(row, self.store.lengths[row])

    def prefix(self, row: int, count: int) -> None:
        """Count an execution of a block's first `count` instructions."""
        if count == self.store.lengths[row]:
            self.complete(row)
        elif count:
            self.partial[row, count] += 1
            if self.cutting:
                self.advance(row, count)

    def begun(self, row: int, length: int) -> int:
        """Executions counted here of a block of so many instructions, wholly or in part."""
        return self.entries.get(row, 0) + sum(self.partial.get((row, k), 0) for k in range(1, length))

    def advance(self, row: int, count: int) -> None:
        """Move the interval clock on by `count` instructions of one block, cutting where due."""
        if self._spend is not None:
            self._spend(count)
        if not self._vectors:
            return
        assert self._cut is not None
        if self._skip:
            count -= self._skip
            self._skip = 0
        while self._position + count >= self._next:
            within = self._next - self._position
            self._vector[row] += within
            self._position = self._next
            count -= within
            self._close()
            self._next = self._cut(self._position)
        if count:
            self._vector[row] += count
            self._position += count

    def _close(self) -> None:
        rows = np.array(sorted(row for row, count in self._vector.items() if count), np.int64)
        counts = np.array([self._vector[row] for row in rows.tolist()], np.uint64)
        self.intervals.append(Interval(self._position - self._began, rows, counts))
        self._vector.clear()
        self._began = self._position

    def restart(self, position: Position) -> None:
        """See `window.Vectors`."""
        self.intervals.clear()
        self._vector.clear()
        self._position = self._began = 0
        if self._cut is not None:
            self._next = self._cut(0)
        self._skip = position.executed if self._vectors else 0

    def freeze(self, position: Position) -> None:
        """See `window.Vectors`."""
        if self._vectors:
            spend, self._spend = self._spend, None
            if position.executed:
                self.advance(position.row, position.executed)
            self._spend = spend
            self._vectors = False

    def thaw(self, position: Position) -> None:
        """See `window.Vectors`."""
        self._vectors = self._cut is not None
        self._skip = position.executed if self._vectors else 0

    def raw_counts(self) -> Counts:
        """All that is counted here, whatever the window."""
        if self.final is not None:
            return self.final
        return Counts.of(self.entries, self.partial, self.rep_iterations)

    def conclude(self, counts: Counts) -> None:
        """Nothing more will be counted: `counts` are what has been."""
        self.final = counts
        self.entries, self.partial = defaultdict(int), defaultdict(int)

    def close(self, lengths: Sequence[int] | npt.NDArray[np.int64]) -> None:
        """All is here now. `lengths` are instructions by row."""
        raw = self.raw_counts()
        self.executed = self.total = raw.instructions(lengths)
        if not self.window.whole:
            self.total = self.window.counted(raw).instructions(lengths)
        self.closed = True

    def finish(self) -> None:
        """Close the last, partial interval. Called once, when nothing more will be counted."""
        if self._position > self._began:
            self._close()

    def settle(self, lengths: Sequence[int] | npt.NDArray[np.int64] | None = None) -> None:
        """Leave out what the window leaves out. Called when nothing more will be counted. `lengths` are
        instructions by row, if they are not the store's."""
        if self.executed is not None and self.window.whole:
            return
        raw = self.raw_counts()
        if self.executed is None:
            self.executed = raw.instructions(self.store.lengths if lengths is None else lengths)
        if self.window.whole:
            return
        self.conclude(self.window.counted(raw))
        self.window = Window(over=self.window.over)

    def rename(self, former: npt.NDArray[np.int64]) -> None:
        """Renumber: row n is what was counted for `former[n]` (ascending). All others must have a count of 0.
        Called once, when nothing more will be counted."""
        self.conclude(self.raw_counts().renamed(former))
        self.intervals = [
            Interval(i.instructions, np.searchsorted(former, i.rows), i.counts) for i in self.intervals
        ]

    def share(self, alike: Alike) -> None:
        """Have final counts in common with other tallies, as far as they are equal."""
        if self.final is not None:
            self.final = self.final.shared(alike)

    @property
    def instructions(self) -> int:
        """Instructions counted so far."""
        lengths = self.store.lengths
        if self.final is not None:
            return self.final.instructions(lengths)
        whole = sum(times * lengths[row] for row, times in self.entries.items())
        return whole + sum(times * count for (_, count), times in self.partial.items())


class ImageRecord:
    """What one process image executed: its blocks, and its threads in order of start.

    `settled` says that nothing will be added any more. `former` (int64) are the numbers
    that the engine had for the rows of the store while the image ran, where these were others.
    """

    def __init__(self, process: TracedProcess) -> None:
        self.process = process
        self.store = BlockStore()
        self.tallies: list[ThreadTally] = []
        self.settled = False
        self.former: npt.NDArray[np.int64] | None = None

    def settle(self, alike: Alike) -> None:
        """Nothing will be added any more."""
        self.settled = True
        self.store.share(alike)
        if self.former is not None:
            self.former = alike.of_array(self.former)
        for tally in self.tallies:
            tally.share(alike)
