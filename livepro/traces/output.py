"""Files that traces go to: blocks of whole records, compressed by threads of their own, in order.

Each block is a gzip member, an xz stream or a bzip2 stream of its own: such a file is the blocks' files one
behind the other, which all three tools read (gzip(1), xz(1), bzip2(1)). So blocks are compressed side by
side, and what has been written when a disk is full is a readable file.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from livepro.errors import LiveproError

BLOCK = 4 << 20
"""Bytes that are compressed at a time."""


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


def _xz(data: bytes) -> bytes:
    return lzma.compress(data, preset=1)


_COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": _gzip, ".xz": _xz, ".bz2": bz2.compress}
SUFFIXES = tuple(_COMPRESS)
"""Names of compressed files end in one of these."""


class Output:
    """One trace file. `written` are its bytes so far, `plain` those before compression."""

    def __init__(self, path: Path, pool: ThreadPoolExecutor, waiting: int) -> None:
        self.path = path
        self.plain = 0
        self.written = 0
        self._compress = _COMPRESS.get(path.suffix)
        self._pool = pool
        self._most = waiting
        self._waiting: deque[Future[bytes]] = deque()
        self._held: list[bytes] = []
        self._held_bytes = 0
        try:
            self._file = open(path, "wb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise LiveproError(f"{path} cannot be written: {error.strerror}.") from error

    def write(self, data: bytes | memoryview) -> None:
        """Append whole records. Raises LiveproError, the file readable up to there, if it cannot be."""
        if not len(data):
            return
        self.plain += len(data)
        if self._compress is None:
            self._put(data)
            return
        self._held.append(bytes(data))
        self._held_bytes += len(data)
        if self._held_bytes >= BLOCK:
            self._submit()

    def _submit(self) -> None:
        assert self._compress is not None
        block, self._held, self._held_bytes = b"".join(self._held), [], 0
        self._waiting.append(self._pool.submit(self._compress, block))
        while len(self._waiting) > self._most or (self._waiting and self._waiting[0].done()):
            self._put(self._waiting.popleft().result())

    def _put(self, data: bytes | memoryview) -> None:
        view = memoryview(data).cast("B")
        try:
            while view.nbytes:
                view = view[self._file.write(view) or 0 :]
        except OSError as error:
            self._waiting.clear()
            self._held.clear()
            with suppress(OSError):  # a device, or a pipe
                os.ftruncate(self._file.fileno(), self.written)
            self._file.close()
            raise LiveproError(
                f"{self.path} cannot be written any further: {error.strerror}. What is in it, "
                f"{self.written:,} bytes, is whole; the program went on without being traced.",
                "Make room, compress (-o FILE.xz), or trace less (--count, --simpoints).",
            ) from error
        self.written += len(data) if isinstance(data, bytes) else data.nbytes

    def close(self) -> None:
        """Write what is left. Raises LiveproError if that is impossible."""
        if self._file.closed:
            return
        if self._held:
            self._submit()
        while self._waiting:
            self._put(self._waiting.popleft().result())
        self._file.close()


class Outputs:
    """Makes the files of a run, which share the compressing threads."""

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads or len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self._threads, "livepro compress")
        self._lock = threading.Lock()
        self.all: list[Output] = []

    def open(self, path: Path) -> Output:
        """A new file. Raises LiveproError."""
        found = Output(path, self._pool, 2 * self._threads)
        with self._lock:
            self.all.append(found)
        return found

    @property
    def written(self) -> int:
        """Bytes in all files."""
        return sum(output.written for output in self.all)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def named(path: Path, thread: int, point: str = "") -> Path:
    """The file of a thread (from 0) and a point: ``t.din.gz`` is ``t.point3.2.din.gz`` for the second
    thread's point 3."""
    insert = (f".{point}" if point else "") + (f".{thread + 1}" if thread else "")
    if not insert:
        return path
    suffixes = "".join(path.suffixes[-2:] if path.suffix in SUFFIXES else path.suffixes[-1:])
    return path.with_name(path.name.removesuffix(suffixes) + insert + suffixes)
