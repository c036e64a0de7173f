"""Basic block vector files as Valgrind's exp-bbv writes them and SimPoint reads them.

Sources: exp-bbv/bbv_main.c of Valgrind (`handle_overflow`, `bbv_fini`,
`dumpPcFile`), section 13.4 of the Valgrind manual, and FVParser.cpp of
SimPoint 3.2.

The vector file has one line per interval, ``T`` and then ``:id:count   `` for
each block executed, with three spaces behind each pair, the last too. Two
empty lines and a trailer of ``#`` lines follow. The pc file has a line
``F:id:address:function`` per block, the address in hexadecimal, in order of
addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from livepro.errors import LiveproError
from livepro.formats.files import open_text
from livepro.model import BlockTable

SIMPOINT_LINE = 1024 * 1024 - 1
"""Longest line, with its newline, that SimPoint 3.2 reads whole (FVParser::nextLine, BUF_SIZE)."""

LINE = re.compile(r"T(?: *:[0-9]+:[0-9]+)* *")
_SPACED = r"\g<0> "
_CLOSING = re.compile(r"(?<!operator)>(?=>)|(?<=operator<)<(?=<)")
"""Where two template argument lists meet: exp-bbv writes ``> >``, as C++ had it before 2011."""

PC_LINE = re.compile(r"F:([0-9]+):([0-9a-fA-F]+):(.*)", re.DOTALL)
TRAILER = re.compile(
    r"# Thread (?P<thread>\d+)\n"
    r"#   Total intervals: (?P<intervals>\d+) \(Interval Size (?P<interval_size>\d+)\)\n"
    r"#   Total instructions: (?P<instructions>\d+)\n"
    r"#   Total reps: (?P<reps>\d+)\n"
    r"#   Unique reps: (?P<unique_reps>\d+)\n"
    r"#   Total fldcw instructions: (?P<fldcw>\d+)\n"
)

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]
"""Block ids and instructions executed in each, in the order in which they stand in the line."""


class Trailer(NamedTuple):
    """The figures behind the vectors.

    `reps` are iterations of rep-prefixed instructions, `unique_reps` their
    executions, each counted once however often it iterated. (exp-bbv counts a
    rep with zero iterations as one iteration; livepro does not.)
    """

    thread: int
    intervals: int
    interval_size: int
    instructions: int
    reps: int
    unique_reps: int
    fldcw: int

    def text(self) -> str:
        """As exp-bbv prints it, on the screen and behind two empty lines in the file."""
        return (
            f"# Thread {self.thread}\n"
            f"#   Total intervals: {self.intervals} (Interval Size {self.interval_size})\n"
            f"#   Total instructions: {self.instructions}\n"
            f"#   Total reps: {self.reps}\n"
            f"#   Unique reps: {self.unique_reps}\n"
            f"#   Total fldcw instructions: {self.fldcw}\n"
        )


class Written(NamedTuple):
    """What `write_vectors` wrote: its `lines`, and the characters of the `widest` with the newline."""

    lines: int
    widest: int


class VectorFile(NamedTuple):
    """A whole file: `vectors` in order, and the `trailer` if it has one."""

    vectors: tuple[Pairs, ...]
    trailer: Trailer | None


class PcEntry(NamedTuple):
    """Where block `id` begins. `function` may be empty and may hold colons."""

    id: int
    address: int
    function: str


def write_vectors(out: TextIO, vectors: Iterable[Pairs], trailer: Trailer) -> Written:
    """Write a vector file, line by line: `vectors` may be an iterator over any number of intervals."""
    lines = widest = 0
    for ids, counts in vectors:
        line = "T" + _pairs_text(ids, counts) + "\n"
        out.write(line)
        lines += 1
        widest = max(widest, len(line))
    out.write("\n\n" + trailer.text() + "\n")
    return Written(lines, widest)


def _pairs_text(ids: npt.NDArray[np.int64], counts: npt.NDArray[np.uint64]) -> str:
    """``:id:count   `` for each pair: thousands a line, so a character of all pairs at a time."""
    if not len(ids):
        return ""
    of_id, of_count = len(str(int(ids.max()))), len(str(int(counts.max())))
    columns = np.full((of_id + of_count + 5, len(ids)), ord(" "), np.uint8)
    columns[0] = columns[of_id + 1] = ord(":")
    _digits(ids, columns[1 : of_id + 1])
    _digits(counts, columns[of_id + 2 : of_id + of_count + 2])
    characters = columns.T.ravel()
    text: str = characters[characters != 0].tobytes().decode("ascii")
    return text


def _digits(numbers: npt.NDArray[Any], columns: npt.NDArray[np.uint8]) -> None:
    """Write numbers of at most so many digits into as many columns, right-justified behind zero bytes."""
    rest: npt.NDArray[np.unsignedinteger[Any]]
    rest = numbers.astype(np.uint32 if len(columns) < 10 else np.uint64)
    for place in range(len(columns)):
        higher = rest // 10
        digits = rest - higher * 10 + ord("0")
        if place:
            digits[rest == 0] = 0
        columns[-1 - place] = digits
        rest = higher


def simpoint_warning(name: str, written: Written) -> str:
    """A warning if file `name` has a line too wide for SimPoint 3.2, else the empty string."""
    if written.widest <= SIMPOINT_LINE:
        return ""
    return (
        f"The longest vector of {name} has {written.widest} characters; SimPoint 3.2 reads "
        f"{SIMPOINT_LINE} of a line and silently ignores the blocks behind. Use a smaller interval, "
        "or a SimPoint with a larger buffer."
    )


def iter_vectors(lines: Iterable[str], name: str = "the vector file") -> Iterator[Pairs]:
    """The vectors of a file, one at a time. Lines that do not begin with ``T`` are skipped, as SimPoint does.

    Accepts one space or several between pairs. Raises LiveproError, with
    `name` and line number, for a malformed line.
    """
    for number, line in enumerate(lines, 1):
        if line.startswith("T"):
            line = line.rstrip("\n")
            if not LINE.fullmatch(line):
                raise _malformed(name, number, "is not T:id:count :id:count ...")
            try:
                flat = np.array(line[1:].replace(":", " ").split(), np.uint64)
                yield flat[0::2].astype(np.int64), flat[1::2]
            except (OverflowError, ValueError) as error:
                raise _malformed(name, number, "has a number of more than 64 bits") from error


def read_vectors(name: str) -> VectorFile:
    """Read a whole vector file, gzipped if its name ends in ``.gz``. Raises LiveproError."""
    comments: list[str] = []

    def lines(stream: TextIO) -> Iterator[str]:
        for line in stream:
            if line.startswith("#"):
                comments.append(line)
            yield line

    with open_text(name, "r") as stream:
        vectors = tuple(iter_vectors(lines(stream), name))
    found = TRAILER.search("".join(comments))
    return VectorFile(
        vectors, Trailer(**{k: int(v) for k, v in found.groupdict().items()}) if found else None
    )


def pc_entries(table: BlockTable) -> Iterator[PcEntry]:
    """The blocks of a table in order of address, as a pc file lists them."""
    order = np.argsort(table.address, kind="stable")
    for row, address in zip(order.tolist(), table.address[order].tolist(), strict=True):
        yield PcEntry(row + 1, address, table.function[row])


def write_pc(out: TextIO, entries: Iterable[PcEntry]) -> None:
    """Write a pc file in the order of `entries`. One serves all threads of a process."""
    spelled: dict[str, str] = {}
    for number, address, function in entries:
        if function not in spelled:
            spelled[function] = _CLOSING.sub(_SPACED, function)
        out.write(f"F:{number}:{address:x}:{spelled[function]}\n")


def read_pc(name: str) -> list[PcEntry]:
    """Read a pc file, gzipped if its name ends in ``.gz``. Raises LiveproError for a malformed line."""
    out = []
    with open_text(name, "r") as stream:
        for number, line in enumerate(stream, 1):
            match = PC_LINE.fullmatch(line.rstrip("\n"))
            if not match:
                raise _malformed(name, number, "is not F:id:address:function")
            out.append(PcEntry(int(match[1]), int(match[2], 16), match[3]))
    return out


def _malformed(name: str, number: int, reason: str) -> LiveproError:
    return LiveproError(
        f"{name}:{number}: the line {reason}.", "Check that it is a file that exp-bbv or livepro wrote."
    )
