"""The JSON report: the keys that were promised, the counts worked out by hand, the way back."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import model_builders as mb
import numpy as np
import pytest

from livepro import __version__
from livepro.analyses import document
from livepro.analyses.document import to_document
from livepro.errors import LiveproError
from livepro.formats import json_report
from livepro.model import RunResult

ADDPS = mb.simd("ADDPS")
BLOCKS = mb.table(
    (0x401000, [ADDPS, mb.FLDCW, mb.JNZ], "main", "/bin/prog"),
    (0x402000, [mb.REP_STOSB, mb.RET], "", "[vdso]"),
)


def result() -> RunResult:
    first = mb.thread([4, 1], partial=[(0, 1, 1)], rep_iterations=9, tid=100, name="prog")
    second = mb.thread([0, 2], rep_iterations=6, tid=101, name="odd \udcff", intervals=[mb.interval({1: 4})])
    return mb.run(
        mb.process(BLOCKS, first, second, exit=None),
        mb.process(BLOCKS, mb.thread([1, 0], tid=102), pid=102, ppid=100),
        interval_size=1000,
        exit=143,
        stats={"stops": np.int64(19), "rate": float("nan"), "caches": ({"size": 1},)},
        warnings=("one thing",),
    )


def test_every_promised_key_and_count() -> None:
    found = to_document(result())
    assert {k: found[k] for k in ("schema", "livepro", "engine", "command", "exit", "wall_seconds")} == {
        "schema": "livepro/1",
        "livepro": __version__,
        "engine": "step",
        "command": ["/bin/prog", "--fast"],
        "exit": 143,
        "wall_seconds": 0.5,
    }
    # 4 * 3 + 1 + 2 = 15, 2 * 2 = 4, and 3 in the second process.
    assert (found["instructions"], found["rep_instructions"], found["rep_iterations"]) == (22, 3, 15)
    assert (found["fldcw"], found["blocks"], found["distinct_rep_instructions"]) == (5, 3, 1)
    assert found["warnings"] == ["one thing"]
    assert found["stats"] == {"stops": 19, "rate": None, "caches": [{"size": 1}]}

    first, second = found["processes"]
    promised = ("pid", "instructions", "rep_instructions", "rep_iterations", "blocks")
    assert [first[k] for k in promised] == [100, 19, 3, 15, 2]
    assert [second[k] for k in promised] == [102, 3, 0, 0, 1]
    assert first["exit"] is None
    assert [m["module"] for m in first["modules"]] == ["/bin/prog", "[vdso]"]
    assert [(f["function"], f["instructions"]) for f in first["hottest_functions"]] == [("main", 13), ("", 6)]
    assert first["hottest_blocks"][1] == {
        "id": 2,
        "address": 0x402000,
        "function": "",
        "module": "[vdso]",
        "offset": 0x2000,
        "length": 2,
        "entries": 3,
        "instructions": 6,
        "inlined": [],
    }

    main, other = first["threads"]
    promised = ("tid", "name", "instructions", "rep_instructions", "rep_iterations", "fldcw")
    assert [main[k] for k in promised] == [100, "prog", 15, 1, 9, 4]
    assert [other[k] for k in promised] == [101, "odd \udcff", 4, 2, 6, 0]
    assert (main["intervals"], other["intervals"]) == (0, 1)
    assert main["simd"] == [
        {
            "set": "SSE1f",
            "mnemonic": "addps",
            "type": "ARITHMETIC",
            "width": 128,
            "count": 5,
            "scalar": False,
            "element": "f32",
            "masked": False,
        }
    ]
    assert other["simd"] == []
    assert main["itypes"]["sse"] == 5


def test_rows_that_differ_in_what_is_left_out_are_one() -> None:
    other = mb.simd("ADDPS", extension="VEX", description="another")
    table = mb.table((0, [ADDPS, mb.instruction("ADDPS", 6, category="SSE", simd=other.simd)]))
    (process,) = to_document(mb.run(mb.process(table, mb.thread([3]))))["processes"]
    assert [(r["mnemonic"], r["count"]) for r in process["threads"][0]["simd"]] == [("addps", 6)]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    name = str(tmp_path / f"run.json{suffix}")
    found = to_document(result())
    json_report.write(name, found)
    assert json_report.read(name) == found


def test_lists_are_limited() -> None:
    table = mb.table(*((i * 16, [mb.RET], f"f{i}", "m") for i in range(100)))
    (process,) = to_document(mb.run(mb.process(table, mb.thread([1] * 100))), hottest=7)["processes"]
    assert len(process["hottest_blocks"]) == len(process["hottest_functions"]) == 7
    assert process["blocks"] == 100


def test_both_sides_name_the_same_schema() -> None:
    assert document.SCHEMA == json_report.SCHEMA == "livepro/1"


def drop(found: dict[str, Any]) -> None:
    del found["processes"][0]["threads"][1]["itypes"]


def mistype(found: dict[str, Any]) -> None:
    found["processes"][1]["pid"] = "102"


def truth(found: dict[str, Any]) -> None:
    found["instructions"] = True


def row(found: dict[str, Any]) -> None:
    del found["processes"][0]["threads"][0]["simd"][0]["width"]


def group(found: dict[str, Any]) -> None:
    found["processes"][0]["threads"][0]["itypes"]["sse"] = 1.5


def listed(found: dict[str, Any]) -> None:
    found["processes"] = {}


def null(found: dict[str, Any]) -> None:
    found["interval_size"] = None


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (drop, "processes[0].threads[1] has no 'itypes'"),
        (mistype, "processes[1].pid is not of type int"),
        (truth, "instructions is not of type int"),
        (row, "processes[0].threads[0].simd[0] has no 'width'"),
        (group, "processes[0].threads[0].itypes.sse is not of type int"),
        (listed, "processes is not a list"),
        (null, "interval_size is not of type int"),
    ],
)
def test_damage_is_located(tmp_path: Path, damage: Any, problem: str) -> None:
    found = copy.deepcopy(to_document(result()))
    damage(found)
    name = str(tmp_path / "f.json")
    Path(name).write_text(json.dumps(found))
    with pytest.raises(LiveproError) as error:
        json_report.read(name)
    assert error.value.cause == f"{name} is no valid report: {problem}."


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{", "is not JSON"),
        ("[]", "is no report of schema livepro/1 (its schema: None)"),
        ('{"schema": "livepro/2"}', "is no report of schema livepro/1 (its schema: 'livepro/2')"),
        ('{"schema": "livepro/1"}', "is no valid report: the top level has no 'livepro'"),
    ],
)
def test_what_is_no_report(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(LiveproError) as error:
        json_report.read(str(tmp_path / "f.json"))
    assert cause in error.value.cause


def test_other_keys_are_no_fault(tmp_path: Path) -> None:
    found = {**to_document(result()), "later": 1}
    json_report.write(str(tmp_path / "f.json"), found)
    assert json_report.read(str(tmp_path / "f.json")) == found
