"""Blocks of runs: counts that are proved, that Valgrind confirms, that sum to the run's."""

from __future__ import annotations

import csv
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from blocks.samples import FREESTANDING, build, tool

import livepro
from fixtures import Builder, freestanding
from livepro.blocks.exact import run_rows
from livepro.blocks.lines import with_lines
from livepro.cli.main import main

NATIVE = platform.machine()


def callgrind(program: Path, into: Path) -> Counter[int]:
    """Executions of each instruction by address, as Valgrind counts them."""
    valgrind = tool("valgrind", "valgrind")
    out = into / "callgrind.out"
    options = ["--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}"]
    subprocess.run([valgrind, *options, program], check=False, capture_output=True)
    counts: Counter[int] = Counter()
    skip = False
    address = 0
    for line in out.read_text().splitlines():
        if line.startswith("calls="):
            skip = True  # the next line is what the callee cost
            continue
        match = re.match(r"^(0x[0-9a-f]+|\+\d+|-\d+|\*) (?:\+?-?\d+|\*)(?: (\d+))?$", line)
        if not match:
            continue
        place = match[1]
        # Positions may be relative to the line before ("Callgrind Format Specification").
        address = (
            int(place, 16) if place.startswith("0x") else address if place == "*" else address + int(place)
        )
        if not skip and match[2]:
            counts[address] += int(match[2])
        skip = False
    return counts


@pytest.mark.skipif(NATIVE != "x86_64", reason="Valgrind is the referee of x86-64 programs here")
@pytest.mark.parametrize("name", ["free_sort", "free_matrix", "free_interpreter", "free_recursion"])
def test_valgrind_counts_every_block_alike(name: str, builder: Builder, tmp_path: Path) -> None:
    (fixture,) = (f for f in freestanding() if f.name == name)
    program = builder.freestanding(fixture, "-O2")
    expected = callgrind(program, tmp_path)
    rows = run_rows(livepro.run([str(program)]))
    # Callgrind does not write down the block that the program ends in: its exit is a system call.
    last = [r for r in rows if r.address not in expected]
    assert {r.occurrences for r in last} == {1}
    assert sum("0f05" in r.code for r in last) == 1
    assert len(last) < 3
    assert len(rows) > 10
    counted = {r.address: r.occurrences for r in rows if r not in last}
    assert counted == {address: expected[address] for address in counted}
    covered = {a for r in rows for a in range(r.address, r.address + r.size)}
    assert [hex(a) for a in expected if a not in covered] == []


LOOPS = """
    .globl _start
    .type _start, @function
_start:
    mov $1000, %ecx
1:  mov $10, %edx
2:  dec %edx
    jnz 2b
    dec %ecx
    jnz 1b
    lea table(%rip), %rax
    jmp *(%rax)
    nop
    ud2
    inc %eax
middle:
    mov $60, %eax
    xor %edi, %edi
    syscall
    .size _start, . - _start
    .data
table: .quad middle
"""


@pytest.mark.skipif(NATIVE != "x86_64", reason="x86-64 assembly")
def test_counts_are_those_of_the_source(tmp_path: Path) -> None:
    program = build(tmp_path, LOOPS, *FREESTANDING)
    rows = {r.offset: r for r in run_rows(livepro.run([str(program)]))}
    assert [(r.occurrences, r.length, r.loop) for _, r in sorted(rows.items())] == [
        (1, 1, ""),
        (1000, 1, ""),
        (10_000, 2, "self"),
        (1000, 2, ""),
        (1, 2, ""),
        (1, 3, ""),  # entered by the table alone: only the run tells that a block begins there
    ]
    assert sum(r.occurrences * r.length for r in rows.values() if r.occurrences) == 1 + 1000 * 23 + 2 + 3


def test_every_instruction_of_a_real_program_is_in_some_block() -> None:
    """But for what a block that was left early (by a signal, or the end) had yet to execute."""
    result = livepro.run(["/bin/true"])
    rows = run_rows(result)
    executed = sum((r.occurrences or 0) * r.length for r in rows)
    left = sum(
        (int(process.table.length[row]) - k) * times
        for process in result.processes
        for thread in process.threads
        for row, k, times in thread.partial.tolist()
    )
    # What follows a block's first instruction may have been left undone, nothing else.
    assert 0 <= executed - result.instructions <= left
    assert abs(sum(r.share or 0 for r in rows) - 1) < 1e-9


def test_generated_code_has_blocks_too(builder: Builder) -> None:
    rows = run_rows(livepro.run([str(builder.hosted("generated"))]))
    loose = [r for r in rows if not r.module.startswith("/")]
    assert loose
    assert all(r.length and r.occurrences for r in loose)


def test_rows_name_their_source_lines(builder: Builder) -> None:
    (fixture,) = (f for f in freestanding() if f.name == "free_recursion")
    rows = with_lines(run_rows(livepro.run([str(builder.freestanding(fixture, "-O1"))])))
    text = fixture.source.read_text().splitlines()
    (entry,) = (r for r in rows if r.function == "fibonacci" and r.offset == 0)
    assert Path(entry.file).name == "free_recursion.c"
    assert "fibonacci" in text[entry.line - 1]


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "b.csv"
    command = ["sh", "-c", "echo 499500; exit 3"]
    assert main(["blocks", "run", "-o", str(target), "--min-share", "0.1%", "--", *command]) == 3
    out, err = capfd.readouterr()
    assert out == "499500\n"
    assert "times run" in err
    rows = list(csv.DictReader(target.open()))
    assert rows
    assert all(max(float(r["share"]), float(r["time_share"])) >= 0.001 for r in rows)
    assert {r["method"] for r in rows} == {"exact"}
    assert main(["blocks", "run", "--format", "csv", "--", "true"]) == 2
    assert "standard output is the program's" in capfd.readouterr().err
    assert main(["blocks", "run", "--", "no_such_program"]) == 127
