"""What instructions mean, by their shape: asked of iced-x86 once, kept as rows of numbers."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from iced_x86 import Decoder

from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.accesses import recorded
from livepro.engines.translate.translator.x86_64.compiled.native import Native
from livepro.engines.translate.translator.x86_64.compiled.prepared.store import Kept
from livepro.engines.translate.translator.x86_64.facts import FactTable, Kind
from livepro.isa.x86_64.describe import describe
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
    `facts` (int64, columns as in `tables`); `examples` has an encoding of each.
    `recorded` (int64, columns as in `tables`) is what is recorded of each, looked into while `records`."""

    records = False

    def __init__(self, native: Native) -> None:
        self.native = native
        self.kernels = native.kernels()
        self._found = np.zeros(2, np.int64)
        self.lows = np.zeros(_FIRST, np.uint64)
        self.highs = np.zeros(_FIRST, np.uint64)
        self.rows = np.zeros(_FIRST, np.int32)
        self.facts = np.zeros((_FIRST, tables.COLUMNS), np.int64)
        self.recorded = np.zeros((_FIRST, tables.RECORDED_COLUMNS), np.int64)
        self.examples: list[bytes] = []
        self._table = FactTable()
        self._described: dict[int, Instruction] = {}

    def __len__(self) -> int:
        return len(self.examples)

    def kept(self) -> Kept:
        """What there is to keep."""
        return Kept(self.native.made, self.facts, self.recorded, self.examples)

    def know(self, kept: Kept) -> None:
        """Know what was learnt before."""
        examples = kept.examples
        while 2 * len(examples) >= len(self.lows):
            self._grow()
        self.examples += examples
        self.facts[: len(examples)] = kept.facts
        self.recorded[: len(examples)] = kept.recorded
        text = np.frombuffer(b"".join(example.ljust(16, b"\0") for example in examples), np.uint8)
        self.kernels.enter_shapes(text, len(examples), self.lows, self.highs, self.rows)

    def described(self, row: int) -> Instruction:
        """What an encoding of a shape means, equal for all of them but for the encoding itself."""
        known = self._described.get(row)
        if known is None:
            known = self._described[row] = describe(self.examples[row])
        return known

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
        row = len(self.examples)
        length = measured & 0xFF
        encoding = text[at : at + 16].tobytes()
        decoder = Decoder(64, encoding)
        instruction = decoder.decode()
        self.examples.append(encoding[:length])
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
            *(facts.faults, facts.spot, head if named else 0),
        )
        if self.records:
            self._look_into(row, measured)
        self.kernels.enter_shape(text, at, self.lows, self.highs, self.rows, place, row)
        if 2 * len(self) >= len(self.lows):
            self._grow()

    def _look_into(self, row: int, measured: int) -> None:
        if self.recorded[row, tables.CAN] == tables.UNKNOWN:
            self.recorded[row] = recorded(self.examples[row], measured)

    def _grow(self) -> None:
        size = 2 * len(self.lows)
        lows, highs = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        rows = np.zeros(size, np.int32)
        self.kernels.rehash_shapes(self.lows, self.highs, self.rows, lows, highs, rows)
        facts = np.zeros((size, tables.COLUMNS), np.int64)
        facts[: len(self.facts)] = self.facts
        told = np.zeros((size, tables.RECORDED_COLUMNS), np.int64)
        told[: len(self.recorded)] = self.recorded
        self.lows, self.highs, self.rows, self.facts = lows, highs, rows, facts
        self.recorded = told
