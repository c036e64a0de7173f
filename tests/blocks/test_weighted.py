"""Blocks of another instruction set, weighted by source lines."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from blocks.samples import cross_gcc

from livepro.blocks import files
from livepro.blocks.rows import BlockRow, weight
from livepro.blocks.suite.weighted import Executions, LeftOut, by_line, weighted
from livepro.cli.main import main

ROW = BlockRow(
    "90" * 2, "x86_64", 2, 2, 5, None, None, "exact", "f", 0, "m", 0, "", 0, "b/O1", "", False, 0, "", 0
)
A, B, C, D = (("s.c", n) for n in range(1, 5))

SOURCE = """\
#include <stdio.h>
static volatile unsigned x = 1;
__attribute__((noinline)) void spin(int n) {
    for (int i = 0; i < n; i++)
        x = x * 3 + 1;
}
__attribute__((noinline)) void never(void) {
    x = x + 100;
}
int main(int argc, char **argv) {
    for (int i = 0; i < 7; i++) {
        spin(100);
    }
    if (argc > 1)
        never();
    printf("%u\\n", x);
    return 0;
}
"""

MANIFEST = """
[suite]
name = "lines"
build = "{cc} {flags} -o {program} {sources}"
own-code-only = true
[variants]
O1 = "-O1 -g"
[targets.x86_64]
cc = "gcc"
[targets.aarch64]
cc = "aarch64-linux-gnu-gcc"
weights = "lines"
[[benchmarks]]
name = "k"
sources = ["k.c"]
"""


def test_a_line_has_the_executions_of_its_most_executed_block() -> None:
    rows = [
        replace(ROW, occurrences=1),
        replace(ROW, occurrences=900, loop="self"),
        replace(ROW, occurrences=30, loop="inner"),
        replace(ROW, occurrences=4),
    ]
    found = by_line(rows, [[A, B], [B, A], [B], [A, C]])
    assert found == {A: Executions(900, 4), B: Executions(900, 1), C: Executions(None, 4)}
    assert [found[A].of(loop) for loop in ("self", "inner", "")] == [900, 900, 4]
    assert [found[C].of(loop) for loop in ("self", "")] == [4, 4]


def test_blocks_are_weighted_by_their_first_line_and_the_others_are_counted() -> None:
    measured = {A: Executions(900, 4), B: Executions(None, 3)}
    blocks = [
        replace(ROW, isa="aarch64", occurrences=None, method="static", loop=loop, offset=n)
        for n, loop in enumerate(["self", "", "", "", ""])
    ]
    rows, left = weighted(blocks, [[A, B], [A], [B, A], [], [D, A]], measured)
    assert [(r.offset, r.occurrences, r.line, r.method) for r in rows] == [
        (0, 900, 1, "lines"),
        (1, 4, 1, "lines"),
        (2, 3, 2, "lines"),
    ]
    assert left == LeftOut(0, 1, 1)
    assert sum(r.share or 0 for r in rows) == 1
    assert weight(rows[0]) == 900 * 2


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "k.c").write_text(SOURCE)
    path = tmp_path / "lines.toml"
    path.write_text(MANIFEST)
    return path


def test_a_data_set_of_a_program_that_is_only_built(
    manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cross_gcc()
    which = shutil.which  # neither an emulator nor a static program is needed
    monkeypatch.setattr(shutil, "which", lambda name: None if "qemu" in name else which(name))
    into = tmp_path / "set"
    command = ["blocks", "suite", str(manifest), "-o", str(into), "--jobs", "1", "-q"]
    assert main([*command, "--isa", "x86_64,aarch64"]) == 0
    rows = files.read(into)
    other = [r for r in rows if r.isa == "aarch64"]
    assert {r.method for r in other} == {"lines"}
    assert {r.method for r in rows if r.isa == "x86_64"} == {"exact"}
    assert {"spin", "main"} <= {r.function for r in other}
    assert "never" not in {r.function for r in other}
    (spin,) = (r for r in other if r.function == "spin" and r.loop == "self")
    assert (spin.occurrences, Path(spin.file).name) == (7 * 100, "k.c")
    (entry,) = (r for r in other if r.function == "spin" and r.offset == 0)
    assert entry.occurrences == 7
    (call,) = (r for r in other if r.function == "main" and r.call and r.line == 12)
    assert call.occurrences == 7
    document = json.loads((into / "dataset.json").read_text())
    assert document["weights"] == {"x86_64": "run", "aarch64": "lines"}
    left = document["left_out"]["aarch64/k@O1"]
    assert left["not_executed"] >= 1  # `never`
    assert left["functions"] > 0  # those of the C library's start
    readme = (into / "README.md").read_text()
    assert "The programs for aarch64 were built, not executed" in readme
    assert f"{left['not_executed']} whose line was not executed" in readme
    assert main(["blocks", "verify", str(into), "--jobs", "1", "-q"]) == 0
    assert "0 gone, 0 new, 0 counted otherwise" in capsys.readouterr().out


def test_what_source_lines_need_is_told(
    manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cross_gcc()
    command = ["blocks", "suite", str(manifest), "-o", str(tmp_path / "set"), "--jobs", "1", "--isa"]
    assert main([*command, "aarch64"]) == 2
    assert "--isa x86_64,aarch64" in capsys.readouterr().err
    assert main([*command, "x86_64,aarch64", "--method", "sampled"]) == 2
    assert "by exact counts" in capsys.readouterr().err
    manifest.write_text(MANIFEST.replace("-O1 -g", "-O1"))
    assert main([*command, "x86_64,aarch64"]) == 1
    assert "no source lines. Build with -g." in capsys.readouterr().err
    manifest.write_text(MANIFEST.replace("return 0", "return 1"))
    (tmp_path / "k.c").write_text(SOURCE.replace("return 0", "return 1"))
    assert main([*command, "x86_64,aarch64"]) == 1
    assert "k@O1 (aarch64) failed: its run for x86_64, whose source lines weigh it" in capsys.readouterr().err
    manifest.write_text(MANIFEST.replace('"lines"\n[[', '"line"\n[['))
    assert main([*command, "x86_64,aarch64"]) == 2
    assert "[targets.aarch64] weights: must be run or lines" in capsys.readouterr().err
