"""From places in mapped files to source lines, by the files' debug information (DWARF).

The debug information is the file's own: what a distribution keeps apart is about libraries whose
sources are not there, and takes seconds to read. Only the units that hold an address asked for are
read. pyelftools reads some hundred thousand lines a second: `PATIENCE` bounds what is spent on one
report.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

PATIENCE = 10.0
"""Seconds for reading debug information; what was not read by then has no lines."""

Line = tuple[str, int]


class LineTables:
    """Finds source lines, for at most `patience` seconds in all."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience

    def lookup(self, module: str, addresses: npt.NDArray[np.uint64]) -> list[Line | None]:
        """(file, line) of each of `addresses` (uint64, as the module's headers number them), None
        where there is none. Nothing is raised for a module that cannot be read."""
        out: list[Line | None] = [None] * len(addresses)
        if not module.startswith("/") or not len(addresses):
            return out
        try:
            self._find(module, addresses, out)
        except Exception:
            # Any file may be mapped, also one that is damaged in ways that pyelftools answers with
            # exceptions of all sorts. What was found by then is right.
            return out
        return out

    def _find(self, module: str, addresses: npt.NDArray[np.uint64], out: list[Line | None]) -> None:
        from elftools.elf.elffile import ELFFile

        with open(module, "rb") as stream:
            elf = ELFFile(stream)
            if elf.get_section_by_name(".debug_line") is None:
                return
            began = time.monotonic()
            order = np.argsort(addresses, kind="stable")
            ordered = addresses[order]
            for unit in _units(elf.get_dwarf_info(follow_links=False), ordered):
                if time.monotonic() - began > self._patience:
                    break
                fill_lines(unit, ordered, order, out)
            self._patience -= time.monotonic() - began


def _units(dwarf: Any, addresses: npt.NDArray[np.uint64]) -> Iterator[tuple[Any, Any]]:
    """(line program, compilation directory) of each unit that may hold one of `addresses` (sorted)."""
    ranges = dwarf.range_lists()
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE()
        spans = list(_spans(top, unit, ranges))
        if spans and not any(_holds(addresses, low, high) for low, high in spans):
            continue
        program = dwarf.line_program_for_CU(unit)
        if program is not None:
            directory = top.attributes.get("DW_AT_comp_dir")
            yield program, b"" if directory is None else directory.value


def _spans(top: Any, unit: Any, ranges: Any) -> Iterator[tuple[int, int]]:
    """The address ranges of a unit (DWARF 5, 3.1.1); none where it does not say."""
    low, high, listed = (
        top.attributes.get(name) for name in ("DW_AT_low_pc", "DW_AT_high_pc", "DW_AT_ranges")
    )
    if listed is not None and ranges is not None:
        base = low.value if low is not None else 0
        for entry in ranges.get_range_list_at_offset(listed.value, unit):
            if hasattr(entry, "base_address"):
                base = entry.base_address
            else:
                plus = 0 if getattr(entry, "is_absolute", False) else base
                yield plus + entry.begin_offset, plus + entry.end_offset
    elif low is not None and high is not None:
        # An offset from low_pc unless it is of the class address (7.5.5).
        yield low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value


def _holds(addresses: npt.NDArray[np.uint64], low: int, high: int) -> bool:
    at = int(np.searchsorted(addresses, np.uint64(low)))
    return at < len(addresses) and int(addresses[at]) < high


def fill_lines(
    unit: tuple[Any, Any], addresses: npt.NDArray[np.uint64], order: npt.NDArray[np.int64], out: list[Any]
) -> None:
    """Enter the lines that one line program gives (DWARF 5, 6.2)."""
    program, directory = unit
    before = None
    names: dict[int, str] = {}
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if before is not None and state.address > before.address and before.line:
            first, last = np.searchsorted(addresses, np.array([before.address, state.address], np.uint64))
            if first < last:
                if before.file not in names:
                    names[before.file] = file_path(program, directory, before.file)
                for at in order[first:last].tolist():
                    out[at] = (names[before.file], before.line)
        before = None if state.end_sequence else state


def file_path(program: Any, directory: bytes, number: int) -> str:
    """The path of a file of a line program: numbers count from 1 before DWARF 5 (6.2.4)."""
    header = program["file_entry"]
    old = program["version"] < 5
    entry = header[number - 1 if old else number]
    at = entry.dir_index
    directories = program["include_directory"]
    within = (directories[at - 1] if at else b"") if old else directories[at]
    parts = [part if isinstance(part, bytes) else part.encode() for part in (directory, within, entry.name)]
    return os.path.normpath(os.path.join(*(os.fsdecode(part) for part in parts)))
