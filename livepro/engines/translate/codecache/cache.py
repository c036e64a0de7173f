"""What is in a code cache: block copies, stops, and which place of the program each address is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.live import Gone
from livepro.engines.translate import layout
from livepro.engines.translate.codecache.compiled_code import (
    AT,
    CODE_SIZE,
    LENGTH,
    PC,
    SIZE,
    AllMade,
    Batch,
    Changing,
    CodeText,
    CompiledCode,
    all_made,
    batch_of,
    pieces,
)
from livepro.engines.translate.codecache.fragment import Fragment, Place
from livepro.engines.translate.codecache.stop_reasons import Stop
from livepro.engines.translate.memory import SharedFile
from livepro.engines.translate.persist.module import PersistedModule
from livepro.engines.translate.persist.record import Record
from livepro.engines.translate.translator.arrivals import Follower
from livepro.linux.proc import Mapping
from livepro.model.arrays import ranges

_SPARE = 1 << 16  # bytes left at the end of each part
LARGEST_FRAGMENT = _SPARE - (1 << 12)
"""Bytes that one fragment may have, with its comparison: what is left is for a landing and branches."""
Array = npt.NDArray[np.int64]

FIXED = 1 << 16
"""Bytes at the end of each file for what is there for as long as the file is."""
SMALLEST = 8 * _SPARE
"""Bytes that a part of a file must have to be worth using."""


class Cache:
    """One code cache, all of a file (which begins at `base`) or a part of it, from `first` to `end`:
    copies grow from its start, stubs, literals and what is out of the way (at `colds`, as many as there are
    `starts`, or none) from its middle.

    A `module` (a stable mapping of a file) has one of its own, whose content can be
    kept under `key`; what could not be put back elsewhere clears the key. It is
    `stale` once the module is remapped, `disturbed` once a fragment has been put out of force;
    `follower` follows other processes in it. Code of an `extent` (addresses) is translated into it by
    compiled code: its module's, whose `text` it is, or what is `changing`. `persisted` is what was put back
    when it was opened, in slots from `first_slot` on, which count in the cells from `first_cell` on. `stops`
    are those of all caches of its generation. `ways` are pieces of code that lead to far places (or arrive at
    one of its own), by these, as far as the places stay what they are.
    """

    def __init__(
        self,
        file: SharedFile,
        module: Mapping | None = None,
        key: str = "",
        part: tuple[int, int] | None = None,
    ) -> None:
        base = file.base
        self.base = base
        self.first, self.end = part or (base, base + file.size - FIXED)
        self.middle = (self.first - base + self.end - base) // 2 & -layout.PAGE if part else file.size // 2
        self.file = file
        self.map: Any = file.map
        self.hot = self.seen_hot = self.first + 16
        self.cold = self.seen_cold = base + self.middle
        self.hot_end = self.cold - _SPARE
        self.cold_end = self.end - _SPARE
        self.starts: list[int] = []
        self.colds: list[int] = []
        self.blocks: list[Fragment | None] = []
        self.stubs: dict[int, int] = {}
        self.links: dict[int, list[int]] = {}
        self.module = module
        self.key = key
        self.stale = self.disturbed = False
        self.extent = (0, 0) if module is None else (module.start, module.end)
        self.text: CodeText | None = None
        self.changing: Changing | None = None
        self.compiled: CompiledCode | None = None
        self.batches: list[Batch] = []
        self._made: tuple[int, AllMade | None] = 0, None
        self.seen = 0, 0, 0
        self.forked = 0
        self.left: set[int] = set()
        self.follower = Follower()
        self.record = Record(base, 0 if module is None else module.start)
        self.persisted: PersistedModule | None = None
        self.first_slot = self.first_cell = 0
        self.stops: dict[int, Stop] = {}
        self.ways: dict[int, int] = {}
        if part is not None and self.end == base + file.size:
            self.hot_end, self.cold_end = self.first, self.end - 64  # not for copies
        self.recall: Callable[[Cache, int], Fragment]

    def fork(self, file: SharedFile) -> Cache:
        """The same for a copy of its file."""
        child = Cache(file, self.module, self.key, (self.first, self.end))
        child.middle, child.hot_end, child.cold_end = self.middle, self.hot_end, self.cold_end
        child.hot, child.cold = self.hot, self.cold
        child.starts, child.blocks = self.starts.copy(), self.blocks.copy()
        child.colds = self.colds.copy()
        child.stubs = self.stubs.copy()
        child.links = {target: fields.copy() for target, fields in self.links.items()}
        child.record = self.record.copy()
        child.persisted, child.first_slot, child.first_cell = self.persisted, self.first_slot, self.first_cell
        child.stale, child.disturbed, child.follower = self.stale, self.disturbed, self.follower.copy()
        child.extent, child.changing = self.extent, self.changing
        child.text, child.batches, child.forked = self.text, self.batches.copy(), len(self.blocks) - self.kept
        if self.compiled is not None:
            child.links = self.record.links_by_target()
        return child

    @property
    def kept(self) -> int:
        """How many of its copies were put back."""
        return 0 if self.persisted is None else len(self.persisted)

    @property
    def lasting(self) -> bool:
        """Whether it is there for as long as its file is, and no copies are in it."""
        return self.hot_end == self.first

    @property
    def room(self) -> bool:
        """Whether there is room for more copies."""
        return self.hot < self.hot_end and self.cold < self.cold_end

    @property
    def used(self) -> list[tuple[int, int]]:
        """The ranges of addresses that hold anything, as (start, end)."""
        return [(self.first, self.hot), (self.base + self.middle, self.cold)]

    def serves(self, pc: int) -> bool:
        """Whether the program's address `pc` is in this cache's module."""
        module = self.module
        return module is not None and module.start <= pc < module.end and not self.stale

    def covers(self, pc: int) -> bool:
        """Whether compiled code may translate the program's code at `pc` into this cache."""
        start, end = self.extent
        return start <= pc < end and not self.stale

    def kept_links(self, pc: int) -> Sequence[int]:
        """Where the displacements that lead to `pc` are, as far as they were put back."""
        if self.persisted is None or self.module is None:
            return ()
        targets = self.persisted.link_targets
        first, end = np.searchsorted(targets, (pc - self.module.start, pc - self.module.start + 1))
        return [int(field) + self.base for field in self.persisted.link_fields[first:end]]

    def compiled_links(self, pc: int) -> Sequence[int]:
        """The same, as far as compiled code has made them."""
        if self.compiled is None or not self.covers(pc):
            return ()
        return [field + self.base for field in self.compiled.links_to(pc - self.extent[0])]

    def forget_compiled(self, pc: int) -> None:
        """The fragment of `pc` is in force no longer. What compiled code makes of a module, which is not
        expected to change, begins anew."""
        self.disturbed = True
        if self.compiled is None:
            return
        if self.module is not None:
            self.give_up()
        elif self.covers(pc):
            self.compiled.forget(pc - self.extent[0], gone=True)

    def know(self, pc: int, start: int) -> None:
        """The fragment of `pc` at `start` is in force again."""
        if self.compiled is not None and self.covers(pc):
            nothing = np.zeros(0, np.int64)
            self.compiled.take(
                *(np.array([pc - self.extent[0]]), np.array([start - self.base])),
                *(nothing, nothing, nothing, nothing, nothing.reshape(0, 2)),
            )

    def give_up(self) -> None:
        """Compiled code goes by what is no longer so."""
        self.links, self.compiled = self.record.links_by_target(), None
        self.forked = len(self.blocks) - self.kept

    def made_within(self, start: int, end: int) -> list[int]:
        """The program's addresses of the blocks that compiled code has made which overlap [start, end)."""
        made = self.made
        if made is None:
            return []
        pcs = made.blocks[:, PC] + self.extent[0]
        found: list[int] = pcs[(pcs < end) & (start < pcs + made.blocks[:, CODE_SIZE])].tolist()
        return found

    def made_parts(self, row: int) -> tuple[int, bytes, bytes]:
        """The address and bytes of a block that compiled code has made, and the sizes of its instructions.

        Raises `Gone` once they have been given up: a view's thread may ask at any time.
        """
        known, text = batch_of(self.batches, row)[2], self.text
        if text is None:
            raise Gone
        return *self.code_of(known), text.steps(int(known[AT]), int(known[LENGTH]))

    def code_of(self, known: Array) -> tuple[int, bytes]:
        """The address and bytes of a block that compiled code has made, `known` as a row of `Batch.blocks`.
        Raises `Gone` as `made_parts` does."""
        text = self.text
        if text is None:
            raise Gone
        at, size = int(known[AT]), int(known[CODE_SIZE])
        return int(known[PC]) + self.extent[0], text.code[at : at + size].tobytes()

    def codes_of(self, blocks: Array) -> list[bytes]:
        """The bytes of blocks that compiled code has made."""
        assert self.text is not None
        sizes = blocks[:, CODE_SIZE]
        return pieces(self.text.code[ranges(blocks[:, AT], sizes)], sizes)

    @property
    def made(self) -> AllMade | None:
        """All that compiled code has made; None if that is nothing."""
        known, made = self._made
        if known != len(self.batches):
            self._made = len(self.batches), all_made(self.batches[known:], made)
        return self._made[1]

    def all_made(self) -> Iterable[tuple[int, int, bytes]]:
        """The slots, addresses and bytes of all blocks that compiled code has made."""
        made = self.made
        if made is None:
            return ()
        pcs = (made.blocks[:, PC] + self.extent[0]).tolist()
        return zip(made.slots.tolist(), pcs, self.codes_of(made.blocks), strict=True)

    def steps_made(self) -> list[bytes]:
        """The sizes of the instructions of each of them."""
        made = self.made
        if made is None:
            return []
        assert self.text is not None
        offsets, lengths, sizes = (made.blocks[:, column].copy() for column in (AT, LENGTH, CODE_SIZE))
        return pieces(self.text.steps_of(offsets, lengths, sizes), lengths)

    def _bytes_of(self, row: int) -> int:
        """The bytes of a fragment that has not been looked into."""
        if row < self.kept:
            assert self.persisted is not None
            return int(self.persisted.sizes[row])
        return int(batch_of(self.batches, row)[2][SIZE])

    def show(self, synchronise: Callable[[Any, int, int], None]) -> None:
        """Let the processors see what has been added since the last time (`Backend.synchronise`)."""
        synchronise(self.map, self.seen_hot - self.base, self.hot - self.base)
        synchronise(self.map, self.seen_cold - self.base, self.cold - self.base)
        self.seen_hot, self.seen_cold = self.hot, self.cold

    def locate(self, address: int) -> Place | None:
        """Where an address of the cache is in the program, None for one that is no copy's."""
        if self.colds and address >= self.base + self.middle:
            return self._locate_cold(address)
        at = bisect_right(self.starts, address) - 1
        if at < 0:
            return None
        block = self.blocks[at]
        if block is None:
            if address - self.starts[at] >= self._bytes_of(at):
                return None
            block = self.recall(self, at)
        within = address - block.start
        if within >= block.size:
            return None
        counted = within >= block.counted
        details = block.details
        behind = details.behind_syscall.get(within)
        if behind is not None:
            return Place(block, behind, True, counted, True, False)
        entered = details.entered.get(within)
        if entered is not None:
            return Place(block, entered, True, counted, False, False, True)
        rep = details.reps.get(within)
        if rep is not None:
            return Place(block, rep, True, counted, False, True)
        marks = block.marks
        index = bisect_right(marks, within) - 1
        if index < 0:
            return Place(block, 0, within == 0, counted, False, False)
        exact = marks[index] == within and not details.dirty[0] <= within < details.dirty[1]
        # Several marks fall together only where nothing was emitted in between.
        while index and marks[index - 1] == within:
            index -= 1
        return Place(block, min(index, len(block.source.facts) - 1), exact, counted, False, False)

    def _locate_cold(self, address: int) -> Place | None:
        """The same for an address out of the way."""
        at = bisect_right(self.colds, address) - 1
        if at < 0:
            return None
        block = self.blocks[at] or self.recall(self, at)
        cold = block.details.cold
        if cold is None or not block.is_cold(address):
            return None
        back = cold.back(address - block.cold)
        index = min(bisect_left(block.marks, back), len(block.source.facts) - 1)
        counted = cold.ask is None and back >= block.counted
        return Place(block, index, False, counted, False, False)


class Caches:
    """The caches of one address space, searchable by their own and by their modules' addresses."""

    def __init__(self) -> None:
        self.all: list[Cache] = []
        self._by_address: list[Cache] = []
        self._by_module: list[Cache] = []

    def add(self, cache: Cache) -> None:
        """Take one more."""
        self.all.append(cache)
        self.know(cache)
        if cache.module is not None:
            insort(self._by_module, cache, key=_module_start)

    def know(self, cache: Cache) -> None:
        """Take one that is found by its addresses only."""
        insort(self._by_address, cache, key=_first)

    def at(self, address: int) -> Cache | None:
        """The cache that holds a target address of livepro's own, None for others."""
        index = bisect_right(self._by_address, address, key=_first) - 1
        if index < 0 or address >= self._by_address[index].end:
            return None
        return self._by_address[index]

    def of_module(self, pc: int) -> Cache | None:
        """The cache of the module that the program's address `pc` is in."""
        index = bisect_right(self._by_module, pc, key=_module_start) - 1
        while index >= 0 and self._by_module[index].stale:
            index -= 1
        if index < 0 or not self._by_module[index].serves(pc):
            return None
        return self._by_module[index]

    def general(self, pc: int, reach: int) -> Cache | None:
        """The first cache with room that is no module's, within reach of `pc`."""
        for cache in self.all:
            if cache.module is None and cache.room and abs(cache.base - pc) < reach:
                return cache
        return None


def _first(cache: Cache) -> int:
    return cache.first


def _module_start(cache: Cache) -> int:
    assert cache.module is not None
    return cache.module.start
