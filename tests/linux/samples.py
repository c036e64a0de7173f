"""Small programs compiled for the tests of livepro.linux, and the tools they are compared with."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np

from livepro.linux.symbols import Symbolizer


def run(*command: str | Path) -> str:
    """Standard output of a tool that must succeed."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def compile_sample(folder: Path, name: str, source: str, *flags: str, cross: str = "") -> Path:
    """Compile `source` (assembly when `name` ends in .S) by gcc with `flags`; the result loses the suffix."""
    file = folder / name
    file.write_text(source)
    out = file.with_suffix("")
    run(f"{cross}gcc", *flags, "-o", out, file)
    return out


def nm(path: Path, *flags: str) -> list[tuple[int, int, str, str]]:
    """(value, size, type letter, name without version) of each defined symbol; size 0 if it has none."""
    pattern = r"^([0-9a-f]+) (?:([0-9a-f]+) )?([A-Za-z]) (\S+)$"
    lines = re.findall(pattern, run("nm", "-S", "--defined-only", *flags, path), re.MULTILINE)
    return [(int(v, 16), int(s or "0", 16), kind, re.sub("@.*", "", name)) for v, s, kind, name in lines]


def offsets_of(path: Path, addresses: list[int]) -> np.ndarray:
    """File offsets of virtual addresses, by readelf's program headers (uint64)."""
    pattern = r"^\s+LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)"
    loads = [[int(x, 16) for x in m] for m in re.findall(pattern, run("readelf", "-lW", path), re.MULTILINE)]
    return np.array(
        [
            next(a - start + offset for offset, start, size in loads if start <= a < start + size)
            for a in addresses
        ],
        np.uint64,
    )


def names_at(path: Path, addresses: list[int], symbolizer: Symbolizer | None = None) -> list[str]:
    """What livepro calls virtual `addresses` of a file; checks the addresses that it gives back."""
    names, back = (symbolizer or Symbolizer()).lookup(str(path), offsets_of(path, addresses))
    assert back.tolist() == addresses
    return names
