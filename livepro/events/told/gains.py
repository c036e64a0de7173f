"""What each thread has added to totals that several may share, interval by interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from livepro.engines.stream.recorder import StreamImage, StreamThread


class Gains:
    """Follows the `totals` of one state, which one thread at a time adds to."""

    def __init__(self, totals: Callable[[], Mapping[str, int]]) -> None:
        self._totals = totals
        self._mark: Mapping[str, int] = {}
        self._at: StreamThread | None = None
        self._gained: dict[StreamThread, dict[str, int]] = {}
        self._ended: dict[StreamThread, list[dict[str, int]]] = {}

    def turn(self, thread: StreamThread) -> None:
        """What is added from now on is this thread's."""
        if thread is not self._at:
            self._settle()
            self._at = thread
            self._gained.setdefault(thread, {})

    def cut(self, thread: StreamThread) -> None:
        """An interval of a thread ends here; nothing, if it is none of those that add."""
        if thread not in self._gained:
            return
        self._settle()
        names = self._mark
        gained = self._gained[thread]
        self._gained[thread] = {}
        self._ended.setdefault(thread, []).append({name: gained.get(name, 0) for name in names})

    def told(self, image: StreamImage) -> Iterator[tuple[StreamThread, dict[str, list[int]]]]:
        """Each thread of an image, and by name the number that each interval added."""
        for thread, ended in self._ended.items():
            if thread.image is image and ended[-1]:
                yield thread, {name: [one[name] for one in ended] for name in ended[-1]}

    def _settle(self) -> None:
        """Give the thread at hand what has been added."""
        now = self._totals()
        if self._at is not None:
            gained = self._gained[self._at]
            for name, value in now.items():
                gained[name] = gained.get(name, 0) + value - self._mark.get(name, 0)
        self._mark = now
