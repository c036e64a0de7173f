"""The words of a thread's event stream that are in its area: it writes them, the tracer completes them, and
the sink is given all of them when there is no room for more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livepro.engines.stream.recorder import Recorder, StreamThread
from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Words

_AT = layout.RECORD // 8
LARGEST = 1 << 20
"""Words of a chunk: `layout.RECORDS_END` says how far down it may reach."""


class Chunk:
    """A thread's chunk in its area (`words`); places are indices into that. It is as large as the recorder's
    share is when it is begun."""

    def __init__(self, recorder: Recorder, stream: StreamThread, words: Words) -> None:
        self._recorder = recorder
        self._stream = stream
        self._words = words
        self._limits = [limit // 8 for limit in layout.RECORDS_ENDS]
        self._full = (0, 0)
        self._start()

    def _start(self) -> None:
        self.begin = self._limits[0] - min(self._recorder.share, LARGEST)
        """Where it begins."""
        self.end = self.begin

    @property
    def end(self) -> int:
        """Where the next words go."""
        return int(self._words[_AT]) // 8

    @end.setter
    def end(self, place: int) -> None:
        self._words[_AT] = place * 8

    def room(self, words: int) -> bool:
        """Whether there is room for so many more."""
        return self.end + words <= self._limits[0]

    def part(self, begin: int, end: int) -> list[int]:
        """The words between two places."""
        found: list[int] = self._words[begin:end].tolist()
        return found

    def put(self, place: int, words: Sequence[int]) -> None:
        """Write words where there are some already."""
        self._words[place : place + len(words)] = words

    def append(self, words: Sequence[int]) -> None:
        """Add words, for which there is room."""
        end = self.end
        self.put(end, words)
        self.end = end + len(words)

    def turn(self, upto: int) -> None:
        """Begin anew elsewhere, with the words behind a place; those before it are to be handed over
        (`hand_over`), which the thread need not wait for."""
        self.hand_over()
        self._full = self.begin, upto
        rest = self._words[upto : self.end].copy()
        self._limits.reverse()
        self._start()
        self._words[self.begin : self.begin + len(rest)] = rest
        self.end = self.begin + len(rest)

    def hand_over(self) -> None:
        """Give the sink the words that a turn has left."""
        begin, end = self._full
        if end > begin:
            self._full = 0, 0
            self._recorder.deliver(self._stream, self._words[begin:end].copy())

    def deliver(self, more: Words | None = None) -> None:
        """Give the sink all words, with `more` behind them, and begin anew."""
        self.hand_over()
        self._recorder.deliver(self._stream, self._taken(more))
        self._start()

    def close(self, more: Words | None = None) -> None:
        """The stream has ended: give the sink what is left, and `more`."""
        self.hand_over()
        self._recorder.deliver(self._stream, self._taken(more))
        self._recorder.end(self._stream)

    def _taken(self, more: Words | None) -> Words:
        mine = self._words[self.begin : self.end]
        return mine.copy() if more is None else np.concatenate((mine, more))
