"""Pin's regions.csv: which instructions of which thread to record, and what each region stands for.

A row is ``comment,thread-id,region-id,start-icount,end-icount,weight`` (Intel Pin, "PinPoints",
-regions:in). Threads are numbered from 0 and regions from 1; a region begins after `start` instructions
of its thread and ends after `end`. Lines that begin with ``#`` are comments.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import NamedTuple, TextIO

from livepro.errors import LiveproError
from livepro.formats.files import open_text


class PinRegion(NamedTuple):
    """One row."""

    comment: str
    thread: int
    region: int
    start: int
    end: int
    weight: float


def write(out: TextIO, regions: Iterable[PinRegion]) -> None:
    """Write `regions`, with a heading in a comment."""
    out.write("# comment,thread-id,region-id,start-icount,end-icount,weight\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((*region[:5], repr(region.weight)) for region in regions)


def read(name: str) -> list[PinRegion]:
    """The regions in file `name`, gzipped if it ends in ``.gz``. Raises LiveproError for a malformed line."""
    out = []
    with open_text(name, "r") as stream:
        for number, line in enumerate(stream, 1):
            if line.startswith("#") or not line.strip():
                continue
            (fields,) = csv.reader([line])
            try:
                comment, thread, region, start, end, weight = fields
                row = PinRegion(comment, int(thread), int(region), int(start), int(end), float(weight))
            except ValueError as error:
                raise LiveproError(
                    f"{name}:{number}: the line is not comment,thread,region,start,end,weight.",
                    "Check that it is a regions.csv.",
                ) from error
            out.append(row)
    return out
