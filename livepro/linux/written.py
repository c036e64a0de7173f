"""Whether what a process sees of a file is still what the file holds."""

from __future__ import annotations

import mmap
import os

import numpy as np

from livepro.linux.proc import Mapping

_PAGE = mmap.PAGESIZE


def written_to(pid: int, mapping: Mapping) -> bool:
    """Whether a process has changed, or somebody in it, what a private mapping of a file holds.
    True as well if that cannot be told."""
    size = mapping.end - mapping.start
    try:
        with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
            entries = os.pread(file.fileno(), size // _PAGE * 8, mapping.start // _PAGE * 8)
        # Documentation/admin-guide/mm/pagemap.rst: bit 63 present, 62 swapped, 61 a file's page.
        kind = np.frombuffer(entries, np.uint64) >> np.uint64(61)
        own = np.flatnonzero((kind != 0) & (kind & np.uint64(1) == 0)) * _PAGE
        if not len(own):
            return False
        with (
            open(f"/proc/{pid}/root{mapping.path}", "rb", buffering=0) as file,
            open(f"/proc/{pid}/mem", "rb", buffering=0) as memory,
        ):
            for at in own.tolist():
                here = os.pread(memory.fileno(), _PAGE, mapping.start + at)
                there = os.pread(file.fileno(), _PAGE, mapping.offset + at)
                if here != there.ljust(_PAGE, b"\0"):
                    return True
    except OSError:
        return True  # it cannot be told
    return False
