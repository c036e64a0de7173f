"""SIMD rows and sums against counts worked out by hand."""

from __future__ import annotations

import model_builders as mb

from livepro.analyses import simd
from livepro.analyses.simd import SetWidth, SimdRow
from livepro.model import SimdType

ADDPS = mb.simd("ADDPS")
ADDSS = mb.simd("ADDSS", width=32, scalar=True)
VADDPS = mb.simd("VADDPS", set="AVX512F", extension="AVX512EVEX", width=512, masked=True)
MOVAPS = mb.simd("MOVAPS", type=SimdType.LOAD)
# The same operation in another encoding.
ADDPS_2 = mb.instruction("ADDPS", 6, category="SSE", itypes=("sse",), simd=ADDPS.simd)

BLOCKS = mb.table(
    (0x1000, [ADDPS, mb.ADD, ADDPS_2, mb.JNZ]),
    (0x2000, [VADDPS, ADDSS, MOVAPS, mb.RET]),
)


def test_rows_add_up_encodings_and_blocks() -> None:
    # Block 0 ten times: 20 ADDPS in two encodings; block 1 left three times behind VADDPS, ADDSS; once whole.
    rows = simd.thread_rows(BLOCKS, mb.thread([10, 1], partial=[(1, 2, 3)], tid=7))
    # Equal counts come in order of set, then opcode.
    assert [(r.thread, r.opcode, r.count) for r in rows] == [
        (7, "ADDPS", 20),
        (7, "VADDPS", 4),
        (7, "ADDSS", 4),
        (7, "MOVAPS", 1),
    ]
    assert rows[1] == SimdRow(
        thread=7,
        set="AVX512F",
        mnemonic="vaddps",
        opcode="VADDPS",
        category="SSE",
        extension="AVX512EVEX",
        type=SimdType.ARITHMETIC,
        width=512,
        scalar=False,
        element="f32",
        masked=True,
        count=4,
        description="vaddps of packed floats",
    )


def test_sums() -> None:
    rows = simd.thread_rows(BLOCKS, mb.thread([10, 1]))
    assert simd.total(rows) == 23
    assert simd.by_set(rows) == {"SSE1f": 22, "AVX512F": 1}
    assert simd.by_set_and_width(rows) == {
        SetWidth("SSE1f", 128, False): 21,
        SetWidth("AVX512F", 512, False): 1,
        SetWidth("SSE1f", 32, True): 1,
    }
    assert simd.by_type(rows) == {SimdType.ARITHMETIC: 22, SimdType.LOAD: 1}
    assert simd.share(rows, 44) == 23 / 44
    assert simd.share([], 0) == 0.0


def test_sums_put_the_most_frequent_first() -> None:
    rows = simd.thread_rows(BLOCKS, mb.thread([0, 5], partial=[(1, 1, 20)]))
    assert list(simd.by_set(rows).items()) == [("AVX512F", 25), ("SSE1f", 10)]


def test_process_rows_are_per_thread() -> None:
    process = mb.process(BLOCKS, mb.thread([1, 0], tid=1), mb.thread([0, 0], tid=2), mb.thread([0, 1], tid=3))
    found = simd.process_rows(process)
    assert [[(r.thread, r.opcode, r.count) for r in rows] for rows in found] == [
        [(1, "ADDPS", 2)],
        [],
        [(3, "VADDPS", 1), (3, "ADDSS", 1), (3, "MOVAPS", 1)],
    ]


def test_a_table_without_simd() -> None:
    assert simd.thread_rows(mb.table((0, [mb.ADD])), mb.thread([4])) == []
