"""`livepro run` from the outside: programs are started for real, counts are proved beside their sources."""

from __future__ import annotations

import csv
import gzip
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures import ROOT, Builder
from livepro.cli.main import main
from livepro.formats import expbbv, json_report

LIVEPRO = (sys.executable, "-m", "livepro")


@pytest.fixture(scope="session")
def straight(builder: Builder) -> str:
    """13 instructions in one block, exit status 7."""
    return str(builder.build(ROOT / "asm/straight.S"))


@pytest.fixture(scope="session")
def threads(builder: Builder) -> str:
    return str(builder.build(ROOT / "asm/threads_join.S"))


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def livepro(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line; returns its status and what it said on standard error."""

    def run(*argv: str) -> tuple[int, str]:
        status = main(["run", *argv])
        return status, capfd.readouterr().err

    return run


@pytest.fixture
def never_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test if the program is started."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the program was started")

    monkeypatch.setattr("livepro.api.run", refuse)


def test_summary_and_status(livepro: Run, straight: str) -> None:
    status, said = livepro("--", straight)
    assert status == 7
    lines = said.splitlines()
    assert lines[0] == f"livepro  {straight}"
    assert re.fullmatch(r"  exit 7, \d+\.\d+ s, \w+ engine", lines[1])
    assert lines[3:6] == ["  13  instructions", "   1  distinct basic block", "   0  SIMD instructions"]
    assert "_start" in said
    assert "\x1b" not in said


def test_quiet_says_nothing(livepro: Run, straight: str) -> None:
    assert livepro("--quiet", "--", straight) == (7, "")


def test_streams_pass_through() -> None:
    done = subprocess.run(
        [*LIVEPRO, "run", "-q", "--", "/bin/cat"],
        input="to and fro\n",
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},  # reading a locale takes most of its instructions
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "to and fro\n", "")


def test_signalled(livepro: Run, builder: Builder) -> None:
    status, said = livepro("--", str(builder.build(ROOT / "asm/exit_killed.S")))
    assert status > 128
    assert f"exit {status} SIG" in said


def test_json(livepro: Run, threads: str, tmp_path: Path) -> None:
    name = str(tmp_path / "o.json")
    status, _ = livepro("--json", name, "--quiet", "--", threads)
    document = json_report.read(name)
    assert document["command"] == [threads]
    assert document["exit"] == status
    (process,) = document["processes"]
    assert len(process["threads"]) > 1
    assert sum(t["instructions"] for t in process["threads"]) == document["instructions"]


def test_several_threads_have_their_rows(livepro: Run, threads: str, tmp_path: Path) -> None:
    name = str(tmp_path / "o.json")
    _, said = livepro("--json", name, "--", threads)
    assert "Processes and threads" in said
    for thread in json.loads(Path(name).read_text())["processes"][0]["threads"]:
        assert re.search(rf"^    {thread['tid']}  .* {thread['instructions']:,} ", said, re.MULTILINE)


def test_simd_csv(livepro: Run, builder: Builder, tmp_path: Path) -> None:
    name = tmp_path / "simd.csv"
    _, said = livepro("--simd-csv", str(name), "--", str(builder.build(ROOT / "asm/sse.S")))
    with name.open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == [
        "thread", "set", "opcode", "mnemonic", "category", "extension", "type", "counter", "description",
    ]  # fmt: skip
    assert f"  {sum(int(row['counter']) for row in rows):,}  SIMD instructions" in said


def test_output_directory(livepro: Run, threads: str, tmp_path: Path) -> None:
    into = tmp_path / "new" / "100%p"  # a directory's name is literal
    livepro("-o", str(into), "--interval-size", "10", "-q", "--", threads)
    (process,) = json_report.read(str(into / "livepro.json"))["processes"]
    pid, count = process["pid"], len(process["threads"])
    vectors = [f"bb.out.{pid}"] + [f"bb.out.{pid}.{n}" for n in range(2, count + 1)]
    itypes = ["itypes_full_int_pin.out", "itypes_other_group_categories.txt"]
    expected = ["livepro.json", "simd.csv", f"pc.out.{pid}", *itypes, *vectors]
    assert sorted(os.listdir(into)) == sorted(expected)
    for thread, name in zip(process["threads"], vectors, strict=True):
        found = expbbv.read_vectors(str(into / name))
        sums = [int(counts.sum()) for _, counts in found.vectors]
        assert sum(sums) == thread["instructions"]
        assert set(sums[:-1]) <= {10}
    assert int((into / itypes[0]).read_text().split()[0]) == process["instructions"]
    assert len(expbbv.read_pc(str(into / f"pc.out.{pid}"))) == process["blocks"]


def test_output_directory_holds_the_chosen_analyses(livepro: Run, straight: str, tmp_path: Path) -> None:
    _, said = livepro("-o", str(tmp_path), "--analyses", "simd,totals", "--", straight)
    assert sorted(os.listdir(tmp_path)) == ["livepro.json", "simd.csv"]
    assert "Instruction types" not in said


def test_vectors_by_name(
    livepro: Run, straight: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABEL", "mine")
    pattern = str(tmp_path / "bb.%q{LABEL}.gz")
    livepro(
        "--bb-out-file", pattern, "--pc-out-file", str(tmp_path / "pc"), "--interval-size=5", "-q", straight
    )
    with gzip.open(tmp_path / "bb.mine.gz", "rt") as stream:
        lines = stream.read().splitlines()
    assert lines[:3] == ["T:1:5   ", "T:1:5   ", "T:1:3   "]
    assert "#   Total intervals: 3 (Interval Size 5)" in lines
    assert (tmp_path / "pc").read_text() == "F:1:401000:_start\n"


def test_vectors_of_the_other_dialect(livepro: Run, straight: str, tmp_path: Path) -> None:
    """exp-bbv's first interval is one longer, and it drops the last partial one."""
    livepro(
        "--bb-out-file", str(tmp_path / "bb"), "--interval-size", "5", "--bbv-dialect", "exp-bbv", straight
    )
    lines = (tmp_path / "bb").read_text().splitlines()
    assert [line for line in lines if line.startswith("T")] == ["T:1:6   ", "T:1:5   "]


def test_interval_alone_asks_for_the_usual_name(
    livepro: Run, straight: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    livepro("--interval-size", "1M", straight)
    (name,) = os.listdir(tmp_path)
    assert re.fullmatch(r"bb\.out\.\d+", name)


def test_instruction_count_only(
    livepro: Run, straight: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, said = livepro("--instr-count-only", "--interval-size", "5", "--bb-out-file", "bb", straight)
    assert said.startswith(
        "# Thread 1\n#   Total intervals: 3 (Interval Size 5)\n#   Total instructions: 13\n"
    )
    assert os.listdir(tmp_path) == []


def test_own_groups(livepro: Run, straight: str, tmp_path: Path) -> None:
    spec = tmp_path / "groups"
    spec.write_text("0, 0, OPCODE, NOP\n1, 0, OPCODE, SHL\n1, 1, OPCODE, SYSCALL\n")
    _, said = livepro("--itypes-spec", str(spec), "--json", str(tmp_path / "o.json"), "--", straight)
    ((thread,),) = [p["threads"] for p in json_report.read(str(tmp_path / "o.json"))["processes"]]
    assert list(thread["itypes"].values()) == [3, 2, 8]
    assert re.search(r"^  other +8  61\.5 %", said, re.MULTILINE)


def test_stats(livepro: Run, straight: str) -> None:
    assert re.search(r"Figures of the \w+ engine\n  .*\d", livepro("--stats", "--", straight)[1])


@pytest.mark.usefixtures("never_started")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--analyses", "simd,itype"], "There is no analysis 'itype'. Did you mean 'itypes'?"),
        (["--json", "/proc/x"], "--json=/proc/x cannot be written"),
        (["--json", ""], "--json= names no file"),
        (["--simd-csv", "/"], "--simd-csv=/ names no file"),
        (["-o", "/proc/x"], "-o=/proc/x cannot be written"),
        (["-o", "/dev/null"], "-o=/dev/null cannot be written"),
        (["--bb-out-file", "%x"], "'%x' means nothing in a file name"),
        (["--bb-out-file", "%q{LIVEPRO_NONE}"], "'LIVEPRO_NONE' is not set"),
        (["--bb-out-file", ""], "--bb-out-file got an empty file name"),
        (["--pc-out-file", "/none/x"], "--pc-out-file=/none/x cannot be written"),
        (["--json", "/tmp/./a", "--simd-csv", "/tmp/a"], "name the same file"),
        (["--interval-size", "0"], "is too small"),
        (["--bbv-dialect", "mine"], "invalid choice: 'mine'"),
        (["--children", "adopt"], "invalid choice: 'adopt'"),
        (["--engine", "warp"], "invalid choice: 'warp'"),
        (["--itypes-spec", "/none"], "/none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_found_before_anything_runs(livepro: Run, options: list[str], says: str) -> None:
    status, said = livepro(*options, "--", "true")
    assert status == 2
    assert said.startswith("livepro: ")
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.usefixtures("never_started")
@pytest.mark.parametrize(
    "line", ["0, 1, OPCDE, NOP", "0, 1, OPCODE, NOOP", "0, 1, CATEGORY, BINARIES", "0; 1"]
)
def test_bad_line_of_a_specification(livepro: Run, tmp_path: Path, line: str) -> None:
    spec = tmp_path / "groups"
    spec.write_text(f"0, 0, OPCODE, NOP\n{line}\n")
    status, said = livepro("--itypes-spec", str(spec), "--", "true")
    assert status == 2
    assert said.startswith(f"livepro: {spec}:2: ")


@pytest.mark.parametrize(
    ("command", "status"),
    [("livepro-no-such-command", 127), ("/none/x", 127), ("/etc/passwd", 126), ("/etc", 126)],
)
def test_commands_that_cannot_be_run(livepro: Run, command: str, status: int) -> None:
    found, said = livepro("--", command)
    assert found == status
    assert said.startswith(f"livepro: {command}: ")
    assert said.count("\n") == 1


def test_a_failing_file_does_not_lose_the_others(livepro: Run, straight: str, tmp_path: Path) -> None:
    """/dev/full can be opened, and cannot be written: a disk that fills up."""
    status, said = livepro("--json", "/dev/full", "--simd-csv", str(tmp_path / "s.csv"), "-q", "--", straight)
    assert status == 2
    assert (
        said
        == "livepro: /dev/full could not be written: No space left on device. What is there is incomplete.\n"
    )
    assert (tmp_path / "s.csv").exists()


def test_colour_and_progress_on_a_terminal(builder: Builder) -> None:
    """A run of some seconds: the progress line comes, and is erased before the summary."""
    program = str(builder.build(ROOT / "asm/hundred_thousand.S"))
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    child = subprocess.Popen(
        [*LIVEPRO, "run", "--engine=step", "--", program], stdin=slave, stdout=slave, stderr=slave,
        env=environment,
        start_new_session=True, preexec_fn=lambda: os.close(os.open(os.ttyname(slave), os.O_RDWR)),
    )  # fmt: skip
    os.close(slave)
    said = b""
    while True:
        try:
            said += os.read(master, 65536)
        except OSError:  # EIO: the last writer has gone
            break
    os.close(master)
    assert child.wait() == 0
    before, _, summary = said.partition(b"\x1b[1mlivepro")
    assert b"100,000" in summary
    assert b" instructions, " in before
    assert before.endswith(b"\r\x1b[K")


def test_the_program_does_not_see_how_numpy_was_loaded(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "livepro",
        "run",
        "--quiet",
        "--engine",
        "translate",
        "--",
        "/usr/bin/env",
    ]
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    native = subprocess.run(["/usr/bin/env"], env=environment, capture_output=True, text=True)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, native.stdout.splitlines())


def test_what_takes_long_to_load_is_not_loaded_for_nothing(tmp_path: Path) -> None:
    """numpy.ma is a seventh of NumPy, and some of NumPy's functions ask for it (`model.arrays`), as numba
    does. numba translates much new code; it is not loaded where code is put back, nor where none is kept."""
    command = [sys.executable, "-X", "importtime", "-m", "livepro", "run", "--quiet", "--engine", "translate"]
    environment = {**os.environ, "LIVEPRO_CACHE_DIR": str(tmp_path)}
    loaded = []
    for options in (["--no-cache"], [], []):
        done = subprocess.run(
            [*command, *options, "--", "/bin/ls", "/"], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0
        loaded.append({line.split("|")[-1].strip() for line in done.stderr.splitlines()})
    anew, _, put_back = loaded
    assert "numpy" in anew & put_back
    assert not {"numba", "numpy.ma"} & (anew | put_back)
