"""How long attaching and detaching hold a process, as its own threads see it.

python -m benchmarks.attach [--threads N] [--turns N] [--engine NAME]

`workloads/gaps.c` starts threads that look at the clock every millisecond and write down when they
could not. It is attached to and let go, again and again; the longest gap of each thread while that
is done is what it was held, and what the machine's other work took from it: the longest gap while
nobody attaches stands beside it. The CPU time of livepro's tracing thread does not depend on others.
"""

from __future__ import annotations

import argparse
import mmap
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import livepro
from benchmarks.workloads import compiled
from livepro.attachment import Attachment
from livepro.tracee import Tracer

ROOM, LEAST = 2047, 3.0  # of gaps.c: gaps that a log holds; milliseconds
ATTACH_BOUND, DETACH_BOUND = 100.0, 50.0  # milliseconds

# Behind the moment that the last thread runs, a gap may be noticed so much later.
_NOTICED = 0.2


class Gaps:
    """The logs of the program's threads."""

    def __init__(self, path: Path, threads: int) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self._words = np.frombuffer(self._map, np.int64).reshape(threads, 2 + 2 * ROOM)

    def longest(self, begin: float, end: float) -> npt.NDArray[np.float64]:
        """By thread, the longest gap in milliseconds that is not over before `begin` and has begun
        before `end`; 0 for less than LEAST."""
        out = np.zeros(len(self._words))
        for thread, words in enumerate(self._words):
            gaps = words[2:].reshape(-1, 2)[: words[0]]
            there = gaps[(gaps[:, 1] > begin * 1e9) & (gaps[:, 0] < end * 1e9)]
            if len(there):
                out[thread] = (there[:, 1] - there[:, 0]).max() / 1e6
        return out


@dataclass
class Moments:
    """When something happened in the tracing thread: seconds of the clock, of its CPU time."""

    at: dict[str, tuple[float, float]] = field(default_factory=dict)

    def note(self, name: str) -> None:
        """It happens now (the latest time counts)."""
        self.at[name] = time.monotonic(), time.thread_time()

    def between(self, one: str, other: str, which: int = 0) -> float:
        """Milliseconds of the clock (`which` 0) or of CPU time (1)."""
        return (self.at[other][which] - self.at[one][which]) * 1000


@contextmanager
def noted(moments: Moments) -> Iterator[None]:
    """Meanwhile it is noted when threads are taken over and let go."""
    take, release = Tracer._take_over, Tracer.let_run

    def taking(tracer: Tracer, tid: int, status: int) -> None:
        if "stopped" not in moments.at:
            moments.note("stopped")
        take(tracer, tid, status)
        moments.note("running")

    def releasing(tracer: Tracer, *arguments: Any) -> None:
        release(tracer, *arguments)
        moments.note("free")

    Tracer._take_over, Tracer.let_run = taking, releasing  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tracer._take_over, Tracer.let_run = take, release  # type: ignore[method-assign]


def one_turn(pid: int, engine: str) -> Moments:
    """Attach for a while and let go."""
    moments = Moments()

    def started(attachment: Attachment) -> None:
        watched: Any = attachment.engine
        attach, leave = watched.attach, watched.leave

        def attaching(*arguments: Any) -> None:
            moments.note("attach")
            attach(*arguments)

        def leaving() -> None:
            if "leave" not in moments.at:
                moments.note("leave")
            leave()

        watched.attach, watched.leave = attaching, leaving

    with noted(moments):
        livepro.attach(pid, engine=engine, seconds=0.5, started=started)
    time.sleep(_NOTICED)
    return moments


def main() -> int:
    out = argparse.ArgumentParser(prog="python -m benchmarks.attach", description=__doc__.partition("\n")[0])
    out.add_argument("--threads", metavar="N", type=int, default=50, help="default: 50")
    out.add_argument("--turns", metavar="N", type=int, default=20, help="default: 20")
    out.add_argument("--engine", default="auto", help="default: auto")
    args = out.parse_args()
    rows: dict[str, list[float]] = {name: [] for name in ROWS}
    with tempfile.TemporaryDirectory(prefix="livepro-benchmarks-") as name:
        program, log = compiled(Path(name), "gaps.c", "-O2", "-pthread"), Path(name, "log")
        target = subprocess.Popen([program, log, str(args.threads), "0"], stdout=subprocess.PIPE, text=True)
        try:
            assert target.stdout is not None
            target.stdout.readline()
            gaps = Gaps(log, args.threads)
            one_turn(target.pid, args.engine)  # what is translated is kept from now on
            for _ in range(args.turns):
                begin = time.monotonic()
                time.sleep(0.5)
                rows["alone: longest gap"].append(gaps.longest(begin, time.monotonic()).max())
                moments = one_turn(target.pid, args.engine)
                at = {event: moment[0] for event, moment in moments.at.items()}
                held = gaps.longest(at["attach"], at["running"] + _NOTICED)
                rows["attach: longest gap"].append(held.max())
                rows["attach: middle thread's gap"].append(float(np.median(held)))
                rows["attach: first stop to last thread running"].append(
                    moments.between("stopped", "running")
                )
                rows["attach: CPU time of that"].append(moments.between("stopped", "running", 1))
                freed = gaps.longest(at["leave"], at["free"] + _NOTICED)
                rows["detach: longest gap"].append(freed.max())
                rows["detach: middle thread's gap"].append(float(np.median(freed)))
                rows["detach: until the last thread is free"].append(moments.between("leave", "free"))
                rows["detach: CPU time of that"].append(moments.between("leave", "free", 1))
        finally:
            target.terminate()
            rest, _ = target.communicate()
    print(f"| ms, {args.threads} threads, {args.turns} turns | median | worst | bound |\n|---|---|---|---|")
    for name, bound in ROWS.items():
        shown = f"{bound:.0f}" if bound else ""
        print(f"| {name} | {statistics.median(rows[name]):.1f} | {max(rows[name]):.1f} | {shown} |")
    if (target.returncode, rest) != (0, "done\n"):
        sys.exit(f"the program ended with {target.returncode}, and wrote {rest!r}")
    return 0


ROWS: dict[str, float] = {
    "alone: longest gap": 0,
    "attach: longest gap": ATTACH_BOUND,
    "attach: middle thread's gap": 0,
    "attach: first stop to last thread running": ATTACH_BOUND,
    "attach: CPU time of that": 0,
    "detach: longest gap": DETACH_BOUND,
    "detach: middle thread's gap": 0,
    "detach: until the last thread is free": DETACH_BOUND,
    "detach: CPU time of that": 0,
}
"""What is measured, and what it is to stay within on an idle machine (0: not stated)."""

if __name__ == "__main__":
    sys.exit(main())
