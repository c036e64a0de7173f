"""A program's code, read and decoded: as far as the program could execute it."""

from __future__ import annotations

from collections.abc import Container

from livepro.engines.code import LONGEST_BLOCK
from livepro.engines.region import RegionWatch
from livepro.engines.translate.translator.backend import Backend, Reader, Text
from livepro.engines.translate.translator.emitted import Check
from livepro.engines.translate.translator.source import SourceBlock, cut_at, shortened
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

_WINDOW = 1 << 16  # bytes of code that are read at once
_OVERLAP = 256  # bytes more, so that few blocks reach out of their window
_WINDOWS = 512  # so many are remembered
_GLIMPSE = 128  # bytes, where that is not enough
_BEFORE, _BEHIND = 1 << 9, 1 << 11  # bytes around a block whose code may change: its neighbours come next


def check_for(mapping: Mapping | None) -> Check:
    """How far code in a mapping can be trusted to stay what it is.

    Programs that write code usually do so in memory of its own, and enter it
    anew afterwards (JIT compilers). Code that the program's own writable
    segment holds may rewrite the very block it is in.
    """
    if mapping is None or mapping.stable_code:
        return Check.NEVER
    return Check.WRITES if mapping.file_backed and mapping.writable else Check.ENTRY


class ProgramText:
    """Decodes blocks of one process's code, most of them from windows read before: calls go to and fro
    between modules, and back to where they came from."""

    def __init__(
        self,
        process: TracedProcess,
        backend: Backend,
        reader: Reader,
        region: RegionWatch | None = None,
    ) -> None:
        self._process = process
        self._text = backend.text
        self._reader = reader
        self._windows: dict[int, Text] = {}
        self._passing: Text | None = None
        self._region = region

    def forget(self) -> None:
        """Read anew: mappings have changed."""
        self._windows.clear()
        self._passing = None

    def lasts(self, pc: int) -> bool:
        """Whether the code at `pc` stays what it is until mappings change."""
        mapping = self._process.space.find(pc)
        return mapping is not None and mapping.stable_code

    def look_again(self) -> None:
        """Read code that may change anew: copies compare it with what was read when they are entered."""
        self._passing = None

    def _around(self, pc: int, size: int = 0) -> Text | None:
        """The code around `pc`, as far as the program could execute it; at least `size`
        bytes from there on, if there are as many."""
        text = self._windows.get(pc // _WINDOW)
        if text is not None and text.base <= pc < text.end and not size:
            return text
        text = self._passing
        if text is not None and text.base <= pc < text.end and not size:
            return text
        mapping = self._process.space.find(pc)
        if mapping is None or not mapping.executable:
            return None
        keeps = mapping.stable_code and not size
        if keeps:
            start, wanted = max(mapping.start, pc & -_WINDOW), (pc & -_WINDOW) + _WINDOW + _OVERLAP
        else:
            start, wanted = pc if size else max(mapping.start, pc - _BEFORE), pc + (size or _BEHIND)
        end = start
        while end < wanted and (mapping := self._process.space.find(end)) and mapping.executable:
            end = mapping.end
        text = self._text(start, self._process.memory.read(start, min(end, wanted) - start))
        if pc >= text.end:
            return self._text(pc, b"")  # behind the end of a file that is mapped
        if keeps:
            if len(self._windows) == _WINDOWS:
                self._windows.clear()
            self._windows[pc // _WINDOW] = text
        elif not size:
            self._passing = text
        return text

    def _places(self, pc: int) -> Container[int]:
        """Where blocks must end near `pc`."""
        if self._region is None:
            return ()
        return self._region.places(self._process, self._process.space.find(pc))

    def decode(self, pc: int) -> SourceBlock | None:
        """The basic block at `pc`, its beginning if it is longer than `LONGEST_BLOCK`; None where there is
        nothing to execute."""
        size = 0
        while True:
            text = self._around(pc, size)
            if text is None:
                return None
            source = self._reader.decode(text, pc)
            ends = not source.cut or source.invalid or size > text.end - pc
            if ends or size == LONGEST_BLOCK:
                if not source.facts:
                    return None
                return cut_at(shortened(source, LONGEST_BLOCK), self._places(pc))
            size = min(size * 4 or 4 * _GLIMPSE, LONGEST_BLOCK)
