"""The raw stream for one's own analysis: NumPy's .npz, and Parquet.

Both have a row for each event with the columns `what` (uint8: INSTRUCTION, LOAD, STORE, MODIFIED, GOES_ON,
AGAIN of `livepro.traces.flattening`), `size` (uint32, bytes) and `address` (uint64). A .npz holds one
structured array for each half million rows or so, ``events_000000`` and so on; a Parquet file has them as row
groups.
"""

# mypy: ignore-errors

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np

from livepro.errors import LiveproError

EVENT = np.dtype([("what", "u1"), ("size", "<u4"), ("address", "<u8")])
"""A row."""
_ROWS = 1 << 19


class Columns:
    """Collects rows, and hands them on by many."""

    def __init__(self) -> None:
        self._parts = []
        self._rows = 0

    def put(self, events, tables) -> None:
        """The next events."""
        rows = np.empty(events.count, EVENT)
        rows["what"] = events.what[: events.count]
        rows["size"] = events.size[: events.count]
        rows["address"] = events.where[: events.count].view(np.uint64)
        self._parts.append(rows)
        self._rows += len(rows)
        if self._rows >= _ROWS:
            self._flush()

    def _flush(self) -> None:
        rows, self._parts, self._rows = np.concatenate(self._parts), [], 0
        self._write(rows)


class NpzWriter(Columns):
    """Writes one thread's events as .npz."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        except OSError as error:
            raise LiveproError(f"{path} cannot be written: {error.strerror}.") from error
        self._number = 0

    def _write(self, rows) -> None:
        text = io.BytesIO()
        np.save(text, rows)
        whole = self._zip.fp.tell()
        try:
            self._zip.writestr(f"events_{self._number:06}.npy", text.getvalue())
            self._zip.fp.flush()
        except OSError as error:
            self._cut(whole)
            raise LiveproError(
                f"{self.path} cannot be written any further: {error.strerror}. What is in it is whole; the "
                "program went on without being traced.",
                "Make room, or trace less (--count, --simpoints).",
            ) from error
        self._number += 1

    def _cut(self, end: int) -> None:
        """Leave what is whole; the last member gives way to the directory."""
        archive = self._zip
        members = [m for m in archive.filelist if m.header_offset < end]
        if members:
            end = members.pop().header_offset
        archive.filelist[:] = members
        archive.NameToInfo = {m.filename: m for m in members}
        os.ftruncate(os.open(self.path, os.O_WRONLY), end)
        archive.start_dir = end
        archive.fp.seek(end)
        archive._didModify = True
        archive.close()

    def close(self) -> None:
        """Write what is left."""
        if self._zip.fp is None:
            return
        if self._rows or not self._number:
            self._parts.append(np.empty(0, EVENT))
            self._flush()
        self._zip.close()


class ParquetWriter(Columns):
    """Writes one thread's events as Parquet (by pyarrow)."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise LiveproError(
                "Parquet is written by pyarrow, which is not installed.",
                "Install it: pip install 'livepro[blocks]'.",
            ) from None
        self._arrow = pyarrow
        names = (("what", pyarrow.uint8()), ("size", pyarrow.uint32()), ("address", pyarrow.uint64()))
        try:
            self._file = pyarrow.parquet.ParquetWriter(path, pyarrow.schema(names))
        except OSError as error:
            raise LiveproError(f"{path} cannot be written: {error}.") from error
        self.path = path

    def _write(self, rows) -> None:
        columns = {name: np.ascontiguousarray(rows[name]) for name in EVENT.names}
        try:
            self._file.write_table(self._arrow.table(columns, schema=self._file.schema))
        except OSError as error:
            raise LiveproError(f"{self.path} cannot be written any further: {error}.") from error

    def close(self) -> None:
        """Write what is left."""
        if self._parts:
            self._flush()
        self._file.close()


def read_npz(path: str | Path):
    """The events of a .npz trace as arrays of `EVENT`, in order, a part at a time."""
    with np.load(path) as parts:
        for name in sorted(parts.files):
            yield parts[name]
