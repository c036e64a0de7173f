"""Kernels that have been compiled, kept with what goes with them."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from livepro.engines.translate.translator.compiling.native import ObjectFile
from livepro.kept.artifacts import ArtifactStore
from livepro.kept.place import default_directory

_TRANSLATE = Path(__file__).parents[2]
_OTHERS = (
    *(_TRANSLATE / "layout.py", _TRANSLATE / "translator" / "emitted.py", _TRANSLATE.parent / "stream"),
    _TRANSLATE.parents[1] / "isa",
)
"""What kernels take constants from, besides their instruction set's folder and this one."""
_TELLING = ("model", "flags", "vendor", "CPU ", "Features")  # not "cpu MHz", which is never the same


def place(here: Path) -> Path:
    """The directory for what is compiled of the folder `here`: beside what numba keeps, if that may be
    written (it goes when that goes), else livepro's own."""
    return here / "__pycache__" if os.access(here, os.W_OK) else default_directory()


def _processor() -> str:
    """What numba compiles for: the processor's model and what it can do."""
    lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    return "".join(line for line in lines if line.startswith(_TELLING))


class KernelStore:
    """Where the kernels of the folder `here` are kept, with arrays: for one version of livepro, Python and
    numba, and one kind of processor."""

    def __init__(self, kind: str, here: Path) -> None:
        self.place = place(here)
        self._store = ArtifactStore(self.place, kind, here.parent, Path(__file__).parent, *_OTHERS)
        try:
            self.key = self._store.key(version("numba"), platform.python_version(), str(here), _processor())
        except (PackageNotFoundError, OSError):
            self.key = ""

    @property
    def possible(self) -> bool:
        """Whether there is what compiles."""
        return bool(self.key)

    def discard_others(self) -> None:
        """Remove what another version has compiled and kept in this place. numba looks at the file of the
        function that it compiles, not at those of the functions that are called: what it keeps of two
        versions must never be mixed."""
        if self.place != default_directory() and self.place.is_dir():
            for path in self.place.iterdir():
                if path.suffix in (".nbi", ".nbc") or len(path.name) == len(self.key):
                    path.unlink(missing_ok=True)

    def read(self) -> tuple[ObjectFile, Mapping[str, Any]] | None:
        """What is kept; None where nothing is: nothing has been compiled here, then."""
        arrays = self._store.read(self.key) if self.key else None
        if arrays is None:
            return None
        name, *symbols = arrays["names"].tobytes().decode().split("\n")
        return ObjectFile(arrays["code"].tobytes(), name, symbols), arrays

    def write(self, made: ObjectFile, arrays: Mapping[str, Any]) -> None:
        """Keep that."""
        names = "\n".join((made.name, *made.symbols))
        code = {"code": np.frombuffer(made.code, np.uint8), "names": np.frombuffer(names.encode(), np.uint8)}
        self._store.write(self.key, {**code, **arrays})
