"""The caches that are simulated where none are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from livepro.cachesim import geometry
from livepro.cachesim.geometry import Geometry, host


def told(directory: Path, number: int, **values: object) -> None:
    """Have the kernel tell a cache."""
    entry = directory / f"index{number}"
    entry.mkdir()
    for name, value in values.items():
        (entry / name).write_text(f"{value}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(geometry, "_CPU", tmp_path)
    return tmp_path


def test_caches_of_the_machine(machine: Path) -> None:
    common = {"coherency_line_size": 64}
    told(machine, 0, level=1, type="Data", size="48K", ways_of_associativity=12, **common)
    told(machine, 1, level=1, type="Instruction", size="32K", ways_of_associativity=8, **common)
    told(machine, 2, level=2, type="Unified", size="1024K", ways_of_associativity=16, **common)
    told(machine, 3, level=3, type="Unified", size="30M", ways_of_associativity=15, **common)
    found = host()
    assert found[:2] == (Geometry(32 << 10, 8, 64), Geometry(48 << 10, 12, 64))
    assert found.ll == Geometry(30 << 20, 15, 64)
    assert found.notes == ()


def test_caches_that_cannot_be_simulated(machine: Path) -> None:
    told(machine, 0, level=3, type="Unified", size="33M", ways_of_associativity=11, coherency_line_size=64)
    found = host()
    assert found.ll == Geometry(11 * 32768 * 64, 11, 64)
    (note,) = found.notes
    assert note.startswith("LL: this machine's has 34603008 bytes in 49152 sets; simulated is ")
    asked = Geometry(1 << 20, 16, 64)
    assert host((None, None, asked)) == (found.i1, found.d1, asked, ())


def test_a_kernel_that_tells_nothing(machine: Path) -> None:
    asked = Geometry(1 << 20, 16, 64)
    assert host().notes == ("the kernel does not tell this machine's caches; common ones are simulated",)
    assert host((asked, None, None)).notes == host().notes
    assert host((asked, asked, asked)) == (asked, asked, asked, ())
