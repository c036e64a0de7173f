"""What instructions are, kept from run to run for each program.

Blocks that are put back from kept translations bring the meaning of their
instructions with them. A few blocks of every run are in no module that is kept, as
those of the vDSO: describing these takes more time to get ready than to do.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import livepro.isa
from livepro.isa.kinds import dump, parse, restore
from livepro.kept.artifacts import ArtifactStore
from livepro.model import Instruction

LIMIT = 4096
"""Encodings kept for one program: generated code has ever new ones."""

_GROWTH = 8  # what is new is written once it is this part of what is known, or more


class Descriptions:
    """An instruction set's `describe` for the encodings of one `program` (the machine's name and
    its own), with a memory in the directory `kept` (None: without)."""

    def __init__(
        self, describe: Callable[[bytes], Instruction], program: tuple[str, ...], kept: Path | None
    ) -> None:
        self._describe = describe
        self._artifacts = (
            None if kept is None else ArtifactStore(kept, "described", Path(livepro.isa.__file__).parent)
        )
        self._key = "" if self._artifacts is None else self._artifacts.key(*program)
        self._rows: dict[str, Any] | None = None
        self._new: list[Instruction] = []

    def __call__(self, code: bytes) -> Instruction:
        """The instruction that `code` encodes."""
        if self._rows is None:
            self._rows = self._read()
        row = self._rows.get(code.hex())
        if row is not None:
            return restore(row)
        instruction = self._describe(code)
        self._new.append(instruction)
        return instruction

    def keep(self) -> None:
        """Write down what is new, if that is much of what there is."""
        known = list((self._rows or {}).values())
        if self._artifacts is None or not self._new or len(self._new) * _GROWTH < len(known):
            return
        if len(known) + len(self._new) <= LIMIT:
            text = dump([*map(restore, known), *self._new])
            self._artifacts.write(self._key, {"rows": np.frombuffer(text, np.uint8)})

    def _read(self) -> dict[str, Any]:
        arrays = None if self._artifacts is None else self._artifacts.read(self._key)
        rows = [] if arrays is None else parse(arrays["rows"].tobytes())
        return {row[0]: row for row in rows}
