"""Generated code that is trusted while nobody can write to it.

Copies of generated code compare the program's bytes with those that they were made from whenever they are
entered, which costs several times what the code itself does. Where a page's copies are executed
often, it is protected (`linux.userfault`), they are compared once more, and their comparisons
are jumped over from then on; so are those of copies made later. Who writes to such a page waits until
the comparisons are back: by the time that the write is made, every processor makes them, as
the writer's return from the kernel is far behind the store that put them back. Pages that are
written to often are left alone for longer and longer.

A thread of livepro's own looks after that, and writes one aligned word per copy and turn.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout

Executions = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""How often the copies that count in some cells (int64) have been executed (int64)."""

_PERIOD = 0.05  # seconds between two looks at least
_SHARE = 20  # a look takes one part in so many of the time, at most
_OFTEN = 500  # executions on a page between two looks: comparisons that cost something
_PATIENCE, _LONGEST = 0.2, 30.0  # seconds that a page is left alone after a write, at first and at last
_NONE = np.zeros(0, np.int64)
WORD = 8
"""Bytes that are written at once, aligned."""


class Faults(Protocol):
    """See `livepro.linux.userfault.WriteFaults`."""

    whole: bool

    def watch(self, start: int, end: int) -> None: ...
    def protect(self, start: int, end: int) -> None: ...
    def free(self, start: int, end: int) -> None: ...
    def wanted(self, timeout: float) -> list[int]: ...
    def enough(self) -> None: ...
    def close(self) -> None: ...


class Checked(NamedTuple):
    """A copy, at `start`, whose comparison can be jumped over.

    `pc` and `code` are the program's address and bytes that it was made from, `extent` the mapping they
    were in. It counts in `cell`. It compares when the word at index `at` of `buffer`, livepro's view of the
    cache, is `comparing`, and does not when that is `trusting`. `labelled` says that a virtual machine made
    the code, which does not have system calls write there.
    """

    start: int
    pc: int
    code: bytes
    cell: int
    buffer: Any
    at: int
    comparing: int
    trusting: int
    extent: tuple[int, int]
    labelled: bool

    @property
    def pages(self) -> range:
        """The numbers of the pages that it was made from."""
        return range(self.pc // layout.PAGE, (self.pc + len(self.code) - 1) // layout.PAGE + 1)


class Guard:
    """Trusts the copies of one address space that it is told of, when that pays and as long as it can.

    `read` reads the program's memory (address, size), `write` writes a word."""

    def __init__(
        self,
        faults: Faults,
        read: Callable[[int, int], bytes],
        write: Callable[[Any, int, int], None],
        executions: Executions,
    ) -> None:
        self._faults = faults
        self._read = read
        self._write = write
        self._executions = executions
        self._lock = threading.Lock()
        self._copies: list[Checked] = []
        self._counted = self._copies
        self._cells = self._counts = self._first = self._last = _NONE
        self._numbers: dict[int, int] = {}
        self._retired: set[int] = set()
        self._trusted: dict[int, Checked] = {}
        self._on_page: defaultdict[int, set[int]] = defaultdict(set)
        self._protected: set[int] = set()
        self._patience: dict[int, tuple[float, float]] = {}
        self._moving: set[int] = set()
        self._closed = self._ended = False
        self.trusted = 0
        """Copies whose comparison has been jumped over so far."""
        self.writes = 0
        """Writes that have waited so far."""
        self._thread = threading.Thread(target=self._watch, name="livepro-guard", daemon=True)
        self._thread.start()

    # -- for the engine

    def add(self, copy: Checked) -> None:
        """Take one more copy, which nobody can be in yet."""
        if not (self._faults.whole or copy.labelled):
            return
        number = self._numbers[copy.start] = len(self._copies)
        self._copies.append(copy)
        if self._protected.issuperset(copy.pages) and self._lock.acquire(blocking=False):
            try:
                if not self._moving:
                    self._trust((number,))
            finally:
                self._lock.release()

    def retire(self, start: int) -> None:
        """The copy at `start` is to be left alone."""
        with self._lock:
            number = self._numbers.get(start)
            if number is not None:
                self._retired.add(number)
                self._distrust((number,))

    def revive(self, start: int) -> None:
        """The copy at `start`, which compares, is in use again."""
        with self._lock:
            self._retired.discard(self._numbers.get(start, -1))

    def forget(self) -> None:
        """All copies have been dropped: their memory will be used for others."""
        with self._lock:
            self._distrust(list(self._trusted))
            self._on_page.clear()
            self._numbers.clear()
            self._retired.clear()
            self._copies = []

    @contextlib.contextmanager
    def checking(self) -> Iterator[None]:
        """Meanwhile every copy compares."""
        with self._lock:
            self._distrust(list(self._trusted))
            yield

    def moves(self, tid: int, ranges: Iterable[tuple[int, int]]) -> None:
        """A thread is about to have the kernel change what is mapped in some [start, end)."""
        with self._lock:
            self._moving.add(tid)  # nothing is protected before it has
            for start, end in ranges:
                first, last = start // layout.PAGE, (end - 1) // layout.PAGE
                for page in [page for page in self._protected if first <= page <= last]:
                    self._expose(page)

    def moved(self, tid: int) -> None:
        """It has, or has not and will not."""
        self._moving.discard(tid)

    def close(self) -> None:
        """Compare everywhere, and protect nothing."""
        with self._lock:
            self._closed = True
            if not self._ended:
                self._faults.enough()
        self._thread.join()

    # -- its own thread

    def _watch(self) -> None:
        try:
            due = time.monotonic() + _PERIOD
            while not self._closed:
                for address in self._faults.wanted(max(due - time.monotonic(), 0)):
                    self._written(address)
                began = time.monotonic()
                if began >= due:
                    self._look()
                    now = time.monotonic()
                    due = now + max(_PERIOD, _SHARE * (now - began))
        finally:  # whatever happens, nobody may wait for ever
            with self._lock:
                self._distrust(list(self._trusted))
                self._moving.add(0)  # nothing is protected any more
                self._protected.clear()
                self._ended = True
                self._faults.close()

    def _written(self, address: int) -> None:
        """A thread waits to write to an address."""
        page = address // layout.PAGE
        with self._lock:
            if page in self._protected:  # else another thread wants to write there, too
                self.writes += 1
                wait = min(2 * self._patience.get(page, (0, _PATIENCE / 2))[1], _LONGEST)
                self._patience[page] = time.monotonic() + wait, wait
            self._expose(page)

    def _expose(self, page: int) -> None:
        """Let a page be written to."""
        self._distrust(self._on_page.pop(page, ()))
        self._protected.discard(page)
        with contextlib.suppress(OSError):  # no longer mapped
            self._faults.free(page * layout.PAGE, (page + 1) * layout.PAGE)

    def _distrust(self, numbers: Iterable[int]) -> None:
        """Have some copies compare again."""
        for number in numbers:
            copy = self._trusted.pop(number, None)
            if copy is not None:
                self._write(copy.buffer, copy.at, copy.comparing)

    def _look(self) -> None:
        """Trust what has been executed of late on pages where that is often, as far as it can be."""
        copies, often, ran = self._executed()
        with self._lock:
            if copies is not self._copies or self._moving:
                return  # they have been dropped meanwhile, or what they were made from may be going
            wanted = [number for number in ran if self._may_trust(number)]
            pages = {page: copies[number].extent for number in wanted for page in copies[number].pages}
            self._protect({page: extent for page, extent in pages.items() if page in often})
            self._trust(wanted)

    def _executed(self) -> tuple[list[Checked], set[int], list[int]]:
        """The copies there are, the pages where some have been executed often since the last look, all of
        them together, and the numbers of those that were executed at all there, or on protected
        pages. That takes time; nobody has to wait for it."""
        copies = self._copies
        if copies is not self._counted:
            self._counted, self._cells, self._counts = copies, _NONE, _NONE
            self._first, self._last = _NONE, _NONE
        known, count = len(self._cells), len(copies)
        if known < count:
            more = np.array([(c.cell, c.pages[0], c.pages[-1]) for c in copies[known:count]], np.int64)
            self._cells = np.concatenate((self._cells, more[:, 0]))
            self._first = np.concatenate((self._first, more[:, 1]))
            self._last = np.concatenate((self._last, more[:, 2]))
            self._counts = np.pad(self._counts, (0, len(more)))
        counts = self._executions(self._cells)
        times = counts - self._counts
        self._counts = counts
        ran = np.flatnonzero(times > 0)
        first, last, times = self._first[ran], self._last[ran], times[ran]
        two = last != first
        pages, where = np.unique(np.concatenate((first, last[two])), return_inverse=True)
        executions = np.bincount(where, np.concatenate((times, times[two])), len(pages))
        often = pages[executions >= _OFTEN]
        near = np.concatenate((often, np.array(list(self._protected), np.int64)))
        return copies, set(often.tolist()), ran[np.isin(first, near)].tolist()

    def _may_trust(self, number: int) -> bool:
        return number not in self._trusted and number not in self._retired

    def _trust(self, numbers: Iterable[int]) -> None:
        """Trust those that are as they were copied, of those whose pages are protected."""
        for number in numbers:
            copy = self._copies[number]
            pages = copy.pages
            if not self._protected.issuperset(pages) or self._read(copy.pc, len(copy.code)) != copy.code:
                continue
            self._trusted[number] = copy
            for page in pages:
                self._on_page[page].add(number)
            self._write(copy.buffer, copy.at, copy.trusting)
            self.trusted += 1

    def _protect(self, pages: dict[int, tuple[int, int]]) -> None:
        """Protect pages, given the mapping that each was in, if they have not been written to of late."""
        now = time.monotonic()
        for page in sorted(pages.keys() - self._protected):
            if self._patience.get(page, (0, 0))[0] > now:
                continue
            start, end = page * layout.PAGE, (page + 1) * layout.PAGE
            try:
                self._watch_around(start, end, pages[page])
                self._faults.protect(start, end)
            except OSError:  # mapped otherwise by now
                self._patience[page] = now + _LONGEST, _LONGEST
                continue
            self._protected.add(page)

    def _watch_around(self, start: int, end: int, extent: tuple[int, int]) -> None:
        """Have a page watched, with the mapping that it is in if that is what it was: one made of many parts
        costs the kernel more."""
        try:
            self._faults.watch(*extent)
        except OSError:
            self._faults.watch(start, end)
