"""One module's AArch64 code translated by the kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.codecache.compiled_code import Instructions, LookupTable
from livepro.engines.translate.translator.aarch64.compiled import tables
from livepro.engines.translate.translator.compiling.module import TranslatedModule
from livepro.engines.translate.translator.compiling.tables import BASE, LANDINGS, MODULE, MOST, PATCHES
from livepro.engines.translate.translator.compiling.windows import Window
from livepro.engines.translate.translator.emitted import Landing
from livepro.isa.aarch64.describe import describe
from livepro.isa.kinds import Kinds
from livepro.model import Instruction
from livepro.model.arrays import ranges

Array = npt.NDArray[np.int64]


class Text(Window):
    """A module's code, as far as it has been read: `words` are its instructions (uint32)."""

    def __init__(self, start: int, size: int) -> None:
        super().__init__(start, size)
        self.words = self.code[: size & -4].view(np.uint32)

    def describe(self, code: bytes) -> Instruction:
        """See `CodeText`."""
        return describe(code)

    def instructions(self, at: Array, counts: Array, sizes: Array, kind_of: Kinds) -> Instructions:
        """See `CodeText`."""
        words = self.words[ranges(at >> 2, counts)]
        different, which = np.unique(words, return_inverse=True)
        told = [describe(int(word).to_bytes(4, "little")) for word in different]
        kinds = np.array([kind_of.number(each) for each in told], np.uint16)
        return Instructions(self.steps_of(at, counts, sizes), kinds[which], words.view(np.uint8))

    def steps_of(self, at: Array, counts: Array, sizes: Array) -> npt.NDArray[np.uint8]:
        """See `CodeText`."""
        return np.full(int(counts.sum()), 4, np.uint8)

    def steps(self, at: int, count: int) -> bytes:
        """See `CodeText`."""
        return bytes((4,)) * count


class CompiledModule(TranslatedModule):
    """Translates one module's code (see `TranslatedModule`). `lookup` are the words that look an address up,
    `landing` says what the lookup table leads to for one; `charges` that each execution takes a block's
    length from a budget. What threads come to has been made visible to them by `synchronise`."""

    def __init__(
        self,
        text: Text,
        base: int,
        image: npt.NDArray[np.uint8],
        kernels: Any,
        lookup: npt.NDArray[np.uint32],
        landing: Callable[[int], Landing],
        synchronise: Callable[[Any, int, int], None],
        *,
        charges: bool,
    ) -> None:
        super().__init__(text, base, image, kernels, tables.STATE_SIZE, tables.ROOM_OF_CHAIN)
        self._code = text.words
        self._lookup = lookup
        self._landing = landing
        self.synchronise = synchronise
        self._decoded = np.zeros((MOST // 4, tables.DECODED_COLUMNS), np.int64)
        self._state[tables.CHARGES] = charges

    def _arrays(self) -> tuple[Any, ...]:
        return (
            *(self._code, self._text.present, self._decoded, self._lookup, self._keys, self._index),
            *(self._links, self._rows, self._stubs, self._landings, self._patches),
            *(self._needs, self._returns, self._successors, self._left, self._again),
        )

    def _learn(self, at: int) -> None:
        """There is nothing to learn: instructions say all there is to know."""

    def land(self, lookup: LookupTable) -> Sequence[Sequence[int]]:
        """See `CompiledCode`."""
        assert lookup.enter is not None
        base, module = (int(self._state[which]) for which in (BASE, MODULE))
        for offset, at, likely in self._landings[: self._state[LANDINGS]].tolist():
            target = module + offset
            otherwise = self._landing(target).otherwise
            lookup.enter(base + at, base + at + otherwise, target, likely=bool(likely))
        return []

    def publish(self) -> None:
        """See `CompiledCode`."""
        count = int(self._state[PATCHES])
        self._kernels.publish(self._words, self._patches, count)
        for field in self._patches[:count, 0].tolist():
            self.synchronise(self._image, field, field + 4)
