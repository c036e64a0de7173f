"""Instruction types: how many events are of instructions in each group."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.events.spans.column import grown
from livepro.events.spans.feeding import Slice
from livepro.mica.analyses.base import Analysis
from livepro.mica.facts import Facts

U = np.uint64  # an unsigned index needs no test for being negative


@njit(nogil=True, cache=True)
def consume(begins, ends, begin, stop, lengths, types, whole, touched, many, by_type, by_instruction):
    """Count whole blocks by their first instruction; the first `many[0]` of `touched` are those counted."""
    known = many[0]
    for s in range(U(begin), U(stop)):
        first, end = begins[s], ends[s]
        block = U(first)
        if lengths[block] == end - first:
            if whole[block] == 0:
                touched[known] = first
                known += 1
            whole[block] += 1
        else:
            for i in range(first, end):
                by_type[types[i]] += 1
                by_instruction[i] += 1
    many[0] = known


@njit(nogil=True, cache=True)
def settle(lengths, types, whole, touched, many, by_type, by_instruction):
    """Give each instruction the executions of whole blocks, and begin counting those anew."""
    for t in range(many[0]):
        first = touched[t]
        for i in range(first, first + lengths[first]):
            by_type[types[i]] += whole[first]
            by_instruction[i] += whole[first]
        whole[first] = 0
    many[0] = 0


class Itypes(Analysis):
    """Values: a number for each of so many `groups`, `other` last."""

    def __init__(self, groups: int) -> None:
        self._by_type = np.zeros(16, np.int64)
        self._groups = np.zeros((0, groups), np.int64)
        self._by_instruction = np.zeros(1024, np.int64)
        self._whole, self._touched = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
        self._many = np.zeros(1, np.int64)
        self._lengths = self._types = np.zeros(0, np.int64)

    def see(self, part: Slice, facts: Facts) -> None:
        self._groups = facts.groups_of_types
        self._by_type = grown(self._by_type, len(self._groups))
        self._lengths, self._types = facts.listing.lengths, facts.types
        for name in ("_by_instruction", "_whole", "_touched"):
            setattr(self, name, grown(getattr(self, name), len(facts.types)))
        consume(
            *(part.events.begins, part.events.ends, part.begin, part.end, self._lengths, self._types),
            *(self._whole, self._touched, self._many, self._by_type, self._by_instruction),
        )

    def add(self, events: np.ndarray, facts: Facts) -> None:
        """Add so many events of each instruction."""
        self._groups = facts.groups_of_types
        self._by_type = grown(self._by_type, len(self._groups))
        self._by_instruction = grown(self._by_instruction, len(events))
        self._by_instruction[: len(events)] += events
        np.add.at(self._by_type, facts.types[: len(events)], events)

    def _settle(self) -> None:
        settle(
            *(self._lengths, self._types, self._whole, self._touched, self._many),
            *(self._by_type, self._by_instruction),
        )

    @property
    def by_instruction(self) -> np.ndarray:
        """Events of the whole run, by instruction."""
        self._settle()
        return self._by_instruction

    def values(self) -> list[int]:
        self._settle()
        return (self._by_type[: len(self._groups)] @ self._groups).tolist()

    def next_interval(self) -> None:
        self._settle()
        self._by_type[:] = 0
