from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import fake_runs
import numpy as np
import pytest

from livepro.model import RunResult, ThreadCounts
from livepro.ui.summary import ending, print_summary
from livepro.ui.view import HotBlock, view


def summary(result: RunResult, width: int | None = 80, **options: object) -> str:
    out = io.StringIO()
    print_summary(result, out, width, **options)  # type: ignore[arg-type]
    return out.getvalue()


def cells(text: str, start: str) -> list[str]:
    """The words of the one line that starts with `start`."""
    (line,) = [line for line in text.splitlines() if line.strip().startswith(start)]
    return line.split()


def test_one_thread() -> None:
    text = summary(fake_runs.single())
    lines = text.splitlines()
    assert lines[:2] == ["livepro  prog --fast", "  exit 3, 1.25 s, step engine"]
    assert "  3,041  instructions" in lines
    assert "      3  distinct basic blocks" in lines
    assert "     10  rep instructions (50 iterations)" in lines
    assert "  1,011  SIMD instructions (33.2 %)" in lines
    assert cells(text, "mem read")[:4] == ["mem", "read", "20", "0.7"]
    assert cells(text, "SSE1f") == ["SSE1f", "10", "1,000", "-", "1,010", "33.2", "%"]
    assert cells(text, "AVX512F") == ["AVX512F", "-", "-", "1", "1", "<0.1", "%"]
    assert cells(text, "3,000") == ["3,000", "98.7", "%", "1,000", "main", "prog+0x1000"]
    assert cells(text, "1  <0.1") == ["1", "<0.1", "%", "1", "-", "[vdso]+0xf00"]
    assert "by thread" not in text
    assert "warning" not in text


def test_groups_come_in_their_own_order() -> None:
    text = summary(fake_runs.single())
    groups = ["mem read", "mem write", "control", "arithmetic", "string", "sse"]
    places = [text.index(f"\n  {group} ") for group in groups]
    assert places == sorted(places)


def test_several_processes_and_threads() -> None:
    text = summary(fake_runs.several())
    assert "exit 3, 1:15 min, step engine, 2 processes, 3 threads" in text
    assert "  4,058  instructions" in text.splitlines()
    assert cells(text, "100      prog --fast") == [
        "100",
        "prog",
        "--fast",
        "3,041",
        "74.9",
        "%",
        "3",
        "33.2",
        "%",
        "3",
    ]
    assert cells(text, "101      prog --fast")[-1] == "exec"
    assert cells(text, "101      /usr")[-2:] == ["143", "SIGTERM"]
    assert cells(text, "102    [helper]") == ["102", "[helper]", "7", "0.2", "%", "1", "-"]
    assert "warning: one thread was lost [bold]." in text


def test_matrices_by_thread() -> None:
    text = summary(fake_runs.several())
    types = text[text.index("Instruction types by thread") : text.index("SIMD by thread")].splitlines()
    assert types[1].split() == ["mem", "mem"]
    assert types[2].split() == ["tid", "thread", "read", "write", "control", "arithm.", "string", "sse"]
    assert types[3].split() == ["100", "prog", "0.7", "0.3", "33.2", "32.9", "0.3", "33.2"]
    assert types[6].split() == ["102", "[helper]", "-", "-", "100.0", "-", "-", "-"]
    simd = text[text.index("SIMD by thread") : text.index("\nInstruction types  ")].splitlines()
    assert simd[1].split() == ["SSE1f", "AVX512F", "SSE1f"]
    assert simd[2].split() == ["tid", "thread", "128", "512", "scalar"]
    assert simd[5].split() == ["101", "worker", "-", "50.0", "-"]


def test_the_same_block_of_several_processes_counts_once() -> None:
    """A library's block in three processes is one line, with the sum."""
    one = fake_runs.single().processes[0]
    result = RunResult("step", ("x",), 0, 1.0, 0, (one, one, one))
    assert view(result, 2).hot == (
        HotBlock(9000, 3000, "main", "prog+0x1000"),
        HotBlock(120, 30, fake_runs.LONG_NAME, "libc.so.6+0x1100"),
    )


def test_a_block_hot_in_one_process_is_summed_over_all() -> None:
    """Also where it is too far down another's list to be shown for it."""
    names = [(0x1000 * (i + 1), f"f{i}", "/bin/x", (fake_runs.ADD,)) for i in range(40)]
    table = fake_runs.table(*names)
    process = fake_runs.single().processes[0]
    rising = replace(process, table=table, threads=(fake_runs.thread(1, "a", list(range(1, 41))),))
    falling = replace(process, table=table, threads=(fake_runs.thread(2, "b", list(range(400, 0, -10))),))
    result = RunResult("step", ("x",), 0, 1.0, 0, (rising, falling))
    assert view(result, 2).hot == (
        HotBlock(401, 401, "f0", "x+0x1000"),
        HotBlock(392, 392, "f1", "x+0x2000"),
    )


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("result", [fake_runs.single(), fake_runs.several()], ids=["single", "several"])
def test_it_fits(width: int, result: RunResult) -> None:
    text = summary(result, width, stats=True)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


def test_a_file_gets_plain_text_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    text = summary(replace(fake_runs.single(), command=("x" * 200,)), None)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) == 100


def test_a_stream_that_takes_ascii_only() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    print_summary(fake_runs.several(), out, 80)
    out.flush()
    assert b"####" in raw.getvalue()


def test_sections_can_be_left_out() -> None:
    text = summary(fake_runs.several(), sections=["hot"])
    assert "Hottest blocks" in text
    assert "4,058  instructions" in text
    for title in ("Processes and threads", "by thread", "Instruction types", "SIMD by set"):
        assert title not in text


def test_stats() -> None:
    result = replace(fake_runs.single(), stats={"stops": 3090, "launch_seconds": 0.5, "mode": "seize"})
    assert "Figures of" not in summary(result)
    text = summary(result, stats=True)
    assert cells(text, "stops") == ["stops", "3,090"]
    assert cells(text, "launch seconds") == ["launch", "seconds", "0.500"]
    assert cells(text, "mode") == ["mode", "seize"]


def test_many_threads_are_cut_and_it_is_said() -> None:
    process = fake_runs.single().processes[0]
    threads = tuple(fake_runs.thread(200 + i, f"worker-{i}", [i + 1, 0, 0]) for i in range(100))
    text = summary(replace(fake_runs.single(), processes=(replace(process, threads=threads),)))
    assert "Processes and threads  the largest 24 of 101 rows" in text
    assert "worker-99" in text
    assert "worker-10 " not in text
    assert len(text.splitlines()) < 100


def test_nothing_executed() -> None:
    """A command that could not be counted at all still gets its summary."""
    process = fake_runs.single().processes[0]
    idle = ThreadCounts(1, "idle", np.zeros(3, np.uint64), np.zeros((0, 3), np.int64), 0)
    text = summary(replace(fake_runs.single(), processes=(replace(process, threads=(idle,)),)))
    assert "  0  instructions" in text.splitlines()
    assert "0  instructions" in summary(replace(fake_runs.single(), processes=()))


def test_colour_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    print_summary(fake_runs.single(), out, 80)
    assert "\x1b[1m" in out.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    print_summary(fake_runs.single(), out, 80)
    assert "\x1b[1;36m" not in out.getvalue()


def test_endings() -> None:
    assert [ending(s) for s in (0, 1, 143, 130, 255, None)] == [
        "0",
        "1",
        "143 SIGTERM",
        "130 SIGINT",
        "255",
        "exec",
    ]


def test_importing_the_command_line_does_not_load_rich() -> None:
    code = "import sys, livepro.cli.main, livepro.cli.run; print('rich' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
