from __future__ import annotations

import sys
from dataclasses import replace

import fake_runs
import pytest

from livepro.analyses.dataframe import to_pandas
from livepro.errors import LiveproError


def test_frames_hold_the_run() -> None:
    frames = to_pandas(fake_runs.several())
    threads = frames["threads"]
    assert list(threads["tid"]) == [100, 101, 101, 102]
    assert list(threads["image"]) == [0, 0, 1, 1]
    assert list(threads["instructions"]) == [3041, 10, 1000, 7]
    assert list(threads["rep_iterations"]) == [50, 0, 0, 0]
    simd = frames["simd"]
    assert list(zip(simd["tid"], simd["set"], simd["width"], simd["scalar"], simd["count"], strict=True)) == [
        (100, "SSE1f", 128, False, 1000),
        (100, "SSE1f", 32, True, 10),
        (100, "AVX512F", 512, False, 1),
        (101, "AVX512F", 512, False, 500),
    ]
    assert set(simd["type"]) == {"ARITHMETIC"}
    itypes = frames["itypes"].query("tid == 100 and count > 0")
    assert dict(zip(itypes["group"], itypes["count"], strict=True)) == {
        "mem_read": 20,
        "mem_write": 10,
        "control": 1010,
        "arithmetic": 1000,
        "string": 10,
        "sse": 1011,
    }
    blocks = frames["blocks"]
    assert list(blocks["id"]) == [1, 2, 3, 1, 1, 2]
    assert list(blocks["instructions"]) == [3000, 40, 1, 10, 1000, 7]
    assert list(blocks["entries"]) == [1000, 10, 0, 5, 500, 7]
    assert blocks["address"][2] == 0x7FFF_0000_0F00
    assert list(blocks["function"])[3:5] == ["main", "spin"]


def test_nothing_executed_gives_empty_frames_with_columns() -> None:
    full = to_pandas(fake_runs.several())
    empty = to_pandas(replace(fake_runs.single(), processes=()))
    assert {name: list(frame.columns) for name, frame in empty.items()} == {
        name: list(frame.columns) for name, frame in full.items()
    }
    assert all(len(frame) == 0 for frame in empty.values())


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LiveproError, match=r"pip install 'livepro\[pandas\]'"):
        to_pandas(fake_runs.single())
