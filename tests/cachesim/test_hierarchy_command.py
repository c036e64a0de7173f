"""`livepro run --hierarchy MACHINE` as users call it."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from cachesim.test_cachegrind import build, livepro, read, tool

from fixtures import ASM_FLAGS, ROOT, Builder

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")

MACHINE = ROOT / "cachegrind" / "levels.toml"


@pytest.mark.parametrize("engine", ["translate", "step"])
def test_numbers_that_were_worked_out(engine: str, builder: Builder, tmp_path: Path) -> None:
    """By the comment of levels.S."""
    program = builder.build(ROOT / "cachegrind" / "levels.S", ASM_FLAGS)
    report = tmp_path / "run.json"
    options = ("--engine", engine, "--hierarchy", MACHINE, "--json", report, "--cachegrind-out-file", "out")
    done = livepro("run", *options, "--", program, cwd=tmp_path)
    assert done.returncode == 0
    (told,) = json.loads(report.read_text())["analyses"]["hierarchy"]
    result = told["result"]
    assert result["totals"] == {
        **{"Ir": 2577, "Dr": 256, "Dw": 128, "L1Imi": 1, "L1Dmr": 256, "L1Dmw": 128},
        **{"L2mi": 1, "L2mr": 0, "L2mw": 128, "DTLBmr": 4, "DTLBmw": 2},
    }
    assert (result["levels"]["L1D"]["written_back"], result["levels"]["L2"]["written_back"]) == (128, 0)
    assert result["memory"] == {"read": 129, "written": 0, "line": 64}
    rows = [dict(zip(result["events"], row[2:], strict=True)) for row in result["functions"]]
    assert {event: sum(row[event] for row in rows) for event in result["events"]} == result["totals"]
    assert "L1D    4 KiB, fully associative, lru, of each thread" in done.stderr
    assert "L1D                  384             384  100.00%" in done.stderr
    profile = read(tmp_path / "out")
    assert profile.events == tuple(result["totals"])
    assert profile.totals == tuple(result["totals"].values())


def test_what_threads_do_to_each_other(builder: Builder, tmp_path: Path) -> None:
    """Two threads write to each its half of a line, and both to another: how often they take them from each
    other depends on whose turn it is when. Who writes behind somebody's write finds the line modified."""
    program = builder.hosted("false_sharing", "-O1", "-pthread", "-no-pie", "-fno-pie")
    report = tmp_path / "run.json"
    done = livepro("run", "--hierarchy", "zen4", "--json", report, "--", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "counted\n")
    (told,) = json.loads(report.read_text())["analyses"]["hierarchy"]
    result = told["result"]
    assert result["coherence"]["invalidated"] == result["totals"]["Inv"] >= 2
    assert result["coherence"]["modified"] >= result["totals"]["Hitm"] >= 2
    rows = {row[0]: dict(zip(result["events"], row[2:], strict=True)) for row in result["functions"]}
    assert rows["count"]["Inv"] >= 2
    assert rows["count"]["Hitm"] >= 2
    assert "coherence: " in done.stderr


def test_the_file_is_read_by_valgrind_and_by_livepro(tmp_path: Path) -> None:
    program = build("walks", tmp_path, "-O1")
    done = livepro("run", "-q", "--hierarchy", "zen4", "--", program, cwd=tmp_path)
    assert done.stderr == ""
    (out,) = tmp_path.glob("cachegrind.out.*")
    shown = subprocess.run([tool("cg_annotate", "valgrind"), str(out)], capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "L1Dmr" in shown.stdout
    own = livepro("annotate", "--sort", "L1Dmr", "--show", "Ir,L1Dmr,L2mr", out, cwd=tmp_path)
    assert own.returncode == 0
    assert "walks.c:strided" in own.stdout


def test_two_levels_are_what_the_simple_model_has(tmp_path: Path) -> None:
    """The last level holds everything, so that what is written back changes nothing. What modifies memory is
    a read there, and here a write that hits, besides."""
    program = build("walks", tmp_path, "-O1")
    machine = tmp_path / "two.toml"
    machine.write_text(
        '[[cache]]\nname = "I1"\nholds = "instructions"\nsize = 1024\nways = 2\nnext = "LL"\n'
        '[[cache]]\nname = "D1"\nholds = "data"\nsize = 4096\nways = 4\nnext = "LL"\n'
        '[[cache]]\nname = "LL"\nholds = "both"\nsize = "1M"\nways = 16\n'
    )
    simple = ("--cachesim", "--I1=1024,2,64", "--D1=4096,4,64", "--LL=1048576,16,64")
    assert livepro("run", *simple, "--cachegrind-out-file", "a", "--", program, cwd=tmp_path).returncode == 0
    options = ("--hierarchy", machine, "--cachegrind-out-file", "b")
    assert livepro("run", *options, "--", program, cwd=tmp_path).returncode == 0
    ours, theirs = (
        dict(zip(p.events, p.totals, strict=True)) for p in (read(tmp_path / "b"), read(tmp_path / "a"))
    )
    assert (ours["Ir"], ours["Dr"]) == (theirs["Ir"], theirs["Dr"])
    assert (ours["I1mi"], ours["LLmi"]) == (theirs["I1mr"], theirs["ILmr"])
    assert (ours["D1mr"], ours["D1mw"]) == (theirs["D1mr"], theirs["D1mw"])
    assert (ours["LLmr"], ours["LLmw"]) == (theirs["DLmr"], theirs["DLmw"])


def test_intervals_are_parts_of_the_whole(builder: Builder, tmp_path: Path) -> None:
    program = builder.build(ROOT / "cachegrind" / "levels.S", ASM_FLAGS)
    report = tmp_path / "run.json"
    options = ("--hierarchy", MACHINE, "--interval-size", "800", "--json", report)
    assert livepro("run", *options, "--", program, cwd=tmp_path).returncode == 0
    (told,) = json.loads(report.read_text())["analyses"]["hierarchy"]
    (thread,) = told["intervals"]
    values = thread["values"]
    assert {name: sum(counts) for name, counts in values.items()} == {
        name: count for name, count in told["result"]["totals"].items() if name[:2] not in ("Ir", "Dr", "Dw")
    }
    # 800 instructions: 774 to the end of the first pass, two that begin the second, three lines of it, of
    # seven each, and the fourth up to its read.
    assert values["L1Dmw"] == [128, 0, 0, 0]
    assert values["L1Dmr"][0] == 4


def test_data_frames(builder: Builder) -> None:
    pytest.importorskip("pandas")
    import livepro as package
    from livepro.cachesim.hierarchy.model import HierarchySim

    program = builder.build(ROOT / "cachegrind" / "levels.S", ASM_FLAGS)
    frames = package.run([str(program)], analyses=[HierarchySim(str(MACHINE))]).to_pandas()
    levels = frames["hierarchy.levels"].set_index("level")
    assert levels.loc["L1D", ["reads", "read_misses", "written_back"]].tolist() == [256, 256, 128]
    assert frames["hierarchy"]["L1Dmr"].sum() == 256
    assert set(frames) >= {"hierarchy.lines"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--hierarchy", "zen9"), ("There is no machine 'zen9'", "neoverse-n1")),
        (("--hierarchy", "zen4", "--cachesim"), ("--hierarchy and --cachesim exclude each other",)),
        (("--hierarchy", "zen4", "--D1", "1024,2,64"), ("--hierarchy and --D1 exclude each other",)),
    ],
)
def test_what_is_wrong_is_told_before_the_program_runs(
    options: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    done = livepro("run", *options, "--", "touch", tmp_path / "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert all(word in done.stderr for word in words)
    assert not (tmp_path / "ran").exists()
