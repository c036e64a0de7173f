"""Blocks of a program for another instruction set, weighted by the source lines of a measured run.

The program is not executed. It and the measured one are built from the same sources with debug
information; a block has as many executions as its first source line had in the measured run:

* The first source line is that of the block's first instruction that has one.
* A line's executions are those of the measured block with most among the blocks with an instruction of
  that line. Lines like a `for` are in several blocks: blocks in innermost loops are looked up among
  measured ones in innermost loops, others among others, and among all where there is none of the kind.
* Blocks without a source line, and those whose line was not executed, are left out, and counted.

Compilers unroll and vectorise differently: such a count says how often the line was executed there, not the
block here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from livepro import isa as registry
from livepro.blocks.code import CodeFile, Function, open_code
from livepro.blocks.files import parquet
from livepro.blocks.rows import LINES, BlockRow, instructions, with_shares
from livepro.blocks.static import file_rows
from livepro.errors import LiveproError
from livepro.linux.lines import Line, LineTables

_PATIENCE = 300.0
"""Seconds for reading one program's debug information: a data set must not depend on how long it took."""

Lines = list[Line]


class Executions(NamedTuple):
    """The most executions of a block with an instruction of one source line, in innermost loops and
    elsewhere; None where no such block was executed."""

    inner: int | None
    outer: int | None

    def of(self, loop: str) -> int:
        """Those that a block with this `loop` is given."""
        first, second = (self.inner, self.outer) if loop else (self.outer, self.inner)
        return first if first is not None else second or 0


class LeftOut(NamedTuple):
    """What is not in the result: functions without debug information, blocks without a source line, and
    blocks whose line was not executed."""

    functions: int
    without_line: int
    not_executed: int


def by_line(rows: Sequence[BlockRow], lines: Sequence[Lines]) -> dict[Line, Executions]:
    """The executions of each source line by measured blocks; `lines` are those of each row's instructions."""
    out: dict[Line, Executions] = {}
    for row, own in zip(rows, lines, strict=True):
        times = row.occurrences or 0
        for line in set(own):
            inner, outer = out.get(line, Executions(None, None))
            if row.loop:
                inner = max(inner or 0, times)
            else:
                outer = max(outer or 0, times)
            out[line] = Executions(inner, outer)
    return out


def weighted(
    rows: Iterable[BlockRow], lines: Iterable[Lines], measured: Mapping[Line, Executions]
) -> tuple[list[BlockRow], LeftOut]:
    """The rows whose first source line was executed, with its executions, file and line."""
    out = []
    without_line = not_executed = 0
    for row, own in zip(rows, lines, strict=True):
        times = measured[own[0]].of(row.loop) if own and own[0] in measured else 0
        if not own:
            without_line += 1
        elif not times:
            not_executed += 1
        else:
            file, line = own[0]
            out.append(replace(row, occurrences=times, method=LINES, file=file, line=line))
    return with_shares(out), LeftOut(0, without_line, not_executed)


def instruction_lines(rows: Sequence[BlockRow]) -> list[Lines]:
    """For each row the source lines of its instructions, in order; those without one are passed over."""
    out: list[Lines] = [[] for _ in rows]
    tables = LineTables(_PATIENCE)
    modules: dict[str, list[tuple[int, int]]] = {}
    for number, row in enumerate(rows):
        isa = registry.for_machine(row.isa)
        places = modules.setdefault(row.module, [])
        places += [(number, at) for at, _ in instructions(isa, row.bytes, row.address)]
    for module, places in modules.items():
        addresses = np.array([at for _, at in places], np.uint64)
        found = tables.lookup(os.path.abspath(module), addresses)
        for (number, _), line in zip(places, found, strict=True):
            if line is not None:
                out[number].append(line)
    return out


def with_debug_information(file: CodeFile) -> tuple[list[Function], int]:
    """The functions that have a source line, and how many have none."""
    starts = np.array([f.start for f in file.functions], np.uint64)
    found = LineTables(_PATIENCE).lookup(os.path.abspath(file.path), starts)
    known = [f for f, line in zip(file.functions, found, strict=True) if line is not None]
    return known, len(found) - len(known)


def main(table: str, isa: str, measured: str, program: str) -> int:
    """Write the blocks of `program`, weighted by the measured ones of the Parquet file `measured`, to the
    Parquet file `table`, and what was left out to standard output (JSON); 0. Raises LiveproError."""
    rows = parquet.read(Path(measured))
    executions = by_line(rows, instruction_lines(rows))
    if not executions:
        raise LiveproError("The measured program has no source lines.", "Build with -g.")
    file = open_code(program)
    try:
        if file.isa.name != isa:
            raise LiveproError(f"{program} is for {file.isa.name}, not {isa}.", "Name a compiler for it.")
        functions, without = with_debug_information(file)
        own = list(file_rows(file, functions))
        found, left = weighted(own, instruction_lines(own), executions)
        parquet.write(found, Path(table))
    finally:
        file.close()
    print(json.dumps(left._replace(functions=without)._asdict()))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except LiveproError as error:
        sys.exit(str(error))
