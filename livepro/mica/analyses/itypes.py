"""Instruction types: how many events are of instructions in each group."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.mica.analyses.base import Analysis, Slice
from livepro.mica.facts import Facts


@njit(nogil=True, cache=True)
def consume(instructions, begin, stop, types, by_type, by_instruction):
    for e in range(begin, stop):
        i = instructions[e]
        by_type[types[i]] += 1
        by_instruction[i] += 1


class Itypes(Analysis):
    """Values: a number for each of so many `groups`, `other` last."""

    def __init__(self, groups: int) -> None:
        self._by_type = np.zeros(16, np.int64)
        self._groups = np.zeros((0, groups), np.int64)
        self.by_instruction = np.zeros(1024, np.int64)
        """Events of the whole run, by instruction."""

    def see(self, part: Slice, facts: Facts) -> None:
        self._groups = facts.groups_of_types
        self._by_type = grown(self._by_type, len(self._groups))
        self.by_instruction = grown(self.by_instruction, len(facts.types))
        consume(
            *(part.events.instructions, part.begin, part.end, facts.types),
            *(self._by_type, self.by_instruction),
        )

    def values(self) -> list[int]:
        return (self._by_type[: len(self._groups)] @ self._groups).tolist()

    def next_interval(self) -> None:
        self._by_type[:] = 0


def grown(array: np.ndarray, length: int) -> np.ndarray:
    """An array of at least `length` rows; zeros behind those there were."""
    if len(array) >= length:
        return array
    out = np.zeros((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out
