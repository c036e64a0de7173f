"""Inlined functions: whose code an address is, by a file's debug information (DWARF).

A compiler copies functions into others; the symbol that holds an address is then that of the outermost one.
The answers are those of `addr2line -i -f`. Only units and functions that hold an address asked for are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.linux.debugfiles import DebugFiles
from livepro.linux.lines import PATIENCE, Line, file_path, fill_lines

_INLINED = "DW_TAG_inlined_subroutine"
_BLOCKS = ("DW_TAG_lexical_block", "DW_TAG_try_block", "DW_TAG_catch_block")
_SCOPES = ("DW_TAG_namespace", "DW_TAG_module")
_TYPES = ("DW_TAG_structure_type", "DW_TAG_union_type", "DW_TAG_enumeration_type")
_RUST = 0x1C  # DW_LANG_Rust: methods are defined where they are declared, within their types

_Ranges = list[tuple[int, int]]


class Frame(NamedTuple):
    """A function, and the place in its source: of the code itself in the innermost function, of the call in
    those around it. `file` is empty and `line` 0 where that is not known."""

    function: str
    file: str
    line: int


class Inlining:
    """Finds inlined functions, for at most `patience` seconds in all. `spelled` makes of a symbol the name
    that is given for it."""

    def __init__(
        self,
        debug: DebugFiles | None = None,
        patience: float = PATIENCE,
        spelled: Callable[[str], str] | None = None,
    ) -> None:
        self._debug = debug or DebugFiles()
        self._patience = patience
        self._spelled = spelled or (lambda symbol: symbol)

    def lookup(self, module: str, addresses: npt.NDArray[np.uint64]) -> list[tuple[Frame, ...]]:
        """The functions that each of `addresses` (uint64, as the module's headers number them) is in, the
        innermost first; none where there is no debug information. Nothing is raised for a module that cannot
        be read."""
        out: list[tuple[Frame, ...]] = [()] * len(addresses)
        if not module.startswith("/") or not len(addresses) or self._patience <= 0:
            return out
        began = time.monotonic()
        try:
            path = self._debug.described(module)
            if path:
                for at, calls, line in _chains(path, addresses, began + self._patience):
                    out[at] = self._frames(calls, line)
        except Exception:
            # As in `lines`: damaged files are answered with exceptions of all sorts.
            return out
        finally:
            self._patience -= time.monotonic() - began
        return out

    def _frames(self, calls: list[_Call], line: Line | None) -> tuple[Frame, ...]:
        places = [line or ("", 0), *((call.file, call.line) for call in calls[:-1])]
        return tuple(
            Frame(self._spelled(call.function), *place) for call, place in zip(calls, places, strict=True)
        )


class _Call(NamedTuple):
    """A function, and where it was called from (of an inlined one)."""

    function: str
    file: str
    line: int


def _chains(
    path: str, addresses: npt.NDArray[np.uint64], until: float
) -> Iterator[tuple[int, list[_Call], Line | None]]:
    """(index in `addresses`, calls from the innermost on, line) of each that is found by then."""
    from elftools.elf.elffile import ELFFile

    with ELFFile.load_from_path(path) as elf:
        dwarf = elf.get_dwarf_info(follow_links=True)
        lists = dwarf.range_lists()
        for unit in _units(dwarf, addresses):
            if time.monotonic() > until:
                return
            reader = _Unit(dwarf, unit, lists)
            top = unit.get_top_DIE()
            spans = [] if top.tag == "DW_TAG_partial_unit" else reader.ranges(top)
            wanted = [at for at, address in enumerate(addresses.tolist()) if _inside(address, spans)]
            if not wanted:
                continue
            lines = reader.lines(addresses[wanted])
            for function in reader.functions(top):
                held = reader.ranges(function)
                for at, line in zip(wanted, lines, strict=True):
                    address = int(addresses[at])
                    if _inside(address, held):
                        yield at, reader.calls(function, address), line


def _units(dwarf: Any, addresses: npt.NDArray[np.uint64]) -> Iterator[Any]:
    """The units that may hold one of `addresses`: those that the table of address ranges says (DWARF 5,
    6.1.2), and those that are not in it. (A C library has thousands of units; LLVM writes no such table.)"""
    table = dwarf.get_aranges()
    entries = [] if table is None else table.entries
    begin = np.array([entry.begin_addr for entry in entries], np.uint64)
    end = begin + np.array([entry.length for entry in entries], np.uint64)
    offset = np.array([entry.info_offset for entry in entries], np.int64)
    listed = set(offset.tolist())
    held = [offset[(begin <= address) & (address < end)].tolist() for address in addresses]
    for at in sorted(set(chain.from_iterable(held))):
        yield dwarf.get_CU_at(at)
    if not all(held):
        yield from (unit for unit in dwarf.iter_CUs() if unit.cu_offset not in listed)


class _Unit:
    """One compilation unit."""

    def __init__(self, dwarf: Any, unit: Any, lists: Any) -> None:
        self._unit = unit
        self._lists = lists
        top = unit.get_top_DIE().attributes
        self._base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
        self._rust = "DW_AT_language" in top and top["DW_AT_language"].value == _RUST
        self._directory = top["DW_AT_comp_dir"].value if "DW_AT_comp_dir" in top else b""
        self._program = dwarf.line_program_for_CU(unit)

    def lines(self, addresses: npt.NDArray[np.uint64]) -> list[Line | None]:
        """The source line of each of `addresses` (uint64)."""
        out: list[Line | None] = [None] * len(addresses)
        if self._program is not None:
            order = np.argsort(addresses, kind="stable")
            fill_lines((self._program, self._directory), addresses[order], order, out)
        return out

    def functions(self, die: Any) -> Iterator[Any]:
        """The functions below `die` that have code."""
        for child in die.iter_children():
            if child.tag == "DW_TAG_subprogram":
                if "DW_AT_low_pc" in child.attributes or "DW_AT_ranges" in child.attributes:
                    yield child
            elif child.tag in _SCOPES or (self._rust and child.tag in _TYPES):
                yield from self.functions(child)

    def calls(self, function: Any, address: int) -> list[_Call]:
        """The function and those inlined into it at `address`, the innermost first."""
        calls = [_Call(self._name(function), "", 0)]
        self._descend(function, address, calls)
        return calls[::-1]

    def _descend(self, die: Any, address: int, calls: list[_Call]) -> None:
        for child in die.iter_children():
            if child.tag in _BLOCKS:
                held = self.ranges(child)
                if not held or _inside(address, held):
                    before = len(calls)
                    self._descend(child, address, calls)
                    if len(calls) > before:
                        return
            elif child.tag == _INLINED and _inside(address, self.ranges(child)):
                calls.append(_Call(self._name(child), *self._called(child)))
                self._descend(child, address, calls)
                return

    def ranges(self, die: Any) -> _Ranges:
        """The addresses of a function or block (DWARF 5, 2.17)."""
        attributes = die.attributes
        listed = attributes.get("DW_AT_ranges")
        if listed is not None and self._lists is not None:
            out, base = [], self._base
            for entry in self._lists.get_range_list_at_offset(listed.value, self._unit):
                if hasattr(entry, "base_address"):
                    base = entry.base_address
                else:
                    plus = 0 if getattr(entry, "is_absolute", False) else base
                    out.append((plus + entry.begin_offset, plus + entry.end_offset))
            return out
        low, high = attributes.get("DW_AT_low_pc"), attributes.get("DW_AT_high_pc")
        if low is None or high is None:
            return []
        # An offset from low_pc unless it is of the class address (7.5.5).
        return [(low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value)]

    def _name(self, die: Any) -> str:
        """The symbol of a function, or its name in a language that does not mangle; of an inlined one, what
        it is a copy of says."""
        plain = ""
        for _ in range(8):  # a copy of a definition of a declaration
            attributes = die.attributes
            for kind in ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name"):
                if kind in attributes:
                    return str(attributes[kind].value.decode(errors="backslashreplace"))
            if not plain and "DW_AT_name" in attributes:
                plain = attributes["DW_AT_name"].value.decode(errors="backslashreplace")
            follow = next(
                (a for a in ("DW_AT_abstract_origin", "DW_AT_specification") if a in attributes), ""
            )
            if not follow:
                break
            die = die.get_DIE_from_attribute(follow)
        return plain

    def _called(self, die: Any) -> tuple[str, int]:
        """Where an inlined function was called."""
        attributes = die.attributes
        line = attributes["DW_AT_call_line"].value if "DW_AT_call_line" in attributes else 0
        if self._program is None or "DW_AT_call_file" not in attributes:
            return "", line
        return file_path(self._program, self._directory, attributes["DW_AT_call_file"].value), line


def _inside(address: int, ranges: _Ranges) -> bool:
    return any(low <= address < high for low, high in ranges)
