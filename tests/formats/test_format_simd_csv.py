"""The SIMD profile: its columns, quoting, and the way back."""

from __future__ import annotations

import io
from pathlib import Path

import model_builders as mb
import pytest

from livepro.analyses import simd
from livepro.errors import LiveproError
from livepro.formats import simd_csv
from livepro.formats.simd_csv import CsvRow

MASKED = mb.simd("VADDPS", set="AVX512F", masked=True, description='add, "masked" or not')
WHOLE = mb.simd("VADDPS", set="AVX512F", width=512, description='add, "masked" or not')
BLOCKS = mb.table((0x1000, [MASKED, mb.simd("ADDPS"), mb.RET]))

HEADER = "thread,set,opcode,mnemonic,category,extension,type,counter,description\n"


def test_written_to_the_letter_and_read_back(tmp_path: Path) -> None:
    out = io.StringIO()
    simd_csv.write(out, simd.thread_rows(BLOCKS, mb.thread([3], partial=[(0, 1, 1)], tid=17)))
    assert out.getvalue() == (
        HEADER + '17,AVX512F,VADDPS,vaddps,SSE,SSE,ARITHMETIC,4,"add, ""masked"" or not"\n'
        "17,SSE1f,ADDPS,addps,SSE,SSE,ARITHMETIC,3,addps of packed floats\n"
    )
    (tmp_path / "simd.csv").write_text(out.getvalue())
    assert simd_csv.read(str(tmp_path / "simd.csv")) == [
        CsvRow(17, "AVX512F", "VADDPS", "vaddps", "SSE", "SSE", "ARITHMETIC", 4, 'add, "masked" or not'),
        CsvRow(17, "SSE1f", "ADDPS", "addps", "SSE", "SSE", "ARITHMETIC", 3, "addps of packed floats"),
    ]


def test_what_has_no_column_does_not_split_a_line() -> None:
    table = mb.table((0x1000, [MASKED, mb.instruction("VADDPS", 6, category="SSE", simd=WHOLE.simd)]))
    rows = simd.thread_rows(table, mb.thread([5]))
    assert [r.count for r in rows] == [5, 5]
    out = io.StringIO()
    simd_csv.write(out, rows)
    assert out.getvalue().splitlines()[1:] == [
        '100,AVX512F,VADDPS,vaddps,SSE,SSE,ARITHMETIC,10,"add, ""masked"" or not"'
    ]


def test_no_simd_leaves_the_header() -> None:
    out = io.StringIO()
    simd_csv.write(out, [])
    assert out.getvalue() == HEADER


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "is no SIMD profile"),
        ("a,b,c\n", "is no SIMD profile"),
        (HEADER + "1,2\n", ":2: the line does not have the columns"),
        (HEADER + "x,a,b,c,d,e,f,1,g\n", ":2: the line does not have the columns"),
        (HEADER + "1,a,b,c,d,e,f,x,g\n", ":2: the line does not have the columns"),
    ],
)
def test_what_is_no_profile(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(LiveproError) as error:
        simd_csv.read(str(tmp_path / "f.csv"))
    assert cause in error.value.cause
