"""An engine whose counts a test sets, and a clock that it moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from livepro.engines.live import Gone, LiveCounts, LiveThread, RawBlock


@dataclass
class FakeEngine:
    """An engine whose counts the test sets: one image, blocks of NOP or of ADDPS instructions."""

    name: str = "fake"
    warnings: list[str] = field(default_factory=list)
    entries: dict[Any, list[int]] = field(default_factory=dict)
    partial: dict[Any, dict[tuple[int, int], int]] = field(default_factory=dict)
    former: list[int] | None = None
    numbering: object = field(default_factory=object)
    settled: bool = False
    limited: bool = False
    codes: list[bytes] = field(default_factory=list)
    gone: bool = False

    def __post_init__(self) -> None:
        process = SimpleNamespace(pid=7, ppid=1, image=0, command=("prog",), exit=None)
        self.images: list[Any] = [SimpleNamespace(process=process)]
        self.control = SimpleNamespace(resets=0, paused=False)
        self.tracer: Any = SimpleNamespace(threads={}, live=[process], root_status=None)

    def thread(self, tid: int) -> Any:
        thread = FakeThread(tid, f"t{tid}")
        self.tracer.threads[tid] = thread
        self.entries[id(thread)] = []
        return thread

    def live(self, record: Any, known: Any = ()) -> LiveCounts:
        size = len(self.codes)
        threads = []
        for thread in self.tracer.threads.values():
            entries = np.zeros(size, np.int64)
            given = self.entries[id(thread)]
            entries[: len(given)] = given
            threads.append(
                LiveThread(thread, entries, dict(self.partial.get(id(thread), {})), 0, False, self.limited)
            )
        return LiveCounts(
            self.numbering,
            None if self.former is None else np.array(self.former, np.int64),
            np.array([len(sizes(code)) for code in self.codes], np.int64),
            self.block,
            tuple(threads),
            self.settled,
        )

    def block(self, number: int) -> RawBlock:
        if self.gone:
            raise Gone
        address, code = 0x1000 + 64 * number, self.codes[number]
        return RawBlock(address, code, sizes(code), "/bin/prog", address)


@dataclass(eq=False)
class FakeThread:
    tid: int
    name: str


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


NOP = b"\x90"
ADDPS = b"\x0f\x58\xc0"


def sizes(code: bytes) -> bytes:
    return b"\3" * (len(code) // 3) if code.startswith(ADDPS) else b"\1" * len(code)
