"""Source lines of addresses, from a file's DWARF line program (DWARF 5, 6.2)."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import PurePosixPath
from typing import Any

from livepro.linux.elf import ElfImage

_LARGEST = 32 << 20
"""Bytes of `.debug_line` that are read: more takes minutes."""


class Lines:
    """The line table of one file; empty where it has none, or one that is too large."""

    def __init__(self, image: ElfImage) -> None:
        rows = list(_rows(image))
        rows.sort(key=lambda row: row[0])
        self._addresses = [row[0] for row in rows]
        self._places = [row[1] for row in rows]

    def find(self, address: int) -> tuple[str, int]:
        """The file and line of an address; ("", 0) where none is told."""
        at = bisect_right(self._addresses, address) - 1
        return (self._places[at] or ("", 0)) if at >= 0 else ("", 0)


def _rows(image: ElfImage) -> list[tuple[int, tuple[str, int] | None]]:
    section = image.section(".debug_line")
    if section is None or not 0 < section.size <= _LARGEST:
        return []
    try:
        information: Any = image.debug_information()
        out: list[tuple[int, tuple[str, int] | None]] = []
        for unit in information.iter_CUs():
            program = information.line_program_for_CU(unit)
            if program is not None:
                out += _unit_rows(unit, program)
        return out
    except Exception:  # debug information may be of a newer kind than pyelftools knows, or damaged
        return []


def _unit_rows(unit: Any, program: Any) -> list[tuple[int, tuple[str, int] | None]]:
    version = program["version"]
    names = [entry.name.decode(errors="replace") for entry in program["file_entry"]]
    directories = [d.decode(errors="replace") for d in program["include_directory"]]
    home = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    base = PurePosixPath(home.value.decode(errors="replace") if home else ".")
    paths = []
    for entry, name in zip(program["file_entry"], names, strict=True):
        # Before version 5 directories are numbered from 1, and 0 is the unit's own.
        at = entry.dir_index if version >= 5 else entry.dir_index - 1
        folder = PurePosixPath(directories[at]) if 0 <= at < len(directories) else PurePosixPath()
        paths.append(str(base / folder / name))
    first = 0 if version >= 5 else 1
    out: list[tuple[int, tuple[str, int] | None]] = []
    pending: list[tuple[int, tuple[str, int] | None]] = []
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            pending.append((state.address, None))
            # A sequence at 0 is of code that the linker has thrown away.
            if pending[0][0]:
                out += pending
            pending = []
        else:
            at = state.file - first
            pending.append((state.address, (paths[at] if 0 <= at < len(paths) else "", state.line)))
    return out
