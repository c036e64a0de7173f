"""Instruction types that are counted are those of the whole stream."""

from __future__ import annotations

import gzip
import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fixtures import ROOT, Builder, Fixture, assembly

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
if platform.machine() != "x86_64":
    pytest.skip("written for x86-64 programs", allow_module_level=True)

SOME = (
    *("direction_flag", "execve", "fork", "mid_block", "rep_cmps", "rep_fault", "rep_movs"),
    *("rep_prefixes", "rep_stos_lods", "signal_nested", "smc_alias", "vfork"),
)
DIFFERENT = {
    "commands": "resets its counts: counters alone tell of the whole run, and a warning says so",
    "spin": "takes its signals when they come",
    "threads_exit_group": "threads are killed anywhere",
    "threads_join": "may wait for a thread, or not",
    "threads_straight": "may wait for a thread, or not",
}
LONG = pytest.mark.long(seconds=3)


def fixtures() -> list[Any]:
    """Fixtures and dialects: those differ in what repeats instructions."""
    chosen = [f for f in assembly() if not f.heavy and f.name not in DIFFERENT]
    return [
        pytest.param(f, dialect, id=f"{f.name}-{dialect}", marks=[] if f.name in SOME else [LONG])
        for f in chosen
        for dialect in ("exact", "mica")
        if dialect == "exact" or "rep" in f.name
    ]


def told(program: Path, directory: Path, options: str, *livepro: str, args: tuple[str, ...] = ()) -> Any:
    """The program's exit status and output, and what is told of instruction types in each process image."""
    out = directory / "out.json"
    out.unlink(missing_ok=True)
    asked = ["run", "--quiet", "--no-aslr", *livepro, "--analysis", f"mica:{options}", "--json", str(out)]
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "livepro", *asked, "--", str(program), *args],
        env=environment | {"LIVEPRO_CACHE_DIR": str(directory / "kept")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "warning" not in done.stderr
    report = json.loads(out.read_text())
    (results,) = ([each["result"] for each in found] for found in report["analyses"].values())
    numbers = [
        {
            "total": itypes(result["total"]),
            "threads": [itypes(thread) for thread in result["threads"]],
            "functions": {
                (row["function"], row["module"]): (row["events"], row["itypes"])
                for row in result["functions"]
                if row["events"]
            },
        }
        for result in results
    ]
    return (done.returncode, done.stdout, numbers), report


def itypes(part: Any) -> Any:
    return part["instructions"], part["events"], part["values"]["itypes"]


@pytest.mark.some(6)
@pytest.mark.parametrize(("fixture", "dialect"), fixtures())
def test_counts_say_what_the_stream_does(
    fixture: Fixture, dialect: str, builder: Builder, tmp_path: Path
) -> None:
    if fixture.missing:
        pytest.skip(f"the processor has no {' '.join(fixture.missing)}")
    program, args = builder.assembly(fixture), tuple(fixture.args)
    (counted, report), (streamed, _) = (
        told(program, tmp_path, f"analyses='{analyses}':dialect='{dialect}'", args=args)
        for analyses in ("itypes", "itypes+stride")
    )
    assert counted == streamed
    if dialect == "exact":
        # What is executed is counted once more, by what counts for all other figures.
        assert sum(numbers["total"][0] for numbers in counted[2]) == report["instructions"]


def test_a_real_program_records_its_repetitions_only(tmp_path: Path) -> None:
    """First, put back from what is kept, and with a whole stream."""
    (tmp_path / "input.gz").write_bytes(gzip.compress(bytes(range(256)) * 2000, mtime=0))
    program, args = Path("/bin/gzip"), ("-t", str(tmp_path / "input.gz"))
    (first, report), (again, _), (whole, full) = (
        told(program, tmp_path, f"analyses='{analyses}'", args=args)
        for analyses in ("itypes", "itypes", "itypes+stride")
    )
    assert first == again == whole
    instructions, events, _ = first[2][0]["total"]
    assert instructions < events
    assert 0 < report["stats"]["words recorded"] < full["stats"]["words recorded"] / 50


@pytest.mark.parametrize("name", ["signal_flood", "signal_storm"])
def test_signals_between_any_two_instructions(name: str, builder: Builder, tmp_path: Path) -> None:
    program = builder.hosted(name)
    (status, output, (numbers,)), report = told(program, tmp_path, "analyses='itypes'")
    native = subprocess.run([program], capture_output=True, text=True)
    assert (status, output) == (native.returncode, native.stdout)
    assert numbers["total"][0] == report["instructions"]


ANSWERS = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: print("alive", flush=True))
print("ready", flush=True)
while True:
    b"x" * 5000
    sorted(range(50), reverse=True)
"""


def test_a_process_that_runs(tmp_path: Path) -> None:
    """It goes on behind it, and what it executes meanwhile is counted as everywhere else."""
    target = subprocess.Popen(["/usr/bin/python3", "-c", ANSWERS], stdout=subprocess.PIPE, text=True)
    assert target.stdout is not None
    try:
        assert target.stdout.readline() == "ready\n"
        out = tmp_path / "out.json"
        asked = ["--duration", "1s", "--analysis", "mica:analyses='itypes'", "--json", str(out)]
        subprocess.run(
            [sys.executable, "-m", "livepro", "attach", str(target.pid), "--quiet", *asked],
            env={**os.environ, "PYTHONPATH": str(ROOT.parent)},
            check=True,
            timeout=120,
        )
        report = json.loads(out.read_text())
        ((found,),) = report["analyses"].values()
        assert found["result"]["total"]["instructions"] == report["instructions"] > 0
        target.send_signal(signal.SIGUSR1)
        assert target.stdout.readline() == "alive\n"
    finally:
        target.send_signal(signal.SIGKILL)
        target.wait()
        target.stdout.close()
