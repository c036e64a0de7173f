"""Programs that start one process after the other: livepro does not grow with each, but for its counts."""

from __future__ import annotations

import gc
import os

import livepro

PROCESSES = 120
MOST = 300
"""Descriptors: seven for each of the 32 code caches that are given back at once, and those that a run has."""


def test_descriptors_are_given_back() -> None:
    seen: list[int] = []

    def progress(_: object) -> None:
        seen.append(len(os.listdir("/proc/self/fd")))

    gc.collect()  # what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    loop = f"i=0; while [ $i -lt {PROCESSES} ]; do /bin/true; i=$((i+1)); done; exit 3"
    result = livepro.run(["/bin/sh", "-c", loop], engine="translate", progress=progress)
    assert result.exit == 3
    # The shell, and of each child the image that it was born with and the one that it began.
    assert len(result.processes) == 1 + 2 * PROCESSES
    assert all(process.instructions for process in result.processes)
    assert 20 < max(seen) < MOST
    gc.collect()  # the last of them
    assert len(os.listdir("/proc/self/fd")) <= before
