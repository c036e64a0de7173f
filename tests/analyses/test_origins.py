"""Rows by origin and by method, and runs with only some origins left."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import model_builders as mb

from livepro.analyses import hot, origins, simd
from livepro.analyses.document import to_document
from livepro.formats import json_report, simd_csv
from livepro.model import BlockTable, CodeLabel, Origin, RunResult
from livepro.ui.summary import print_summary

ADDPS = mb.simd("ADDPS")
VADDPS = mb.simd("VADDPS", set="AVX", width=256, extension="AVX")
METHOD, OTHER = "Sum.all([F)V", "java.lang.Object.<init>()V"


def table() -> BlockTable:
    """Blocks of every origin; C1 and C2 have code of one method, C2 of another."""
    blocks = mb.table(
        (0x1000, [ADDPS, mb.RET], "memcpy", "/lib/libc.so.6"),
        (0x2000, [mb.ADD, mb.RET], "JVM_DoIt", "/jdk/libjvm.so"),
        (0x3000, [mb.ADD, mb.ADD, mb.RET], "iadd", "[anon]"),
        (0x4000, [ADDPS, mb.RET], METHOD, "[anon]"),
        (0x5000, [VADDPS, VADDPS, mb.JNZ], METHOD, "[anon]"),
        (0x5100, [mb.RET], METHOD, "[anon]"),
        (0x6000, [VADDPS, mb.RET], OTHER, "[anon]"),
    )
    labels = (
        CodeLabel(Origin.NATIVE),
        CodeLabel(Origin.VM),
        CodeLabel(Origin.INTERPRETER, 0, "iadd"),
        CodeLabel(Origin.C1, 3, METHOD),
        CodeLabel(Origin.C2, 4, METHOD),
        CodeLabel(Origin.C2, 4, METHOD),
        CodeLabel(Origin.C2, 4, OTHER),
    )
    return replace(blocks, label=labels)


THREADS = (
    mb.thread([1, 2, 3, 4, 5, 6, 7], partial=[(4, 2, 10), (2, 1, 1)], rep_iterations=9),
    mb.thread([10, 0, 0, 0, 0, 0, 0], tid=101, name="other"),
)


def run() -> RunResult:
    return mb.run(
        mb.process(table(), *THREADS), mb.process(mb.table((0x10, [mb.ADD])), mb.thread([3]), pid=200)
    )


def test_rows_by_origin_sum_to_the_whole() -> None:
    rows = origins.origins(table(), *THREADS)
    assert [(r.origin, r.tier, r.instructions, r.simd, r.blocks) for r in rows] == [
        ("C2", 4, 5 * 3 + 20 + 6 + 7 * 2, 5 * 2 + 20 + 7, 3),
        ("native", 0, 22, 11, 1),
        ("interpreter", 0, 10, 0, 1),
        ("C1", 3, 8, 4, 1),
        ("VM", 0, 4, 0, 1),
    ]
    assert sum(r.instructions for r in rows) == int(hot.instructions(table(), *THREADS).sum())
    for thread in THREADS:
        own = origins.origins(table(), thread)
        assert sum(r.instructions for r in own) == thread.instructions(table())
        assert sum(r.simd for r in own) == simd.total(simd.thread_rows(table(), thread))


def test_rows_by_method() -> None:
    rows = origins.methods(table(), *THREADS)
    assert [(r.method, r.origin, r.tier, r.instructions, r.simd, r.blocks) for r in rows] == [
        (METHOD, "C2", 4, 41, 30, 2),
        (OTHER, "C2", 4, 14, 7, 1),
        (METHOD, "C1", 3, 8, 4, 1),
    ]
    assert len(origins.methods(table(), *THREADS, limit=2)) == 2


def test_code_of_a_process_without_labels_is_native() -> None:
    (row,) = origins.origins(mb.table((0x10, [mb.ADD])), mb.thread([3]))
    assert (row.origin, row.instructions) == ("native", 3)


def test_only_what_a_compiler_made() -> None:
    found = origins.only(run(), origins.compiled, "compiled code")
    assert found.instructions == 41 + 14 + 8
    assert found.warnings == (
        "Only compiled code is counted here; rep iterations are not known by block and left out.",
    )
    assert [t.rep_iterations for p in found.processes for t in p.threads] == [0, 0, 0]
    (c1,) = origins.origins(
        table(), *origins.only(run(), origins.tier_wanted(["c1"]), "C1").processes[0].threads
    )
    assert (c1.origin, c1.instructions) == ("C1", 8)
    assert origins.only(run(), origins.tier_wanted(["c2", "3"]), "").instructions == found.instructions
    assert origins.only(run(), origins.tier_wanted(["2"]), "").instructions == 0


def test_only_keeps_of_intervals_what_is_of_the_code() -> None:
    thread = mb.thread([1, 0, 0, 1, 0, 0, 0], intervals=[mb.interval({0: 2, 3: 1}), mb.interval({3: 1})])
    one = mb.run(mb.process(table(), thread))
    (found,) = origins.only(one, origins.compiled, "").processes[0].threads
    assert [(i.instructions, i.rows.tolist()) for i in found.intervals] == [(1, [3]), (1, [3])]


def test_the_document_has_rows_by_origin(tmp_path: Path) -> None:
    name = str(tmp_path / "run.json")
    json_report.write(name, to_document(run()))
    document = json_report.read(name)  # which checks its shape
    first, second = document["processes"]
    assert sum(row["instructions"] for row in first["origins"]) == first["instructions"]
    assert first["origins"][0]["simd_sets"] == [{"set": "AVX", "width": 256, "scalar": False, "count": 37}]
    assert [m["method"] for m in first["methods"]] == [METHOD, OTHER, METHOD]
    assert (second["origins"], second["methods"]) == ([], [])
    for thread in first["threads"]:
        assert sum(row["instructions"] for row in thread["origins"]) == thread["instructions"]
        assert sum(row["simd"] for row in thread["origins"]) == sum(row["count"] for row in thread["simd"])


def test_the_profile_has_rows_by_origin_and_method() -> None:
    process = run().processes[0]
    out = io.StringIO()
    simd_csv.write(out, [row for rows in simd.process_rows_by_label(process) for row in rows])
    lines = out.getvalue().splitlines()
    assert lines[0].endswith(",counter,description,origin,tier,method")
    ends = sorted(line.split(",", 7)[7].replace("addps of packed floats", "") for line in lines[1:])
    assert ends == sorted(
        [
            f"30,v,C2,4,{METHOD}",
            f"7,v,C2,4,{OTHER}",
            f"4,,C1,3,{METHOD}",
            "1,,native,0,",
            "10,,native,0,",
        ]
    )


def test_the_summary_tells_code_apart() -> None:
    out = io.StringIO()
    print_summary(run(), out, width=110)
    text = out.getvalue()
    section = text[text.index("Code by origin") :]
    assert "C1 tier 3" in section
    assert section.index(METHOD) < section.index(OTHER)
    plain = io.StringIO()
    print_summary(mb.run(run().processes[1]), plain, width=110)
    assert "Code by origin" not in plain.getvalue()
