"""What instructions mean, by their shape: asked of iced-x86 once, kept as rows of numbers."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from iced_x86 import Decoder

from livepro.engines.translate.translator.compiling.native import Native
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.accesses import recorded
from livepro.engines.translate.translator.x86_64.compiled.meanings import Meanings
from livepro.engines.translate.translator.x86_64.compiled.prepared.store import (
    Kept,
    Learnt,
    nothing_learnt,
)
from livepro.engines.translate.translator.x86_64.facts import FactTable, Kind
from livepro.model import Instruction

_FIRST = 1 << 15  # places in the table, at first: half of them are left free

_KINDS = {
    Kind.PLAIN: tables.PLAIN,
    Kind.RELATIVE: tables.RELATIVE,
    Kind.REP: tables.REP,
    Kind.SYSCALL: tables.SYSCALL,
    Kind.NATIVE: tables.NATIVE,
    Kind.JUMP: tables.JUMP,
    Kind.BRANCH: tables.BRANCH,
    Kind.COUNTED: tables.COUNTED,
    Kind.CALL: tables.CALL,
    Kind.INDIRECT_JUMP: tables.INDIRECT_JUMP,
    Kind.INDIRECT_CALL: tables.INDIRECT_CALL,
    Kind.RETURN: tables.RETURN,
    Kind.INVALID: tables.INVALID,
}
_DIRECT = frozenset((Kind.JUMP, Kind.BRANCH, Kind.COUNTED, Kind.CALL))


class ShapeTable:
    """The shapes that a run has met. `lows`, `highs` and `rows` are a hashed table from a shape to its row of
    `facts` (int64, columns as in `tables`). `recorded` (int32, columns as in `tables`) is what is recorded of
    each, looked into while `records`. What was `learnt` before is known from the start."""

    records = False

    def __init__(self, native: Native, learnt: Learnt | None = None) -> None:
        self.native = native
        self.kernels = native.kernels()
        self._found = np.zeros(2, np.int64)
        self._table = FactTable()
        if learnt is None:
            learnt = nothing_learnt(_FIRST)
        self._count = len(learnt.lengths)
        self.lows, self.highs, self.rows = learnt.lows.copy(), learnt.highs.copy(), learnt.rows.copy()
        room = len(self.lows) // 2 + 1
        self.facts = _longer(learnt.facts, room)
        self.recorded = _longer(learnt.recorded, room)
        self._examples = _longer(learnt.examples, room)
        self._lengths = _longer(learnt.lengths, room)
        self._meanings = Meanings(learnt.kinds, learnt.told)

    def __len__(self) -> int:
        return self._count

    def kept(self) -> Kept:
        """What there is to keep."""
        n = len(self)
        examples = [self.example(row) for row in range(n)]
        arrays = self.facts[:n], self.recorded[:n], self._examples[:n], self._lengths[:n]
        return Kept(
            self.native.made,
            Learnt(self.lows, self.highs, self.rows, *arrays, *self._meanings.kept(examples)),
        )

    def example(self, row: int) -> bytes:
        """An encoding of a shape."""
        return self._examples[row, : self._lengths[row]].tobytes()

    def described(self, rows: np.ndarray) -> tuple[np.ndarray, list[Instruction]]:
        """What encodings of these shapes mean, equal for all of one but for the encoding itself: for each row
        which of the instructions it is (int64), and these."""
        return self._meanings.of(rows, self.example)

    def locate(self, text: np.ndarray, at: int) -> tuple[int, int]:
        """What there is to measure of the instruction at an index (see `decoding.measure`), and where its
        shape is in the hashed table, or is to be put."""
        self.kernels.find_shape(text, at, self.lows, self.highs, self._found)
        return int(self._found[0]), int(self._found[1])

    def learn(self, text: np.ndarray, at: int) -> None:
        """Learn the shape of the instruction at an index."""
        measured, place = self.locate(text, at)
        if self.highs[place]:
            if self.records:
                self._look_into(int(self.rows[place]), measured)
            return
        row = len(self)
        length = measured & 0xFF
        encoding = text[at : at + 16].tobytes()
        decoder = Decoder(64, encoding)
        instruction = decoder.decode()
        self._examples[row, :length] = text[at : at + length]
        self._lengths[row] = length
        self._count += 1
        facts = self._table.learn(
            encoding[: max(instruction.len, 1)], instruction, decoder.get_constant_offsets(instruction)
        )
        head, displacement, immediate = (measured >> shift & 0xFF for shift in (8, 16, 24))
        kind = _KINDS[facts.kind]
        relative = bool(measured >> 32 & 1)
        if (
            instruction.len != length
            or (facts.displacement != (head if relative else 0))
            or (facts.kind in _DIRECT and (displacement or immediate not in (1, 4)))
        ):
            kind = tables.OTHER
        named = facts.kind in _DIRECT or relative
        self.facts[row] = (
            *(kind, facts.reads, facts.kills, facts.registers_read, facts.registers_killed),
            *(facts.faults, head if named else 0),
        )
        if self.records:
            self._look_into(row, measured)
        self.kernels.enter_shape(text, at, self.lows, self.highs, self.rows, place, row)
        if 2 * len(self) >= len(self.lows):
            self._grow()

    def _look_into(self, row: int, measured: int) -> None:
        if self.recorded[row, tables.CAN] == tables.UNKNOWN:
            self.recorded[row] = recorded(self.example(row), measured)

    def _grow(self) -> None:
        size = 2 * len(self.lows)
        lows, highs = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        rows = np.zeros(size, np.int32)
        self.kernels.rehash_shapes(self.lows, self.highs, self.rows, lows, highs, rows)
        self.lows, self.highs, self.rows = lows, highs, rows
        room = size // 2 + 1
        self.facts, self.recorded = _longer(self.facts, room), _longer(self.recorded, room)
        self._examples, self._lengths = _longer(self._examples, room), _longer(self._lengths, room)


def _longer(array: np.ndarray, rows: int) -> np.ndarray:
    """The same with so many rows."""
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
