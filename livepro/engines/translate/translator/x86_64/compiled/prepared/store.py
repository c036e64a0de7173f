"""The shapes that earlier runs have met, kept: they say, too, that all of this has been compiled here."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import livepro.isa
from livepro.kept.artifacts import ArtifactStore
from livepro.kept.place import default_directory

_KIND = "shapes"
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

    def read(self) -> tuple[Any, Any, list[bytes]] | None:
        """Facts (int64, by row, columns as in `decoding`), what is recorded (the same, `tables`), and an
        example of each shape that is kept; None
        where nothing is: nothing has been compiled here, then."""
        arrays = self._store.read(self._key) if self._key else None
        if arrays is None:
            return None
        lengths = arrays["lengths"].tolist()
        texts = arrays["examples"].reshape(-1, _LONGEST)
        examples = [text[:n].tobytes() for text, n in zip(texts, lengths, strict=True)]
        rows = len(lengths)
        return arrays["facts"].reshape(rows, -1), arrays["recorded"].reshape(rows, -1), examples

    def write(self, facts: Any, recorded: Any, examples: list[bytes]) -> None:
        """Keep the facts, what is recorded, and an example of each shape."""
        texts = b"".join(example.ljust(_LONGEST, b"\0") for example in examples)
        self._store.write(
            self._key,
            {
                "facts": facts[: len(examples)].reshape(-1),
                "recorded": recorded[: len(examples)].reshape(-1),
                "lengths": np.array([len(example) for example in examples], np.uint8),
                "examples": np.frombuffer(texts, np.uint8),
            },
        )
