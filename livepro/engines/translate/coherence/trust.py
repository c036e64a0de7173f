"""Which fragments of generated code need not compare it: those on pages that the kernel watches."""

from __future__ import annotations

import sys

from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.engines.translate.coherence.guard import WORD, Checked, Guard
from livepro.engines.translate.translator.backend import Backend
from livepro.linux.proc import Mapping
from livepro.model.label import Origin


class Trust:
    """Offers the fragments of one code cache to its `guard`, once there is one.

    `waiting` are fragments that a guard would be told of, by where they are.
    """

    def __init__(self, generated: GeneratedCode, backend: Backend) -> None:
        self.guard: Guard | None = None
        self.waiting: dict[int, Checked] = {}
        self._generated = generated
        self._backend = backend

    def offer(self, cache: Cache, block: Fragment, cell: int, mapping: Mapping | None) -> None:
        """Have a fragment of generated code, which counts in `cell`, trusted when that pays, if nobody else
        can write to that code."""
        skip, source = block.details.skip, block.source
        if skip is not None:
            branch = block.start + skip + 4 - len(self._backend.jump)
            self.offer_made(cache, block.start, branch, (source.pc, source.code), block.slot, cell, mapping)

    def offer_made(
        self,
        cache: Cache,
        start: int,
        branch: int,
        made_from: tuple[int, bytes],
        slot: int,
        cell: int,
        mapping: Mapping | None,
    ) -> None:
        """The same for the fragment of `slot` at `start`, which was `made_from` these bytes at an address of
        the program, and where a `branch` leads to the comparison."""
        if mapping is None or mapping.shared or mapping.inode:
            return
        nothing = self._backend.nothing
        branch -= cache.base
        at = branch & -WORD
        comparing = bytes(cache.map[at : at + WORD])
        trusting = comparing[: branch - at] + nothing + comparing[branch - at + len(nothing) :]
        words = int.from_bytes(comparing, sys.byteorder), int.from_bytes(trusting, sys.byteorder)
        label, extent = self._generated.labels.get(slot), (mapping.start, mapping.end)
        labelled = label is not None and label.origin != Origin.GENERATED
        copy = Checked(start, *made_from, cell, cache.map, at, *words, extent, labelled)
        if self.guard is None:
            self.waiting[copy.start] = copy
        else:
            self.guard.add(copy)

    def guard_with(self, guard: Guard) -> None:
        """Have this guard decide which fragments of generated code are trusted."""
        self.guard = guard
        for copy in self.waiting.values():
            guard.add(copy)
        self.waiting.clear()

    def leave_alone(self, start: int) -> None:
        """Have the fragment at `start` compare, and be written to by nobody else."""
        self.waiting.pop(start, None)
        if self.guard is not None:
            self.guard.retire(start)

    def revive(self, start: int) -> None:
        """The fragment at `start` is in force again."""
        if self.guard is not None:
            self.guard.revive(start)

    def stop_writing(self) -> None:
        """Have the guard write to no fragment any more: all are about to be dropped."""
        if self.guard is not None:
            self.guard.forget()
