"""The shapes that earlier runs have met, kept: they say, too, that all of this has been compiled here."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import livepro.isa
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.native import ObjectFile
from livepro.kept.artifacts import ArtifactStore
from livepro.kept.place import default_directory

_KIND = "shapes"


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


def place() -> Path:
    """The directory for what is kept here: beside what numba keeps, if that may be written (it goes when that
    goes), else livepro's own."""
    return COMPILED / "__pycache__" if os.access(COMPILED, os.W_OK) else default_directory()


def _processor() -> str:
    """What numba compiles for: the processor's model and what it can do."""
    lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return "".join(line for line in lines if line.startswith(("model", "flags", "vendor")))


class ShapeStore:
    """Where shapes are kept: for one version of livepro, Python and numba, and one kind of processor."""

    def __init__(self) -> None:
        here, isa = COMPILED, Path(livepro.isa.__file__).parent
        facts, events = here.with_name("facts.py"), here.with_name("events")
        self._store = ArtifactStore(place(), _KIND, here, facts, events, isa)
        try:
            self._key = self._store.key(version("numba"), platform.python_version(), str(here), _processor())
        except (PackageNotFoundError, OSError):
            self._key = ""

    @property
    def possible(self) -> bool:
        """Whether there is what compiles."""
        return bool(self._key)

    def discard_others(self) -> None:
        """Remove what another version has compiled and kept in this place. numba looks at the file of the
        function that it compiles, not at those of the functions that are called: what it keeps of two
        versions must never be mixed."""
        if place() != default_directory() and place().is_dir():
            for path in place().iterdir():
                if path.suffix in (".nbi", ".nbc") or len(path.name) == len(self._key):
                    path.unlink(missing_ok=True)

    def read(self) -> Kept | None:
        """What is kept; None where nothing is: nothing has been compiled here, then."""
        arrays = self._store.read(self._key) if self._key else None
        if arrays is None:
            return None
        name, *symbols = arrays["names"].tobytes().decode().split("\n")
        rows = len(arrays["lengths"])
        shaped = {each: arrays[each].reshape(rows, columns) for each, columns in _COLUMNS.items()}
        others = {each: arrays[each] for each in Learnt._fields if each not in (*_COLUMNS, "told")}
        told = arrays["told"].tobytes().decode().splitlines()
        learnt = Learnt(**{**shaped, **others}, told=told)
        return Kept(ObjectFile(arrays["code"].tobytes(), name, symbols), learnt)

    def write(self, kept: Kept) -> None:
        """Keep that."""
        self._store.write(
            self._key,
            {
                "code": np.frombuffer(kept.made.code, np.uint8),
                "names": np.frombuffer("\n".join((kept.made.name, *kept.made.symbols)).encode(), np.uint8),
                **{
                    name: array.reshape(-1) for name, array in kept.learnt._asdict().items() if name != "told"
                },
                "told": np.frombuffer("\n".join(kept.learnt.told).encode(), np.uint8),
            },
        )
