"""The lookup table of indirect branches: by the low 16 bits of a target, where to go.

An entry leads to a landing, which checks the whole target and goes on to the
next landing of its entry if it is another's, in the end to a stop.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.translate import layout
from livepro.engines.translate.memory import ThreadAreas

_FAR = 0x8000_0000


class Lookup:
    """The table of one address space. `patch(field, destination)` lets the displacement at
    a cache address lead to another; `shift` low bits of an address do not count. `table` are the entries
    (uint64), `tails` where the last landing of each has the displacement by which it goes on (int64, 0: there
    is none), `landings` the landings by their targets."""

    def __init__(self, memory: ThreadAreas, patch: Callable[[int, int], None], shift: int) -> None:
        self._table = memory.table()
        self.table = np.frombuffer(self._table, np.uint64)
        self._patch = patch
        self._shift = shift
        self.tails = np.zeros(layout.LOOKUP_ENTRIES, np.int64)
        self.landings: dict[int, int] = {}
        self.miss = 0

    def clear(self, miss: int) -> None:
        """Let every entry lead to the stop at `miss`."""
        self.miss = miss
        self._table[:] = memoryview(array("Q", [miss]) * layout.LOOKUP_ENTRIES)

    def reset(self) -> None:
        """Forget all landings."""
        self.tails[:] = 0
        self.landings.clear()
        self.clear(self.miss)

    def fork(self, memory: ThreadAreas, patch: Callable[[int, int], None]) -> Lookup:
        """The same for a copy of the memory."""
        child = Lookup(memory, patch, self._shift)
        child.miss = self.miss
        child.tails = self.tails.copy()
        child.landings = self.landings.copy()
        return child

    def enter(self, landing: int, otherwise: int, pc: int, *, likely: bool) -> None:
        """Put a landing into its table entry's chain: at the head if its target is being
        branched to, else (a return that is yet to come) at the tail. `otherwise` is
        where its jump to the next one has the displacement."""
        entry = pc >> self._shift & layout.LOOKUP_ENTRIES - 1
        tail = int(self.tails[entry])
        self._patch(otherwise, self._table[entry] if likely else self.miss)
        if likely or not tail:
            self._table[entry] = landing
        else:
            self._patch(tail, landing)
        if not likely or not tail:
            self.tails[entry] = otherwise
        self.landings[pc] = landing

    def enter_all(
        self,
        pcs: npt.NDArray[np.int64],
        landings: npt.NDArray[np.int64],
        otherwise: npt.NDArray[np.int64],
        cache: Any,
    ) -> None:
        """Put many landings, all in one cache, at the heads of their entries, in their order."""
        if not len(pcs):
            return
        entries = pcs >> self._shift & layout.LOOKUP_ENTRIES - 1
        order = np.argsort(entries, kind="stable")
        entries, at, field = entries[order], landings[order], otherwise[order]
        first = np.append(True, entries[1:] != entries[:-1])
        last = np.append(first[1:], True)
        table = self.table.view(np.int64)
        heads = table[entries]
        following = np.append(at[1:], 0)
        following[last] = heads[last]
        displacement = following - field - 4
        far = np.abs(displacement) >= _FAR
        where = field[~far] - cache.base
        image = np.frombuffer(cache.map, np.uint8)
        image[where[:, None] + np.arange(4)] = displacement[~far].astype("<i4").reshape(-1, 1).view(np.uint8)
        for source, destination in zip(field[far].tolist(), following[far].tolist(), strict=True):
            self._patch(source, destination)
        alone = last & (heads == self.miss)
        self.tails[entries[alone]] = field[alone]
        self.landings.update(zip(pcs.tolist(), landings.tolist(), strict=True))
        # Nothing leads to a landing before its own way on is written.
        table[entries[first]] = at[first]
