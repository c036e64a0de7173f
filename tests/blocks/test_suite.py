"""Suites: manifests, data sets, what fails, what goes on, and Dask."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from blocks.samples import FREESTANDING, build, cross_gcc, tool

from livepro.blocks import files
from livepro.blocks.rows import BlockRow
from livepro.blocks.suite import cluster, emulated
from livepro.blocks.suite.dataset import differences, tasks
from livepro.blocks.suite.manifest import READY, load
from livepro.cli.main import main
from livepro.errors import LiveproError

KERNEL = """
#include <stdio.h>
static unsigned x = 1;
__attribute__((noinline)) void spin(int n) { for (int i = 0; i < n; i++) x = x * 3 + 1; }
int main(int argc, char **argv) { spin(1000); printf("%u %s\\n", x, argc > 1 ? argv[1] : ""); return 0; }
"""

MANIFEST = """
[suite]
name = "small"
build = "{cc} {flags} -g -o {program} {sources}"
own-code-only = true
[variants]
O1 = "-O1"
[targets.x86_64]
cc = "gcc"
[targets.aarch64]
cc = "aarch64-linux-gnu-gcc -static"
[[benchmarks]]
name = "good"
sources = ["k.c"]
run = ["{program}", "word"]
expect = "%s word\\n"
"""

BROKEN = """
[[benchmarks]]
name = "no-source"
sources = ["missing.c"]
[[benchmarks]]
name = "crash"
program = "crash.sh"
[[benchmarks]]
name = "other-output"
sources = ["k.c"]
expect = "something else"
"""


def value() -> int:
    x = 1
    for _ in range(1000):
        x = (x * 3 + 1) % 2**32
    return x


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "k.c").write_text(KERNEL)
    (tmp_path / "crash.sh").write_text("#!/bin/sh\nkill -SEGV $$\n")
    (tmp_path / "crash.sh").chmod(0o755)
    path = tmp_path / "suite.toml"
    path.write_text(MANIFEST % value())
    return path


def loop(rows: list[BlockRow], isa: str) -> BlockRow:
    (row,) = (r for r in rows if r.function == "spin" and r.loop == "self" and r.isa == isa)
    return row


def test_a_data_set_of_both_instruction_sets_that_is_made_again(
    manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cross_gcc()
    tool("qemu-aarch64", "qemu-user")
    into = tmp_path / "set"
    assert (
        main(["blocks", "suite", str(manifest), "-o", str(into), "--isa", "x86_64,aarch64", "--jobs", "1"])
        == 0
    )
    rows = files.read(into)
    for isa in ("x86_64", "aarch64"):
        # The loop's block is executed 1000 times, or once less if the first round stands before it.
        assert loop(rows, isa).occurrences in (999, 1000)
        assert loop(rows, isa).file == "k.c"
        assert abs(sum(r.share or 0 for r in rows if r.isa == isa) - 1) < 1e-9
    assert {r.benchmark for r in rows} == {"good/O1"}
    document = json.loads((into / "dataset.json").read_text())
    assert (document["suite"], document["failures"], document["method"]) == ("small", {}, "exact")
    assert "| aarch64 | 1 |" in (into / "README.md").read_text()
    capsys.readouterr()
    assert main(["blocks", "verify", str(into), "--jobs", "1", "-q"]) == 0
    assert "0 gone, 0 new, 0 counted otherwise" in capsys.readouterr().out
    manifest.write_text(manifest.read_text() + "\n# changed\n")
    assert main(["blocks", "verify", str(into)]) == 2
    assert "has changed since" in capsys.readouterr().err


def test_what_fails_is_told_and_the_others_go_on(
    manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.write_text(manifest.read_text() + BROKEN)
    into = tmp_path / "set"
    command = ["blocks", "suite", str(manifest), "-o", str(into), "--jobs", "1"]
    assert main(command) == 1
    err = capsys.readouterr().err
    assert re.search(r"no-source@O1 \(\w+\) failed: building failed: .*missing.c", err)
    assert re.search(r"crash@as-is \(\w+\) failed: it ended with status 139, SIGSEGV \(by hand: cd ", err)
    assert re.search(r"other-output@O1 \(\w+\) failed: its output is not what", err)
    assert re.search(r"by hand: cd \S+ && gcc -O1 ", err)
    assert "3 programs failed. Once that is mended" in err
    assert {r.benchmark for r in files.read(into)} == {"good/O1"}
    assert len(json.loads((into / "dataset.json").read_text())["failures"]) == 3
    asked = []
    monkeypatch.setattr(cluster, "perform", lambda task: asked.append(task.name) or {"failure": "not done"})
    every = tasks(load(str(manifest), os.environ), into.resolve(), "exact", platform.machine())
    cluster.perform_all(every, 1, "", lambda *_: None)
    assert asked == ["no-source@O1", "crash@as-is", "other-output@O1"]  # what was done is not done again


LOOPS = """
    .globl _start
    .type _start, %function
_start:
    mov x0, #100
1:  mov x1, #10
2:  subs x1, x1, #1
    b.ne 2b
    subs x0, x0, #1
    b.ne 1b
    mov x8, #93
    svc #0
    .size _start, . - _start
"""


def test_emulated_counts_are_those_of_the_source(tmp_path: Path) -> None:
    tool("qemu-aarch64", "qemu-user")
    program = build(tmp_path, LOOPS, *FREESTANDING, compiler=cross_gcc())
    table = tmp_path / "t.parquet"
    assert emulated.main(str(table), "qemu-aarch64", "0", str(program)) == 0
    rows = sorted(files.read(table), key=lambda r: r.offset)
    assert [(r.occurrences, r.length, r.loop) for r in rows] == [
        (1, 1, ""),
        (100, 1, ""),
        (1000, 2, "self"),
        (100, 2, ""),
        (1, 2, ""),
    ]


@pytest.mark.long
def test_a_scheduler_and_two_workers_in_processes_of_their_own(manifest: Path, tmp_path: Path) -> None:
    place = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    text = manifest.read_text().replace('O1 = "-O1"', 'O1 = "-O1"\nO2 = "-O2"\nO3 = "-O3"')
    manifest.write_text(text)
    options = ["--scheduler-file", str(place), "--no-dashboard"]
    started = [
        subprocess.Popen([*dask, "scheduler", "--port", "0", "--host", "127.0.0.1", *options]),
        *(subprocess.Popen([*dask, "worker", "--nthreads", "1", "--no-nanny", *options]) for _ in range(2)),
    ]
    try:
        for _ in range(600):
            if place.exists():
                break
            try:
                started[0].wait(0.1)
                pytest.fail("the scheduler ended")
            except subprocess.TimeoutExpired:
                pass
        address = json.loads(place.read_text())["address"]
        into = tmp_path / "set"
        assert main(["blocks", "suite", str(manifest), "-o", str(into), "--scheduler", address]) == 0
        assert {r.benchmark for r in files.read(into)} == {"good/O1", "good/O2", "good/O3"}
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "small"', 'name = "small"\nbiuld = "x"', "there is no key 'biuld'. Did you mean build?"),
        ('sources = ["k.c"]', "", "needs either sources"),
        ('name = "good"', "", "'name' is missing"),
        ('name = "small"', "name = 3", "must be a string"),
        ('name = "small"', 'name = "small"\ndirectory = "${NOT_SET_HERE}"', "variable is not set"),
        ("[variants]", "[variants", "is no TOML"),
    ],
)
def test_what_is_wrong_in_a_manifest_is_told(manifest: Path, old: str, new: str, words: str) -> None:
    manifest.write_text(manifest.read_text().replace(old, new, 1))
    with pytest.raises(LiveproError, match=re.escape(words)):
        load(str(manifest), {})


def spec_tree(tmp_path: Path) -> Path:
    """What `runcpu --action=setup` leaves, with a program of ours in it."""
    run = tmp_path / "spec/benchspec/CPU/505.mcf_r/run/run_base_test_label.0000"
    run.mkdir(parents=True)
    subprocess.run(["gcc", "-x", "c", "-O1", "-o", run / "mcf", "-"], input=KERNEL.encode(), check=True)
    (run / "in.txt").write_text("input")
    (run / "speccmds.cmd").write_text(
        f"-E OMP_NUM_THREADS 1\n-r\n-N C\n-C {run}\n"
        "-i in.txt -o a.out -e a.err ../run_base_test_label.0000/mcf first > a.out 2>> a.err\n"
        "-o b.out -e b.err ../run_base_test_label.0000/mcf second > b.out 2>> b.err\n"
    )
    return tmp_path / "spec"


def test_commands_of_an_installed_spec_tree_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = spec_tree(tmp_path)
    monkeypatch.setenv("SPEC", str(tree))
    before = sorted(tree.rglob("*"))
    into = tmp_path / "set"
    assert main(["blocks", "suite", "speccpu2017", "-o", str(into), "--jobs", "1"]) == 0
    rows = files.read(into)
    names = {f"505.mcf_r.base_test_label.0000.{n}/as-is" for n in (1, 2)}
    assert {r.benchmark for r in rows} == names
    assert {r.function for r in rows} >= {"spin", "main"}
    assert sorted(tree.rglob("*")) == before
    outputs = sorted(p.read_text().split()[1] for p in (into / "parts").rglob("*.out"))
    assert outputs == ["first", "second"]
    monkeypatch.setenv("SPEC", str(tmp_path / "set"))
    with pytest.raises(LiveproError, match="runcpu --action=setup"):
        load("speccpu2017", os.environ)


def test_ready_manifests_are_right(tmp_path: Path) -> None:
    places = {"POLYBENCH": "/tmp", "RODINIA": "/tmp", "SPEC": str(spec_tree(tmp_path))}
    found = {path.stem: load(path.stem, places) for path in READY.glob("*.toml")}
    assert len(found["polybench"].benchmarks) == 30
    assert set(found) == {"kernels", "polybench", "rodinia", "speccpu2017"}
    assert all((READY / s).exists() for b in found["kernels"].benchmarks for s in b.sources)
    (kernel, *_) = tasks(found["polybench"], tmp_path, "exact", platform.machine())
    assert "-I" in kernel.build
    with pytest.raises(LiveproError, match="ready suite: kernels"):
        load("no_such_suite", {})


def test_differences() -> None:
    row = BlockRow(
        "90", "x86_64", 1, 1, 5, 1.0, 1.0, "exact", "f", 0, "m", 0, "", 0, "b/O1", "", False, 0, "", 0
    )
    moved = replace(row, offset=4)
    assert differences([row], [row]).none
    found = differences([row, moved], [replace(row, occurrences=6)])
    assert (found.only_first, found.only_second) == ([moved], [])
    assert [(a.occurrences, b.occurrences) for a, b in found.changed] == [(5, 6)]
