"""Generated code that is trusted while nobody can write to it.

Copies of generated code compare the program's bytes with those that they were made from whenever they are
entered, which costs several times what the code itself does. Where a page's copies are executed
often, it is protected (`linux.userfault`), they are compared once more, and their comparisons
are jumped over from then on; so are those of copies made later. Who writes to such a page waits until
the comparisons are back: by the time that the write is made, every processor makes them, as
the writer's return from the kernel is far behind the store that put them back. After that a page is
protected again as soon as that pays (`lasting`).

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
from livepro.engines.translate.coherence.lasting import Lasting

Executions = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]
"""How often the copies that count in some cells (int64) have been executed (int64)."""

# Measured with node that compiles and allocates (9 s): a quarter or four times of the others cost up to 4 %
# more, a tenth of _OFTEN 2 %, ten times 8 %.
_PERIOD = 0.05  # seconds between two looks at least
_SHARE = 20  # counting for a look takes one part in so many of a processor's time, at most
_OFTEN = 500  # executions on a page between two looks: comparisons that cost something
_SOON = 0.001  # seconds from a write to a page until it is protected again: often several follow
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
        self._protected: dict[int, float] = {}
        self._rates: dict[int, float] = {}
        self._again: dict[int, tuple[float, list[int]]] = {}
        self._lasting = Lasting()
        self._looked = time.monotonic()
        self._spent = 0.0
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
        if self._protected.keys() >= set(copy.pages) and self._lock.acquire(blocking=False):
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
            self._again.clear()
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
                with self._lock:
                    until = min((due, *(again for again, _ in self._again.values())))
                for address in self._faults.wanted(max(until - time.monotonic(), 0)):
                    self._written(address)
                self._protect_again()
                if time.monotonic() >= due:
                    self._look()
                    due = time.monotonic() + max(_PERIOD, _SHARE * self._spent)
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
                now = time.monotonic()
                self._lasting.written(page, now, self._protected[page])
                if self._lasting.pays(page, now, self._rates.get(page, 0)):
                    self._again[page] = now + _SOON, list(self._on_page.get(page, ()))
            self._expose(page)

    def _protect_again(self) -> None:
        """Trust once more what was trusted on pages that somebody has written to a moment ago."""
        now = time.monotonic()
        with self._lock:
            for page, (_, numbers) in [(p, again) for p, again in self._again.items() if again[0] <= now]:
                del self._again[page]
                wanted = [number for number in numbers if self._may_trust(number)]
                if wanted and not self._moving:
                    self._protect({page: (self._rates.get(page, 0), self._copies[wanted[0]].extent)})
                    self._trust(wanted)

    def _expose(self, page: int) -> None:
        """Let a page be written to."""
        self._distrust(self._on_page.pop(page, ()))
        self._protected.pop(page, None)
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
            self._rates = often
            wanted = [number for number in ran if self._may_trust(number)]
            pages = {page: copies[number].extent for number in wanted for page in copies[number].pages}
            self._protect({page: (often[page], extent) for page, extent in pages.items() if page in often})
            self._trust(wanted)

    def _executed(self) -> tuple[list[Checked], dict[int, float], list[int]]:
        """The copies there are, the pages where some have been executed often since the last look, all of
        them together, and how often in a second, and the numbers of those that were executed at all
        there, or on protected pages. That takes time; nobody has to wait for it."""
        began = time.thread_time()
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
        often = executions >= _OFTEN
        near = np.concatenate((pages[often], np.array(list(self._protected), np.int64)))
        found = ran[np.isin(first, near)].tolist()
        now = time.monotonic()
        rates = executions[often] / max(now - self._looked, 1e-9)
        self._looked, self._spent = now, time.thread_time() - began
        return copies, dict(zip(pages[often].tolist(), rates.tolist(), strict=True)), found

    def _may_trust(self, number: int) -> bool:
        return number not in self._trusted and number not in self._retired

    def _trust(self, numbers: Iterable[int]) -> None:
        """Trust those that are as they were copied, of those whose pages are protected."""
        for number in numbers:
            copy = self._copies[number]
            pages = copy.pages
            if not self._protected.keys() >= set(pages) or self._read(copy.pc, len(copy.code)) != copy.code:
                continue
            self._trusted[number] = copy
            for page in pages:
                self._on_page[page].add(number)
            self._write(copy.buffer, copy.at, copy.trusting)
            self.trusted += 1

    def _protect(self, pages: dict[int, tuple[float, tuple[int, int]]]) -> None:
        """Protect pages where that pays, given how many executions a second each has, and the mapping that
        it was in."""
        now = time.monotonic()
        for page in sorted(pages.keys() - self._protected.keys()):
            rate, extent = pages[page]
            if not self._lasting.pays(page, now, rate):
                continue
            start, end = page * layout.PAGE, (page + 1) * layout.PAGE
            try:
                self._watch_around(start, end, extent)
                self._faults.protect(start, end)
            except OSError:  # mapped otherwise by now
                self._lasting.refused(page, now)
                continue
            self._protected[page] = now

    def _watch_around(self, start: int, end: int, extent: tuple[int, int]) -> None:
        """Have a page watched, with the mapping that it is in if that is what it was: one made of many parts
        costs the kernel more."""
        try:
            self._faults.watch(*extent)
        except OSError:
            self._faults.watch(start, end)
