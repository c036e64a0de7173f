"""What is written where threads run is written whole."""

from __future__ import annotations

import mmap
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from engines.observed import REPOSITORY

LOOKS = 100_000
WRITER = """
import mmap, sys
from livepro.engines.translate.translator import aarch64
from livepro.engines.translate.translator import x86_64
from livepro.engines.translate.codecache.stores import store_64
with open(sys.argv[1], 'r+b') as file:
    memory = mmap.mmap(file.fileno(), 0)
ways = {'x86_64': x86_64.BACKEND.link, 'aarch64': aarch64.BACKEND.link, 'word': store_64}
write, at, *values = ways[sys.argv[2]], *map(int, sys.argv[3:])
write(memory, at, values[0])
print('ready', flush=True)
while True:
    for value in values:
        write(memory, at, value)
"""


@pytest.mark.parametrize(
    ("way", "at", "size", "values"),
    [
        ("x86_64", 64, 4, (0x1234568, -0x7654320)),
        ("x86_64", 65, 4, (0x1234568, -0x7654320)),  # as where a copy that compares begins
        ("aarch64", 64, 4, (0x1234568, -0x7654320)),
        ("word", 64, 8, (0x1122334455667788, 0x8877665544332211)),
    ],
)
def test_nobody_sees_half_of_what_is_written(
    way: str, at: int, size: int, values: tuple[int, int], tmp_path: Path
) -> None:
    """Another process looks all the time while one thing is written, and the other."""
    path = tmp_path / "shared"
    path.write_bytes(bytes(mmap.PAGESIZE))
    command = [sys.executable, "-c", WRITER, str(path), way, str(at), *map(str, values)]
    with (
        path.open("r+b") as file,
        subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as writer,
    ):
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        memory = np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)
        looked = np.ndarray(LOOKS, f"<u{size}", memory, at, (0,))  # the same place, many times
        seen: set[int] = set()
        end = time.monotonic() + 1
        while time.monotonic() < end:
            seen.update(np.unique(looked.copy()).tolist())
        writer.kill()
    assert len(seen) == 2
    assert 0 not in seen
