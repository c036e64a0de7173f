"""The SIMD profile as CSV: one line per thread and SIMD instruction, with a header line.

Columns: thread (its id), set, opcode, mnemonic, category, extension, type,
counter (executions), description. The profile of a run with a Java virtual machine
has three more: origin of the code (C1, C2, interpreter ...), tier (0: not compiled
from Java), and method, the Java method that the code was compiled from.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TextIO

from livepro.errors import LiveproError
from livepro.formats.files import open_text


class CsvRow(NamedTuple):
    """One line; the fields are the columns."""

    thread: int
    set: str
    opcode: str
    mnemonic: str
    category: str
    extension: str
    type: str
    counter: int
    description: str
    origin: str = ""
    tier: int = 0
    method: str = ""


LABELLED = CsvRow._fields
COLUMNS = LABELLED[:-3]


class SimdCount(Protocol):
    """What `write` takes: a count and the facts of the instruction counted."""

    @property
    def thread(self) -> int: ...
    @property
    def set(self) -> str: ...
    @property
    def opcode(self) -> str: ...
    @property
    def mnemonic(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def extension(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def description(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def tier(self) -> int: ...
    @property
    def method(self) -> str: ...


def write(out: TextIO, rows: Iterable[SimdCount]) -> None:
    """Write the header and `rows`, in their order.

    Rows that differ only in what has no column (vector width, mask) become one line.
    """
    counts: dict[CsvRow, int] = {}
    for r in rows:
        made = r.origin, r.tier, r.method
        words = r.set, r.opcode, r.mnemonic, r.category, r.extension, str(r.type), 0, r.description
        key = CsvRow(r.thread, *words, *made)
        counts[key] = counts.get(key, 0) + r.count
    columns = len(LABELLED if any(key.origin for key in counts) else COLUMNS)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(LABELLED[:columns])
    writer.writerows(key._replace(counter=count)[:columns] for key, count in counts.items())


def read(name: str) -> list[CsvRow]:
    """Read a profile, gzipped if its name ends in ``.gz``. Raises LiveproError if it is none."""
    with open_text(name, "r") as stream:
        reader = csv.reader(stream)
        if tuple(next(reader, ())) not in (COLUMNS, LABELLED):
            raise LiveproError(f"{name} is no SIMD profile.", f"Its first line must be {','.join(COLUMNS)}.")
        out = []
        for words in reader:
            try:
                row = CsvRow(*words)  # type: ignore[arg-type]
                out.append(row._replace(thread=int(row.thread), counter=int(row.counter), tier=int(row.tier)))
            except (TypeError, ValueError) as error:
                raise LiveproError(
                    f"{name}:{reader.line_num}: the line does not have the columns of the first.",
                    "Check that it is a file that livepro wrote.",
                ) from error
    return out
