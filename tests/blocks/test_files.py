"""What blocks are written to: read back, and read by those it is for."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from blocks.samples import CROSS, FREESTANDING, build, cross_gcc, tool

from livepro import isa
from livepro.blocks import files
from livepro.blocks.code import open_code
from livepro.blocks.files import osaca, parquet, uica
from livepro.blocks.rows import COLUMNS, BlockRow, Filters, facts, instructions, merged, with_shares
from livepro.blocks.static import file_rows
from livepro.errors import LiveproError

LOOP = {
    "x86_64": """
        .globl _start
    _start: vmovupd (%rdi,%rax,8), %ymm0
        vfmadd231pd 16(%rsi,%rax,8), %ymm1, %ymm0
        vmovupd %ymm0, (%rdi,%rax,8)
        addq $4, %rax
        cmpq %rax, %rdx
        jne _start
        call _start
        """,
    "aarch64": """
        .globl _start
    _start: ldr q0, [x0], #16
        fmla v1.2d, v0.2d, v2.2d
        str q1, [x1], #16
        subs x2, x2, #2
        b.ne _start
        bl _start
        """,
}


def rows_of(tmp_path: Path, machine: str) -> list[BlockRow]:
    """The loop and the call behind it, as if they had run 900 times and 100 times."""
    compiler = "gcc" if machine == "x86_64" else cross_gcc()
    into = tmp_path / machine
    into.mkdir()
    file = open_code(str(build(into, LOOP[machine], *FREESTANDING, compiler=compiler)))
    found = list(file_rows(file, file.functions))
    counted = [replace(row, occurrences=n, method="exact") for row, n in zip(found, (900, 100), strict=True)]
    return with_shares(counted)


@pytest.fixture(params=["x86_64", "aarch64"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> list[BlockRow]:
    return rows_of(tmp_path, request.param)


def test_what_a_row_says(rows: list[BlockRow]) -> None:
    loop, call = rows
    assert (loop.loop, loop.call, loop.share) == ("self", False, 0.9)
    assert (call.loop, call.call, call.share) == ("", True, 0.1)
    executed = 900 * loop.length + 100 * call.length
    assert loop.time_share == 900 * loop.length / executed
    assert (loop.simd, loop.simd_width, loop.memory) in (("AVX FMA", 256, 3), ("NEON", 128, 2))
    assert (loop.name, loop.offset, loop.isa) == ("_start+0x0", 0, loop.isa)


def test_tables_hold_every_column(rows: list[BlockRow], tmp_path: Path) -> None:
    table = list(csv.DictReader(io.StringIO(files.text(rows, "csv"))))
    assert tuple(table[0]) == COLUMNS
    assert [int(line["occurrences"]) for line in table] == [900, 100]
    assert [BlockRow(**values) for values in json.loads(files.text(rows, "json"))] == rows
    files.write(rows, tmp_path / "t.parquet", "parquet")
    assert parquet.read(tmp_path / "t.parquet") == rows
    for _ in range(2):  # the second takes the place of the first
        files.write(rows, tmp_path / "t.sqlite", "sqlite")
    with sqlite3.connect(tmp_path / "t.sqlite") as database:
        found = database.execute(f"SELECT {', '.join(COLUMNS)} FROM blocks").fetchall()
    database.close()
    assert [BlockRow(*values) for values in found] == rows


def test_bhive_lines(rows: list[BlockRow]) -> None:
    assert files.text(rows, "bhive") == f"{rows[0].code},0.90000000\n{rows[1].code},0.10000000\n"


def test_llvm_mca_reads_its_regions(rows: list[BlockRow], tmp_path: Path) -> None:
    mca = tool("llvm-mca", "llvm")
    files.write(rows[:1], tmp_path / "t.s", "llvm-mca")
    target = ["-mtriple=aarch64", "-mcpu=neoverse-n1"] if rows[0].isa == "aarch64" else ["-mcpu=skylake"]
    done = subprocess.run([mca, *target, tmp_path / "t.s"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Code Region - _start+0x0" in done.stdout
    assert f"Instructions:      {100 * rows[0].length}\n" in done.stdout


def test_uica_objects_hold_the_block(rows: list[BlockRow], tmp_path: Path) -> None:
    row = rows[0]
    objdump = tool("objdump" if row.isa == "x86_64" else f"{CROSS}objdump", "binutils")
    files.write(rows, tmp_path / "objects", "uica")
    names = sorted(p.name for p in (tmp_path / "objects").iterdir())
    assert names == ["00000-_start+0x0.o", f"00001-_start+0x{rows[1].offset:x}.o"]
    path = tmp_path / "objects" / names[0]
    text = subprocess.run([objdump, "-d", "-t", path], capture_output=True, text=True, check=True)
    assert "<_start+0x0>:" in text.stdout
    assert text.stderr == ""
    raw = tmp_path / "raw"
    copy = "objcopy" if row.isa == "x86_64" else f"{CROSS}objcopy"
    subprocess.run([copy, "-O", "binary", "-j", ".text", path, raw], check=True)
    assert raw.read_bytes() == row.bytes
    assert uica.one(row) == path.read_bytes()


def test_osaca_markers_are_decimal(rows: list[BlockRow]) -> None:
    text = osaca.text(rows[:1], "osaca")
    assert ".byte 100,103,144" in text or ".byte 213,3,32,31" in text
    assert text.count("111") == text.count("222") == 1


def test_a_file_for_each_block_where_a_directory_is_given(rows: list[BlockRow], tmp_path: Path) -> None:
    (tmp_path / "each").mkdir()
    files.write(rows, tmp_path / "each", "llvm-mca")
    assert len(list((tmp_path / "each").glob("*.s"))) == 2


def test_assembler_text_means_the_same_instructions(tmp_path: Path) -> None:
    """The assembler may choose another encoding of an instruction, never another instruction."""
    x86 = isa.for_machine("x86_64")
    file = open_code("/usr/bin/gzip")
    codes = {
        code
        for row in file_rows(file, file.functions)
        for _, code in instructions(x86, row.bytes, row.address)
        if not facts(x86, code).call
    }
    flows = [c for c in sorted(codes) if x86.decode_block(c, 0).target is None]
    assert len(flows) > 3000
    text = "".join(f"{x86.assembly(code, 0)}\n" for code in flows)
    (tmp_path / "t.s").write_text(text)
    subprocess.run(["as", "-o", tmp_path / "t.o", tmp_path / "t.s"], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", tmp_path / "t.o", tmp_path / "t"], check=True)
    again = [code for _, code in instructions(x86, (tmp_path / "t").read_bytes())]
    assert len(again) == len(flows)
    differ = [
        (old.hex(), new.hex())
        for old, new in zip(flows, again, strict=True)
        if x86.disassemble(old, 0) != x86.disassemble(new, 0)
    ]
    assert differ == []


def test_filters_and_equal_blocks(rows: list[BlockRow]) -> None:
    assert [r.offset for r in rows if Filters(min_share=0.5).keep(r)] == [0]
    assert [r.offset for r in rows if Filters(loops_only=True).keep(r)] == [0]
    assert [r.call for r in rows if Filters(no_calls=True).keep(r)] == [False]
    assert all(Filters(modules=("built",)).keep(r) for r in rows)
    assert not any(Filters(modules=("libc",)).keep(r) for r in rows)
    assert Filters(modules=("libc",)).keep(replace(rows[0], module="/lib/libc.so.6"))
    twice = merged([*rows, replace(rows[0], function="other", occurrences=50, share=0.05)])
    assert [(r.function, r.occurrences, r.merged) for r in twice] == [
        ("_start", 950, 2),
        ("_start", 100, 1),
    ]


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(LiveproError, match="does not tell the format"):
        files.format_of("blocks.xyz")
    with pytest.raises(LiveproError, match="not for standard output"):
        files.text([], "parquet")
    (tmp_path / "no.sqlite").write_text("something else that is long enough to be looked at" * 20)
    with pytest.raises(LiveproError, match="not a database"):
        files.write([], tmp_path / "no.sqlite", "sqlite")
    with pytest.raises(LiveproError, match="no table of blocks"):
        parquet.read(tmp_path / "no.sqlite")
    with pytest.raises(LiveproError, match="cannot be written"):
        files.write([], tmp_path / "missing" / "t.csv", "csv")
