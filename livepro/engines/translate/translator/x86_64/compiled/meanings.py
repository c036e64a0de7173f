"""What instructions of each shape mean: asked of iced-x86 once, kept as numbers of kinds."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from livepro.isa.kinds import dump, parse, restore
from livepro.model import Instruction

Array = np.ndarray


class Meanings:
    """What the shapes of a table mean, by row. Of the first ones it is known: `kinds` (int32) are the numbers
    of the lines that say it (`told`; JSON as of `isa.kinds.dump`). The others are asked for."""

    def __init__(self, kinds: Array, told: Sequence[str]) -> None:
        self._kinds = kinds
        self._told = told
        self._restored: dict[int, Instruction] = {}
        self._asked: dict[int, Instruction] = {}

    def of(self, rows: Array, example: Callable[[int], bytes]) -> tuple[Array, list[Instruction]]:
        """What encodings of these rows' shapes mean, equal for all of one but for the encoding itself: for
        each row which of the instructions it is (int64), and these. `example` gives an encoding of one."""
        known = rows < len(self._kinds)
        kinds, groups = np.unique(self._kinds[rows[known]], return_inverse=True)
        others = rows[~known].tolist()
        out = np.zeros(len(rows), np.int64)
        out[known], out[~known] = groups, np.arange(len(kinds), len(kinds) + len(others))
        return out, [*map(self._of_kind, kinds.tolist()), *(self._ask(row, example) for row in others)]

    def _of_kind(self, kind: int) -> Instruction:
        known = self._restored.get(kind)
        if known is None:
            known = self._restored[kind] = restore(parse(self._told[kind])[0])
        return known

    def _ask(self, row: int, example: Callable[[int], bytes]) -> Instruction:
        known = self._asked.get(row)
        if known is None:
            # To import what describes takes longer than a small program's blocks.
            from livepro.isa.x86_64.describe import describe

            known = self._asked[row] = describe(example(row))
        return known

    def kept(self, examples: Sequence[bytes]) -> tuple[Array, list[str]]:
        """What `kinds` and `told` are for the shapes of all of these."""
        told = list(self._told)
        numbers = {restore(parse(line)[0]).kind: number for number, line in enumerate(told)}
        kinds = np.zeros(len(examples), np.int32)
        known = len(self._kinds)
        kinds[:known] = self._kinds
        for row in range(known, len(examples)):
            instruction = self._ask(row, examples.__getitem__)
            number = numbers.setdefault(instruction.kind, len(told))
            if number == len(told):
                told.append(dump([instruction]).decode())
            kinds[row] = number
        return kinds, told
