"""Where data is: in which variable of which file, on the heap, on a stack."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import PurePath

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from livepro.linux.proc import Mapping


class Places:
    """Names addresses of data, by the mappings of a process at one moment."""

    def __init__(self, mappings: Sequence[Mapping]) -> None:
        self._mappings = list(mappings)
        self._files: list[_File] | None = None

    def name(self, address: int) -> str:
        """The variable at an address, how far into it, and its file; the file alone; ``[heap]``,
        ``[stack]``; nothing for other memory."""
        if self._files is None:
            whole = [m for m in self._mappings if m.path.startswith("/") and m.offset == 0]
            self._files = [_File(mapping) for mapping in whole]
        for file in self._files:
            if file.begin <= address < file.end:
                return file.name(address)
        found = next((m for m in self._mappings if m.start <= address < m.end), None)
        return found.path if found is not None and found.path.startswith("[") else ""


class _File:
    """A file's variables, where its beginning is mapped."""

    def __init__(self, mapping: Mapping) -> None:
        self._path = mapping.path
        self.begin = self.end = self._bias = mapping.start
        self._starts: list[int] = []
        self._symbols: list[tuple[int, str]] = []
        with contextlib.suppress(OSError, ELFError), open(mapping.path, "rb") as stream:
            elf = ELFFile(stream)
            loaded = list(elf.iter_segments("PT_LOAD"))
            if not loaded:
                return
            self._bias = mapping.start - (loaded[0]["p_vaddr"] - loaded[0]["p_offset"])
            self.end = self._bias + max(s["p_vaddr"] + s["p_memsz"] for s in loaded)
            table = elf.get_section_by_name(".symtab") or elf.get_section_by_name(".dynsym")
            if isinstance(table, SymbolTableSection):
                found = {
                    symbol["st_value"]: (symbol["st_size"], symbol.name)
                    for symbol in table.iter_symbols()
                    if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_size"]
                }
                self._starts = sorted(found)
                self._symbols = [found[start] for start in self._starts]

    def name(self, address: int) -> str:
        at, base = address - self._bias, PurePath(self._path).name
        n = bisect_right(self._starts, at) - 1
        if n >= 0:
            size, name = self._symbols[n]
            into = at - self._starts[n]
            if into < size:
                return f"{name}+{into} ({base})" if into else f"{name} ({base})"
        return f"{base}+{at:#x}"
