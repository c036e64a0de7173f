"""The shapes that earlier runs have met, kept: they say, too, that all of this has been compiled here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from livepro.engines.translate.translator.compiling.native import ObjectFile
from livepro.engines.translate.translator.compiling.store import KernelStore
from livepro.engines.translate.translator.x86_64.compiled import tables


class Learnt(NamedTuple):
    """The shapes that were met, as `shapes.ShapeTable` has them: the hashed table (`lows` and `highs` uint64,
    `rows` int32), by row `facts` (int64) and what is `recorded` (int32), columns as in `tables`, `examples`
    of `lengths` bytes (uint8), and what they mean (`meanings.Meanings`)."""

    lows: Any
    highs: Any
    rows: Any
    facts: Any
    recorded: Any
    examples: Any
    lengths: Any
    kinds: Any
    told: Sequence[str]


class Kept(NamedTuple):
    """The kernels, and the shapes that were met."""

    made: ObjectFile
    learnt: Learnt


def nothing_learnt(places: int) -> Learnt:
    """No shapes, in a hashed table of so many places (a power of two)."""
    return Learnt(
        lows=np.zeros(places, np.uint64),
        highs=np.zeros(places, np.uint64),
        rows=np.zeros(places, np.int32),
        facts=np.zeros((0, tables.COLUMNS), np.int64),
        recorded=np.zeros((0, tables.RECORDED_COLUMNS), np.int32),
        examples=np.zeros((0, _LONGEST), np.uint8),
        lengths=np.zeros(0, np.uint8),
        kinds=np.zeros(0, np.int32),
        told=[],
    )


COMPILED = Path(__file__).parents[1]
_LONGEST = 16  # bytes of an example: an instruction has fewer
_COLUMNS = {"facts": tables.COLUMNS, "recorded": tables.RECORDED_COLUMNS, "examples": _LONGEST}


def kernels() -> KernelStore:
    """Where the kernels are kept."""
    return KernelStore("shapes", COMPILED)


class ShapeStore:
    """Where shapes are kept, with the kernels."""

    def __init__(self) -> None:
        self._store = kernels()

    @property
    def place(self) -> Path:
        """The directory."""
        return self._store.place

    @property
    def possible(self) -> bool:
        """Whether there is what compiles."""
        return self._store.possible

    def discard_others(self) -> None:
        """See `KernelStore`."""
        self._store.discard_others()

    def read(self) -> Kept | None:
        """What is kept; None where nothing is: nothing has been compiled here, then."""
        found = self._store.read()
        if found is None:
            return None
        made, arrays = found
        rows = len(arrays["lengths"])
        shaped = {each: arrays[each].reshape(rows, columns) for each, columns in _COLUMNS.items()}
        others = {each: arrays[each] for each in Learnt._fields if each not in (*_COLUMNS, "told")}
        told = arrays["told"].tobytes().decode().splitlines()
        return Kept(made, Learnt(**{**shaped, **others}, told=told))

    def write(self, kept: Kept) -> None:
        """Keep that."""
        learnt = kept.learnt._asdict()
        arrays = {name: array.reshape(-1) for name, array in learnt.items() if name != "told"}
        told = np.frombuffer("\n".join(kept.learnt.told).encode(), np.uint8)
        self._store.write(kept.made, {**arrays, "told": told})
