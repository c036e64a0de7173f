"""Programs that start one process after the other: livepro does not grow with each, but for its counts."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

import livepro

PROCESSES = 120
LOOP = "i=0; while [ $i -lt {} ]; do /bin/true; i=$((i+1)); done; exit 3"
PEAK = """
import resource, sys, livepro
result = livepro.run(["/bin/sh", "-c", sys.argv[1]], engine="translate")
print(len(result.processes), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
EACH = 40_000
"""Bytes for each image: some thirty for each of five hundred blocks, and what is kept of any process. With
all that images have in common kept for each, it was 160,000."""
MOST = 300
"""Descriptors: seven for each of the 32 code caches that are given back at once, and those that a run has."""


def test_descriptors_are_given_back() -> None:
    seen: list[int] = []

    def progress(_: object) -> None:
        seen.append(len(os.listdir("/proc/self/fd")))

    gc.collect()  # what other tests have left
    before = len(os.listdir("/proc/self/fd"))
    loop = ["/bin/sh", "-c", LOOP.format(PROCESSES)]
    result = livepro.run(loop, engine="translate", progress=progress)
    assert result.exit == 3
    # The shell, and of each child the image that it was born with and the one that it began.
    assert len(result.processes) == 1 + 2 * PROCESSES
    assert all(process.instructions for process in result.processes)
    assert 20 < max(seen) < MOST
    gc.collect()  # the last of them
    assert len(os.listdir("/proc/self/fd")) <= before


def peak(turns: int) -> tuple[int, int]:
    """Images and bytes of the memory of a process that measures the loop."""
    command = [sys.executable, "-c", PEAK, LOOP.format(turns)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    images, most = map(int, done.stdout.split())
    return images, most


@pytest.mark.long(seconds=45)
def test_memory_for_each_process() -> None:
    """What equal processes have in common takes no memory again. (How much the allocator takes of the system
    is not exact.)"""
    few, many = peak(60), peak(300)
    assert (few[0], many[0]) == (121, 601)
    assert many[1] - few[1] < EACH * (many[0] - few[0])


def test_equal_processes_have_in_common_what_is_equal() -> None:
    result = livepro.run(["/bin/sh", "-c", LOOP.format(8)], engine="translate", aslr=False)
    images = [process for process in result.processes if process.image == 1]
    assert len(images) == 8
    first = images[1].table  # (the image before was translated anew, perhaps, its blocks in another order)
    for process in images[1:]:
        table = process.table
        assert table.address.tolist() == first.address.tolist()
        assert table.code is first.code
        assert table.form is first.form
        assert table.start is first.start
        assert process.threads[0].entries.tolist() == images[1].threads[0].entries.tolist()
