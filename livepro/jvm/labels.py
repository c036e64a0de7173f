"""Labels for generated code, given when it is translated."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import PurePath
from typing import Protocol

from livepro.jvm.codecache import INTERPRETER, Blob, CodeCache
from livepro.jvm.vmstructs import LIBRARY, NotReadable, Read, VmStructs
from livepro.linux.proc import AddressSpace
from livepro.model.label import CodeLabel, Origin


class Memory(Protocol):
    """A process's memory, see `linux.proc.Memory`."""

    @property
    def read(self) -> Read: ...


class Process(Protocol):
    """A process, see `tracee.TracedProcess`."""

    @property
    def space(self) -> AddressSpace: ...
    @property
    def memory(self) -> Memory: ...


class Labeller:
    """Labels the generated code of one process, if it is a Java virtual machine.

    `replaced` is called with a range [start, end) of addresses whose code has been given up
    for another method's: blocks translated from it belong to what is gone.
    """

    def __init__(self, process: Process, replaced: Callable[[int, int], None]) -> None:
        self._process = process
        self.replaced = replaced
        self._seen: AddressSpace | None = None
        self._cache: CodeCache | None = None
        self._starts: list[int] = []
        self._blobs: dict[int, Blob] = {}
        self._sure: set[Blob] = set()

    def look_again(self) -> None:
        """Believe nothing that was seen before: labels that are asked for one after the other, at one
        moment, need not look each time."""
        self._sure.clear()

    def prepare(self) -> None:
        """Do now what the first label takes time for."""
        self._code_cache()

    def label(self, pc: int) -> CodeLabel | None:
        """What the code at `pc` is; None where that is not known (yet)."""
        cache = self._code_cache()
        if cache is None:
            return None
        try:
            blob = self._known(pc)
            if blob is None or not (blob in self._sure or cache.still(blob)):
                blob = cache.find(pc)
                if blob is None:
                    return None
                self._remember(blob)
            self._sure.add(blob)
            if blob.name == INTERPRETER:
                return CodeLabel(Origin.INTERPRETER, 0, cache.codelet(pc))
        except NotReadable:
            return None
        return blob.label

    def extent(self, pc: int) -> tuple[int, int] | None:
        """The [start, end) of the instructions that have the label of `pc`; None where that is not known."""
        cache, blob = self._cache, self._known(pc)
        if cache is None or blob is None:
            return None
        try:
            return cache.code_range(blob)
        except NotReadable:
            return None

    def _known(self, pc: int) -> Blob | None:
        at = bisect_right(self._starts, pc) - 1
        blob = self._blobs[self._starts[at]] if at >= 0 else None
        return blob if blob is not None and pc < blob.end else None

    def _remember(self, blob: Blob) -> None:
        """Take down a blob, in the place of those that it overlaps."""
        starts = self._starts
        first = bisect_right(starts, blob.start)
        if first and self._blobs[starts[first - 1]].end > blob.start:
            first -= 1
        last = bisect_left(starts, blob.end)
        for start in starts[first:last]:
            gone = self._blobs.pop(start)
            if gone.head != blob.head or gone.start != blob.start:
                self.replaced(gone.start, gone.end)
        starts[first:last] = [blob.start]
        self._blobs[blob.start] = blob

    def _code_cache(self) -> CodeCache | None:
        """The code cache, once libjvm is there and set up."""
        space = self._process.space
        if self._cache is None and self._seen is not space:
            library = next((m for m in space.mappings if PurePath(m.path).name == LIBRARY), None)
            if library is None:
                self._seen = space
                return None
            try:
                structs = VmStructs(library.path, library.start, self._process.memory.read)
                self._cache = CodeCache(structs)
            except NotReadable:
                return None
            except KeyError:  # a HotSpot that describes itself in other words
                self._seen = space
        return self._cache
