"""Reports for other tools: sums are the run's, names cannot break a format, and the tools read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import model_builders as mb
import pytest
from tools import needed

from livepro.analyses.document import to_document
from livepro.cli.main import main
from livepro.exports import FORMATS, callgrind, collapsed, perfetto, pprof, speedscope
from livepro.formats import json_report

HOSTILE = 'evil;fn\n99 "</script>\x1b(\udcff'

TABLE = mb.table(
    (0x1000, [mb.ADD, mb.JNZ], "main", "/bin/prog"),
    (0x2000, [mb.simd("ADDPS"), mb.RET], HOSTILE, "/lib/lib(x).so"),
    (0x3000, [mb.RET], "", "[vdso]"),
)


def document(code: bool = True) -> dict[str, Any]:
    """Thread 1: 20 + 4 + 1 (left early); thread 2: 2 + 3 instructions."""
    first = mb.thread([10, 2, 0], partial=[(1, 1, 1)], tid=1, name="one", intervals=[
        mb.interval({0: 20}), mb.interval({1: 5}),
    ])  # fmt: skip
    second = mb.thread([1, 0, 3], tid=2, name="two;\n(2)")

    def lines(module: str, addresses: Any) -> list[tuple[str, int] | None]:
        return [("/src/a.c", int(a) & 0xF) if module == "/bin/prog" else None for a in addresses]

    return to_document(mb.run(mb.process(TABLE, first, second)), with_code=code, lines=lines)


def test_collapsed_stacks_have_each_thread() -> None:
    lines = collapsed.export(document()).decode().splitlines()
    evil = 'evil:fn?99 "</script>?(?'
    assert lines == [
        "prog 100;one 1;/bin/prog;main 20",
        f"prog 100;one 1;/lib/lib(x).so;{evil} 5",
        "prog 100;two:?(2) 2;/bin/prog;main 2",
        "prog 100;two:?(2) 2;[vdso];[vdso without symbols] 3",
    ]
    without = collapsed.export(document(code=False)).decode().splitlines()
    assert without[0] == "prog 100;/bin/prog;main 22"
    assert sum(int(line.rpartition(" ")[2]) for line in without) == 30


def test_speedscope_has_a_profile_for_each_thread() -> None:
    found = json.loads(speedscope.export(document()))
    assert [(p["name"], p["endValue"], p["weights"]) for p in found["profiles"]] == [
        ("prog 100 one 1", 25, [20, 5]),
        ("prog 100 two;\n(2) 2", 5, [2, 3]),
    ]
    frames = found["shared"]["frames"]
    assert [frames[n]["name"] for n in found["profiles"][0]["samples"][0]] == ["/bin/prog", "main"]


def test_perfetto_has_intervals_as_counters_and_phases() -> None:
    events = json.loads(perfetto.export(document()))["traceEvents"]
    assert [(e["ph"], e["name"], e["ts"], e["args"]) for e in events if e["tid"] == 1 and e["ph"] == "C"] == [
        ("C", "SIMD % one 1", 0, {"value": 0.0}),
        ("C", "SIMD % one 1", 0.02, {"value": 40.0}),
    ]  # of 5 instructions half are taken for SIMD, rounded: 2
    assert [(e["name"], e["dur"]) for e in events if e["ph"] == "X"] == [
        ("phase 1", 0.02),
        ("phase 2", 0.005),
    ]


def test_callgrind_annotate_reads_the_costs(tmp_path: Path) -> None:
    tool = needed("callgrind_annotate", "valgrind")
    text = callgrind.export(document())
    assert b"fl=/src/a.c\nfn=main\n0 11\n2 11\n" in text
    (tmp_path / "callgrind.out").write_bytes(text)
    done = subprocess.run(
        [tool, "--threshold=100", "--auto=no", "callgrind.out"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert "30 (100.0%)  PROGRAM TOTALS" in done.stdout
    assert "22 (73.33%)  /src/a.c:main [/bin/prog]" in done.stdout


def test_pprof_reads_the_profile(tmp_path: Path) -> None:
    content = pprof.export(document())
    (tmp_path / "run.pb.gz").write_bytes(content)
    command = [needed("go", "golang-go"), "tool", "pprof", "-raw", "run.pb.gz"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "instructions/count" in done.stdout
    assert "thread:[one 1]" in done.stdout
    total = sum(
        int(line.split(":")[0]) for line in done.stdout.splitlines() if line.strip()[:1].isdigit()
        and line.strip().endswith(("1", "2", "3")) and ": 0x" not in line and "M=" not in line
    )  # fmt: skip
    assert total == 30


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "run.json"
    json_report.write(str(report), document())
    for form in FORMATS:
        assert main(["export", str(report), "--to", form.name]) == 0
        assert (tmp_path / f"run{form.suffix}").stat().st_size > 0
    capfd.readouterr()
    plain = document()
    for thread in plain["processes"][0]["threads"]:
        thread["moments"] = None
    json_report.write(str(report), plain)
    assert main(["export", str(report), "--to", "perfetto"]) == 2
    assert "has nothing over time" in capfd.readouterr().err
