"""Instruction types without a stream of all that a thread executes: from how often its blocks were executed,
and records of those that repeat instructions."""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.analyses.itypes import Grouping
from livepro.engines.stream import COUNT_SHIFT, FLAGS, FLAGS_SHIFT, GOES_ON, INTERRUPTED, NUMBER, PARTIAL
from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.recorder import Executed
from livepro.events.spans.column import grown
from livepro.isa.access import Pattern
from livepro.isa.base import Isa
from livepro.mica.analyses.base import Analysis
from livepro.mica.analyses.itypes import Itypes
from livepro.mica.facts import Facts
from livepro.mica.settings import MicaDialect, Settings
from livepro.mica.thread import Interval
from livepro.model import BlockTable
from livepro.model.itypes import ItypesSpec

_ONE, _STRING, _LANES = int(Pattern.ONE), int(Pattern.STRING), int(Pattern.LANES)


Array = npt.NDArray[np.int64]


def counts_alone(settings: Settings) -> bool:
    """Whether counts are enough for what is asked for."""
    return settings.analyses == ("itypes",) and not settings.interval_size


@njit(nogil=True, cache=True)
def count_repetitions(words, first, access_of, pattern, bytes_of, lanes_of, more, never):
    """Add to `more`, by instruction, the events of repeated ones that their executions are not, and to
    `never` those of which there was no repetition: one event each."""
    at = 0
    while at < len(words):
        head = words[at]
        flags = head >> FLAGS_SHIFT & FLAGS
        if flags & GOES_ON:
            at += 2
            continue
        number = head & NUMBER
        begin, executed = first[number], first[number + 1]
        end = executed
        if flags & PARTIAL:
            executed = begin + (head >> COUNT_SHIFT)
            end = executed + (1 if flags & INTERRUPTED else 0)
        at += 1
        for i in range(begin, end):
            for a in range(access_of[i], access_of[i + 1]):
                how = pattern[a]
                if how == _STRING and a == access_of[i]:
                    turns = abs(words[at + 1] - words[at]) // bytes_of[a]
                    if i >= executed:
                        more[i] += turns
                    elif turns:
                        more[i] += turns - 1
                    else:
                        never[i] += 1
                at += 1 if how == _ONE else (1 + lanes_of[a] if how == _LANES else 2)


class BlockTypes:
    """The blocks that a process has `executed`, with the groups of their instructions (`names`, by `spec`):
    those of its table, and others, which it has executed before its counts were reset. By instruction of each
    block there are its `addresses`, and the row of `groups` that tells its groups, the `form`."""

    def __init__(
        self, table: BlockTable, executed: Iterable[Executed], spec: ItypesSpec | None, isa: Isa
    ) -> None:
        places = table.address.tolist()
        row_of = dict(zip(zip(places, table.code, strict=True), count(), strict=False))
        described, more = list(table.instructions), table.form.tolist()
        lengths, steps = table.length.tolist(), [table.step.tobytes()]
        for blocks in executed:
            for address, code, sizes in zip(blocks.addresses, blocks.codes, blocks.sizes, strict=True):
                if (address, code) in row_of:
                    continue
                row_of[address, code] = len(lengths)
                places.append(address)
                lengths.append(len(sizes))
                steps.append(sizes)
                at = 0
                for size in sizes:
                    more.append(len(described))
                    described.append(isa.describe(code[at : at + size]))
                    at += size
        grouping = Grouping(spec)
        groups = [grouping.groups(form) for form in described]
        self.names = grouping.names
        self.form = np.array(more, np.int64)
        self.groups = np.array([[name in of for name in self.names] for of in groups], np.int64).reshape(
            len(groups), len(self.names)
        )
        self._row_of = row_of
        self._described = described
        self._lengths = np.array(lengths, np.int64)
        self._starts = np.cumsum(self._lengths) - self._lengths
        begins = np.array(places, np.uint64).view(np.int64)
        sizes_of = np.frombuffer(b"".join(steps), np.uint8).astype(np.int64)
        before = np.cumsum(sizes_of) - sizes_of
        self.addresses: Array = np.repeat(begins - before[self._starts], self._lengths) + before

    def executions(self, blocks: Executed) -> Array:
        """How often each instruction of each block was executed."""
        parts = zip(blocks.addresses, blocks.codes, strict=True)
        rows = np.array([self._row_of[part] for part in parts], np.int64)
        whole = np.zeros(len(self._lengths), np.int64)
        np.add.at(whole, rows, blocks.times)
        out = np.repeat(whole, self._lengths)
        for which, instructions, times in blocks.partial:
            begin = int(self._starts[rows[which]])
            out[begin : begin + instructions] += times
        return out

    def summed(self, events: Array) -> Array:
        """The events of each group, given those of each instruction of each block."""
        by_form = np.zeros(len(self.groups), np.int64)
        np.add.at(by_form, self.form, events)
        found: Array = by_form @ self.groups
        return found

    @property
    def others(self) -> list[str]:
        """Categories of instructions in the last group, in the order of blocks."""
        forms, first = np.unique(self.form, return_index=True)
        ordered = forms[np.argsort(first)].tolist()
        return list(dict.fromkeys(self._described[n].category for n in ordered if self.groups[n, -1]))


class CountedThread:
    """A thread's instruction types, with what is asked of one under characterisation
    (`livepro.mica.thread.Characterised`)."""

    def __init__(self, settings: Settings, facts: Facts) -> None:
        self._itypes = Itypes(len(facts.group_names))
        self.analyses: dict[str, Analysis] = {"itypes": self._itypes}
        """Their by-instruction numbers are those of repetitions alone."""
        self.intervals: list[Interval] = []
        self.instructions = self.events = 0
        self.executions: Array = np.zeros(0, np.int64)
        """How often each instruction of each block was executed (`BlockTypes.executions`)."""
        self._facts = facts
        self._original = settings.dialect is MicaDialect.MICA
        self._more, self._never = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
        self.told: list[Executed] = []
        """What it has executed, as that was told."""
        self._values: Array = np.zeros(len(facts.group_names), np.int64)

    def see(self, words: Array, tables: StaticTables) -> None:
        """Take in the next records of blocks that repeat instructions."""
        self._more = grown(self._more, len(tables.address))
        self._never = grown(self._never, len(tables.address))
        asked: tuple[Any, ...] = (
            *(words, tables.first, tables.access, tables.pattern, tables.size, tables.lanes),
            *(self._more, self._never),
        )
        count_repetitions(*asked)

    def executed(self, blocks: Executed) -> None:
        """See `livepro.events.pump.Counting`."""
        self.told.append(blocks)

    def finish(self, tables: StaticTables) -> None:
        """The stream has ended."""
        self._facts.listing.update(tables)
        self._facts.update()
        self._itypes.add(self._more[: len(self._facts.types)], self._facts)

    def settle(self, types: BlockTypes) -> None:
        """Count what it has executed, which is known by now."""
        self.executions = np.zeros(len(types.form), np.int64)
        for blocks in self.told:
            self.executions += types.executions(blocks)
        executed = int(self.executions.sum())
        self.events = executed + int(self._more.sum())
        # To the original an instruction with no repetition is none.
        self.instructions = executed - int(self._never.sum()) if self._original else executed
        self._values = types.summed(self.executions) + np.array(self._itypes.values(), np.int64)

    def current(self) -> dict[str, list[int]]:
        """The numbers of the whole run."""
        return {"itypes": self._values.tolist()}

    def footprint(self) -> tuple[Array, ...]:
        """Nothing: it is not asked for."""
        return ()
