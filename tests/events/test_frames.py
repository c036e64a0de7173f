"""What analyses told, as data frames."""

from __future__ import annotations

import platform

import pytest

import livepro
from livepro.events.told.frames import tables


def test_rows_of_any_result() -> None:
    """Of an analysis without frames of its own: keys and values, or rows."""
    key = {"pid": 7, "image": 0}
    told = {
        "dictionary": [{**key, "result": {"a": 1, "b": 2}}],
        "rows": [{**key, "result": [{"page": 1}, {"page": 2}]}, {**key, "image": 1, "result": [{"page": 3}]}],
        "lists": [{**key, "result": [[1, 2]]}],
        "number": [{**key, "result": 5}],
    }
    assert tables(told) == {
        "dictionary": [{**key, "name": "a", "value": 1}, {**key, "name": "b", "value": 2}],
        "rows": [{**key, "page": 1}, {**key, "page": 2}, {"pid": 7, "image": 1, "page": 3}],
        "lists": [{**key, "column 0": 1, "column 1": 2}],
        "number": [{**key, "value": 5}],
    }


def test_rows_of_intervals() -> None:
    thread = {"thread": 1, "tid": 8, "values": {"loads": [3, 4], "stores": [0, 1]}}
    told = {"mine": [{"pid": 7, "image": 0, "result": {}, "intervals": [thread]}]}
    key = {"pid": 7, "image": 0, "thread": 1, "tid": 8}
    assert tables(told)["mine.intervals"] == [
        {**key, "interval": 0, "loads": 3, "stores": 0},
        {**key, "interval": 1, "loads": 4, "stores": 1},
    ]


def test_frames_of_a_run() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("the step engine would take minutes")
    for package in ("numba", "pandas"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    result = livepro.run(["true"], analyses=["cachesim", "mica", "strides"], interval_size=50_000)
    frames = result.to_pandas()
    assert {"threads", "simd", "itypes", "blocks"} < set(frames)
    (simulated,) = result.analyses["cachesim"]
    (mica,) = result.analyses["mica"]
    instructions = result.instructions
    for event, total in simulated["result"]["totals"].items():
        assert frames["cachesim"][event].sum() == frames["cachesim.lines"][event].sum() == total
    assert frames["cachesim"]["Ir"].sum() == instructions
    misses = frames["cachesim.intervals"]["D1mr"]
    assert len(misses) == -(-instructions // 50_000)
    assert misses.sum() == simulated["result"]["totals"]["D1mr"]
    assert frames["mica"]["instructions"].tolist() == [instructions]
    assert frames["mica"]["itypes: mem_read"].tolist() == [
        mica["result"]["total"]["values"]["itypes"][0] / mica["result"]["total"]["events"]
    ]
    assert frames["mica.functions"]["events"].sum() == mica["result"]["total"]["events"]
    assert frames["strides"]["value"].sum() > 1000
