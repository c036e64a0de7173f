"""The blocks whose accesses are at one address each, and their operands: static, in the order of events."""

# numba's functions have no types.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from livepro.engines.stream.blocks import StaticTables
from livepro.events.spans.column import Column
from livepro.events.spans.operand import READ1, READ2, REWRITE, WRITE, described
from livepro.isa.access import Pattern

_ONE = int(Pattern.ONE)


@njit(nogil=True, cache=True)
def list_operands(
    begin, end, first, access, pattern, size, kind, mica, lengths, plain, ends, words, operands
):  # fmt: skip
    """List the operands of the blocks from `begin` to `end` in the order of their events, of each instruction
    reads first; rows are counted from 0. Returns how many operands there are.

    The original (`mica`) knows two reads of an instruction, of the first one's size, and one write.
    """
    o = 0
    for b in range(begin, end):
        start, word = o, 1
        lengths[first[b] - first[begin]] = first[b + 1] - first[b]
        plain[b - begin] = 1
        for i in range(first[b], first[b + 1]):
            reads = writes = of_first = 0
            for does in (1, 2):  # READ, WRITE
                for a in range(access[i], access[i + 1]):
                    if pattern[a] != _ONE:
                        plain[b - begin] = 0
                    if not kind[a] & does:
                        continue
                    if does == 1:
                        if mica and reads > 1:
                            continue
                        if not reads or not mica:
                            of_first = size[a]
                        slot = READ2 if reads else READ1
                        operands[o] = described(i, of_first, slot)
                        reads += 1
                    else:
                        if mica and writes:
                            continue
                        slot = REWRITE if kind[a] & 1 and not mica else WRITE
                        operands[o] = described(i, size[a], slot)
                        writes += 1
                    words[o] = word + a - access[i]
                    o += 1
            word += access[i + 1] - access[i]
        if not plain[b - begin]:
            o = start
        ends[b - begin] = o
    return o


class Listing:
    """What `flatten` needs of the blocks of one process image. With `mica`, operands are those that the
    original MICA knows.

    `lengths`: of each instruction the instructions of the block that it begins (0: it begins none).
    """

    def __init__(self, *, mica: bool = False) -> None:
        self.mica = mica
        self._lengths = Column(np.int64)
        self._plain = Column(np.uint8)
        self._at = Column(np.int64, 0)
        self._words = Column(np.int64)
        self._operands = Column(np.int64)

    def update(self, tables: StaticTables) -> None:
        """Look at the blocks that are new."""
        seen = self._plain.length
        known = tables.known
        if seen >= known:
            return
        first = tables.first
        most = 2 * int(tables.access[first[known]] - tables.access[first[seen]])
        lengths = np.zeros(first[known] - first[seen], np.int64)
        plain = np.zeros(known - seen, np.uint8)
        ends, words, operands = (np.zeros(n, np.int64) for n in (known - seen, most, most))
        count = list_operands(
            *(seen, known, first, tables.access, tables.pattern, tables.size, tables.kind, self.mica),
            *(lengths, plain, ends, words, operands),
        )
        self._at.add(ends + self._words.length)
        for column, values in (
            *((self._lengths, lengths), (self._plain, plain)),
            *((self._words, words[:count]), (self._operands, operands[:count])),
        ):
            column.add(values)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """See the class."""
        return self._lengths.data

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Whether each block is plain, where its operands begin, their words and what `operand.described`
        tells of them: in the order in which `flatten` takes them."""
        return self._plain.data, self._at.data, self._words.data, self._operands.data
