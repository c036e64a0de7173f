"""What instructions mean, by their shape: asked of iced-x86 once, kept as rows of numbers."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from iced_x86 import Decoder
from numba import njit

from livepro.engines.translate.translator.x86_64.compiled import decoding, tables
from livepro.engines.translate.translator.x86_64.compiled.accesses import recorded
from livepro.engines.translate.translator.x86_64.compiled.decoding import enter, locate, place_of
from livepro.engines.translate.translator.x86_64.facts import FactTable, Kind
from livepro.isa.x86_64.describe import describe
from livepro.model import Instruction

_FIRST = 1 << 15  # places in the table, at first: half of them are left free

_KINDS = {
    Kind.PLAIN: decoding.PLAIN,
    Kind.RELATIVE: decoding.RELATIVE,
    Kind.REP: decoding.REP,
    Kind.SYSCALL: decoding.SYSCALL,
    Kind.NATIVE: decoding.NATIVE,
    Kind.JUMP: decoding.JUMP,
    Kind.BRANCH: decoding.BRANCH,
    Kind.COUNTED: decoding.COUNTED,
    Kind.CALL: decoding.CALL,
    Kind.INDIRECT_JUMP: decoding.INDIRECT_JUMP,
    Kind.INDIRECT_CALL: decoding.INDIRECT_CALL,
    Kind.RETURN: decoding.RETURN,
    Kind.INVALID: decoding.INVALID,
}
_DIRECT = frozenset((Kind.JUMP, Kind.BRANCH, Kind.COUNTED, Kind.CALL))


@njit(nogil=True, cache=True)
def _rehash(lows, highs, rows, new_lows, new_highs, new_rows):
    for i in range(len(lows)):
        if highs[i]:
            at = place_of(new_lows, new_highs, lows[i], highs[i])
            new_lows[at], new_highs[at], new_rows[at] = lows[i], highs[i], rows[i]


@njit(nogil=True, cache=True)
def _enter_all(text, count, lows, highs, rows):
    for row in range(count):
        _, place = locate(text, 16 * row, lows, highs)
        enter(text, 16 * row, lows, highs, rows, place, row)


class ShapeTable:
    """The shapes that a run has met. `lows`, `highs` and `rows` are a hashed table from a shape to its row of
    `facts` (int64, columns as in `decoding`); `examples` has an encoding of each.
    `recorded` (int64, columns as in `tables`) is what is recorded of each, looked into while `records`."""

    records = False

    def __init__(self) -> None:
        self.lows = np.zeros(_FIRST, np.uint64)
        self.highs = np.zeros(_FIRST, np.uint64)
        self.rows = np.zeros(_FIRST, np.int32)
        self.facts = np.zeros((_FIRST, decoding.COLUMNS), np.int64)
        self.recorded = np.zeros((_FIRST, tables.RECORDED_COLUMNS), np.int64)
        self.examples: list[bytes] = []
        self._table = FactTable()
        self._described: dict[int, Instruction] = {}

    def __len__(self) -> int:
        return len(self.examples)

    def know(self, facts: np.ndarray, recorded: np.ndarray, examples: list[bytes]) -> None:
        """Know what was learnt before."""
        while 2 * len(examples) >= len(self.lows):
            self._grow()
        self.examples += examples
        self.facts[: len(examples)] = facts
        self.recorded[: len(examples)] = recorded
        text = np.frombuffer(b"".join(example.ljust(16, b"\0") for example in examples), np.uint8)
        _enter_all(text, len(examples), self.lows, self.highs, self.rows)

    def described(self, row: int) -> Instruction:
        """What an encoding of a shape means, equal for all of them but for the encoding itself."""
        known = self._described.get(row)
        if known is None:
            known = self._described[row] = describe(self.examples[row])
        return known

    def learn(self, text: np.ndarray, at: int) -> None:
        """Learn the shape of the instruction at an index."""
        measured, place = locate(text, at, self.lows, self.highs)
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
            kind = decoding.OTHER
        named = facts.kind in _DIRECT or relative
        self.facts[row] = (
            *(kind, facts.reads, facts.kills, facts.registers_read, facts.registers_killed),
            *(facts.faults, facts.spot, head if named else 0),
        )
        if self.records:
            self._look_into(row, measured)
        enter(text, at, self.lows, self.highs, self.rows, place, row)
        if 2 * len(self) >= len(self.lows):
            self._grow()

    def _look_into(self, row: int, measured: int) -> None:
        if self.recorded[row, tables.CAN] == tables.UNKNOWN:
            self.recorded[row] = recorded(self.examples[row], measured)

    def _grow(self) -> None:
        size = 2 * len(self.lows)
        lows, highs = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        rows = np.zeros(size, np.int32)
        _rehash(self.lows, self.highs, self.rows, lows, highs, rows)
        facts = np.zeros((size, decoding.COLUMNS), np.int64)
        facts[: len(self.facts)] = self.facts
        told = np.zeros((size, tables.RECORDED_COLUMNS), np.int64)
        told[: len(self.recorded)] = self.recorded
        self.lows, self.highs, self.rows, self.facts = lows, highs, rows, facts
        self.recorded = told
