"""The shapes that earlier runs have met, kept: they say, too, that all of this has been compiled here."""

from __future__ import annotations

import os
import platform
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


class Kept(NamedTuple):
    """The kernels, and of each shape that was met its facts and what is recorded (int64, by row, columns as
    in `tables`) and an example."""

    made: ObjectFile
    facts: Any
    recorded: Any
    examples: list[bytes]


COMPILED = Path(__file__).parents[1]
_LONGEST = 15  # bytes of an instruction


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
        lengths = arrays["lengths"].tolist()
        texts, rows = arrays["examples"].reshape(-1, _LONGEST), len(lengths)
        examples = [text[:n].tobytes() for text, n in zip(texts, lengths, strict=True)]
        name, *symbols = arrays["names"].tobytes().decode().split("\n")
        made = ObjectFile(arrays["code"].tobytes(), name, symbols)
        facts = arrays["facts"].reshape(rows, tables.COLUMNS)
        recorded = arrays["recorded"].reshape(rows, tables.RECORDED_COLUMNS)
        return Kept(made, facts, recorded, examples)

    def write(self, kept: Kept) -> None:
        """Keep that. Rows of facts behind the examples are left out."""
        rows, examples = len(kept.examples), kept.examples
        texts = b"".join(example.ljust(_LONGEST, b"\0") for example in examples)
        self._store.write(
            self._key,
            {
                "code": np.frombuffer(kept.made.code, np.uint8),
                "names": np.frombuffer("\n".join((kept.made.name, *kept.made.symbols)).encode(), np.uint8),
                "facts": kept.facts[:rows].reshape(-1),
                "recorded": kept.recorded[:rows].reshape(-1),
                "lengths": np.array([len(example) for example in examples], np.uint8),
                "examples": np.frombuffer(texts, np.uint8),
            },
        )
