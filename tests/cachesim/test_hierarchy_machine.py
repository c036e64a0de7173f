"""Machines as TOML files describe them, and what is said of those that cannot be."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from livepro.cachesim import geometry
from livepro.cachesim.geometry import Geometry
from livepro.cachesim.hierarchy.machine import machine, read, ready
from livepro.errors import LiveproError

GOOD: dict[str, Any] = {
    "line": 64,
    "cache": [
        {"name": "L1I", "holds": "instructions", "size": "32K", "ways": 8, "next": "L2"},
        {"name": "L1D", "holds": "data", "size": "48K", "ways": 12, "next": "L2", "prefetch": "stride"},
        {
            "name": "L2",
            "holds": "both",
            "size": 1 << 20,
            "ways": "full",
            "inclusion": "inclusive",
            "shared": True,
        },
    ],
    "tlb": [{"name": "DTLB", "holds": "data", "entries": 64, "ways": 4, "page": "2M"}],
}


def test_a_description() -> None:
    found = read(GOOD, "here/mine.toml")
    assert (found.name, found.line, found.heads) == ("mine", 64, (0, 1, -1, 3))
    assert [(level.sets, level.ways, level.next) for level in found.levels] == [
        (64, 8, 2),
        (64, 12, 2),
        (1, 16384, -1),
        (16, 4, -1),
    ]
    assert [str(level) for level in found.levels] == [
        "32 KiB, 8-way, lru, of each thread",
        "48 KiB, 12-way, lru, of each thread, stride prefetcher",
        "1 MiB, fully associative, lru, shared, inclusive",
        "64 entries, pages of 2 MiB, 4-way, lru, of each thread",
    ]


@pytest.mark.parametrize("name", ready())
def test_ready_machines(name: str) -> None:
    found = machine(name)
    assert all(head >= 0 for head in found.heads)
    assert sum(not level.tlb for level in found.levels) == 4


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [
        (1, "Data", Geometry(48 << 10, 12, 64)),
        (1, "Instruction", Geometry(32 << 10, 8, 64)),
        (2, "Unified", Geometry(1 << 20, 16, 64)),
        (3, "Unified", Geometry(33 << 20, 11, 64)),
    ]
    monkeypatch.setattr("livepro.cachesim.hierarchy.machine.caches_of_this_machine", lambda: told)
    found = machine("host")
    assert [level.name for level in found.levels] == ["L1D", "L1I", "L2", "L3"]
    assert [level.next for level in found.levels] == [2, 2, 3, -1]
    assert [level.shared for level in found.levels] == [False, False, False, True]
    assert found.levels[3].sets == 49152  # no power of two, and none is needed
    monkeypatch.undo()
    monkeypatch.setattr(geometry, "_CPU", tmp_path)
    with pytest.raises(LiveproError, match="does not tell") as error:
        machine("host")
    assert "zen4" in error.value.remedy


@pytest.mark.parametrize(
    ("entry", "change", "cause", "remedy"),
    [
        ("", {"line": 48}, "a line of 48 bytes is not possible", "power of two"),
        ("", {"caches": []}, "'caches' is unknown here", "Known are name, line, coherence, cache, tlb"),
        ("", {"cache": []}, "no cache holds instructions", "[[cache]]"),
        ("", {"cache": {"name": "L1"}}, "'cache' is no list of tables", "[[cache]]"),
        ("L1I", {"name": "L 1"}, "'L 1' is no name", "L1D"),
        ("L1I", {"name": "L1D"}, "there are two of the name L1D", "differently"),
        ("L1I", {"size": "32X"}, "L1I, size: '32X' is no size", "32K"),
        ("L1I", {"size": None}, "L1I, size: it is missing", "32K"),
        ("L1I", {"size": 100}, "100 bytes are not a multiple of lines of 64", "32K"),
        ("L1I", {"ways": 7}, "512 lines cannot be divided into sets of 7", "full"),
        ("L1I", {"ways": None}, "it has no ways", "ways = 8"),
        ("L1I", {"ways": 0}, "ways = 0 is no whole number above 0", "ways = 8"),
        ("L1D", {"policy": "plru"}, "a tree of 12 ways is not possible", "power of two"),
        ("L1D", {"policy": "mru"}, "policy = 'mru' is unknown", "lru, plru, fifo, random, srrip"),
        ("L1D", {"holds": None}, "it does not say what it holds", "instructions, data, both"),
        ("L1D", {"next": "L3"}, "there is no 'L3' to be next", "L1I, L1D, L2, DTLB, memory"),
        ("L1D", {"next": "DTLB"}, "DTLB is no cache", "next"),
        ("DTLB", {"next": "L2"}, "L2 is no TLB of pages of 2097152 bytes", "next"),
        ("L2", {"next": "L2"}, "L2 comes after itself", "memory"),
        ("L2", {"holds": "data"}, "L2 does not hold instructions", "both"),
        ("L1D", {"shared": True, "next": "memory"}, None, None),
        ("L2", {"shared": 1}, "shared = 1 is neither true nor false", "true"),
        ("L1D", {"inclusion": "inclusive"}, "no cache comes before it, so it is not inclusive", "out"),
        ("L2", {"write": "through"}, "only a first-level cache can write through", "back"),
        ("L2", {"prefetch": "stride"}, "strides are seen by a first-level data cache only", "next-line"),
        ("L1I", {"next": "memory", "holds": "both"}, "L1I and L1D both are first for data", "`next`"),
        ("L1I", {"policies": "lru"}, "'policies' is unknown here", "policy"),
        ("DTLB", {"page": 3000}, "a page of 3000 bytes is not possible", "4K"),
        ("DTLB", {"size": 3000}, "'size' is unknown here", "entries"),
    ],
)
def test_what_is_wrong_is_told(
    entry: str, change: dict[str, Any], cause: str | None, remedy: str | None
) -> None:
    data = copy.deepcopy(GOOD)
    into = next((e for e in (*data["cache"], *data["tlb"]) if e["name"] == entry), data)
    into.update(change)
    for key in [key for key, value in change.items() if value is None]:
        del into[key]
    if cause is None:
        read(data, "mine.toml")
        return
    with pytest.raises(LiveproError) as error:
        read(data, "mine.toml")
    assert str(error.value).startswith("mine.toml")
    assert cause in str(error.value)
    assert remedy is not None
    assert remedy in error.value.remedy


def test_a_private_cache_behind_a_shared_one() -> None:
    data = copy.deepcopy(GOOD)
    data["cache"][1]["shared"], data["cache"][2]["shared"] = True, False
    with pytest.raises(LiveproError, match="L2, behind L1D, is not shared"):
        read(data, "mine.toml")


def test_exclusive_behind_one_that_writes_through() -> None:
    data = copy.deepcopy(GOOD)
    data["cache"][1]["write"], data["cache"][2]["inclusion"] = "through", "exclusive"
    with pytest.raises(LiveproError, match="an exclusive cache cannot follow"):
        read(data, "mine.toml")


def test_files(tmp_path: Path) -> None:
    with pytest.raises(LiveproError, match="There is no machine 'zen9'") as error:
        machine("zen9")
    assert "apple-m1, neoverse-n1, skylake-x, zen4, host" in error.value.remedy
    with pytest.raises(LiveproError, match=r"none\.toml cannot be read: No such file"):
        machine(str(tmp_path / "none.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text("[[cache]\n")
    with pytest.raises(LiveproError, match=r"broken\.toml is no TOML: .*line 1"):
        machine(str(broken))
    with pytest.raises(LiveproError, match=r"it has no \[\[cache\]\]"):
        read({}, "mine.toml")
