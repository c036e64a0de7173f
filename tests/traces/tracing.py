"""`livepro trace` run on fixtures, and what is in a ChampSim trace."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from fixtures import ROOT, Builder, assembly


def livepro(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "livepro", *map(str, arguments)],
        cwd=cwd,
        # That of `events.streams.record`: where the stack is depends on it.
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": f"{ROOT.parent}:{ROOT.parent / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def fixture(builder: Builder, name: str) -> Path:
    return builder.assembly(next(f for f in assembly() if f.name == name))


def traced(path: Path, program: Path, *more: str | Path) -> dict[str, Any]:
    done = livepro("trace", "-o", path, "--no-aslr", *more, "--", program, cwd=path.parent)
    assert "trace  " in done.stderr, done.stderr
    info: dict[str, Any] = {}
    if path.exists():
        told = livepro("trace", "info", "--json", path, cwd=path.parent)
        assert told.returncode == 0, told.stderr
        info = json.loads(told.stdout)[str(path)]
    return info


def champsim(data: bytes) -> list[tuple[Any, ...]]:
    """An independent reader: ip, is_branch, taken, writes, reads, stores, loads."""
    assert len(data) % 64 == 0
    out = []
    for f in struct.iter_unpack("<QBB2B4B2Q4Q", data):
        out.append((f[0], f[1], f[2], f[3:5], f[5:9], f[9:11], f[11:15]))
    return out
