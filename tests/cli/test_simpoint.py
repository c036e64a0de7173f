"""`livepro simpoint`, from files and from real programs."""

from __future__ import annotations

import json
import platform
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from simpoint import synthetic

import livepro
from livepro.cli.main import main
from livepro.formats import expbbv, files, pin_regions, simpoint
from livepro.simpoint import Vectors, read

LIVEPRO = [sys.executable, "-m", "livepro", "simpoint"]


def vector_file(path: Path, sequence: list[int], noise: float = 0.05) -> str:
    """A file as exp-bbv writes it; returns its name."""
    vectors = synthetic.vectors(sequence, noise=noise)
    rows = (vectors.row(n) for n in range(len(vectors)))
    with files.open_text(str(path)) as out:
        trailer = expbbv.Trailer(1, len(vectors), 1000, int(vectors.instructions.sum()), 0, 0, 0)
        expbbv.write_vectors(out, ((vectors.ids[c], n.astype("uint64")) for c, n in rows), trailer)
    return str(path)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


PHASES = [0] * 20 + [1] * 30 + [0] * 10 + [2] * 40


def test_from_a_file(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = vector_file(there / "bb.out.gz", PHASES)
    assert main(["simpoint", name, "--json", "study.json", "--labels", "labels"]) == 0
    out = capsys.readouterr().out
    assert "3 points for 100 intervals" in out
    points, weights = simpoint.read_simpoints("results.simpoints"), simpoint.read_weights("results.weights")
    assert [p.cluster for p in points] == [w.cluster for w in weights] == [0, 1, 2]
    study = json.loads((there / "study.json").read_text())
    assert [p["interval"] for p in study["points"]] == [p.interval for p in points]
    labels = [int(line) for line in (there / "labels").read_text().splitlines()]
    assert labels == PHASES == study["labels"]
    assert [labels[p.interval] for p in points] == [0, 1, 2]
    vectors = read(name)
    assert isinstance(vectors, Vectors)
    share = vectors.instructions[[n == 1 for n in PHASES]].sum() / vectors.instructions.sum()
    assert weights[1].weight == pytest.approx(share)
    # Each phase has its lane: the run's first fifth is phase 0, the last two fifths are phase 2.
    lanes = [line for line in out.splitlines() if "█" in line and "%" not in line]
    assert [line.split()[0] for line in lanes] == ["0", "1", "2"]
    assert lanes[2].rstrip().endswith("█" * 35)


def test_a_choice_is_proved(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = vector_file(there / "bb", PHASES)
    assert main(["simpoint", name, "-o", "mine", "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["simpoint", name, "--check", "mine.simpoints", "mine.weights", "--max-error", "10%"]) == 0
    assert "block profile" in capsys.readouterr().out
    # A choice that leaves out two of three phases is caught.
    (there / "bad.simpoints").write_text("3 0\n")
    (there / "bad.weights").write_text("1 0\n")
    assert main(["simpoint", name, "--check", "bad.simpoints", "bad.weights", "--max-error", "10%"]) == 1
    assert "more than 10 %" in capsys.readouterr().err
    assert not (there / "results.simpoints").exists()


def test_beside_a_table(there: Path) -> None:
    """The vectors see one phase; the misses tell two apart."""
    name = vector_file(there / "bb", [0] * 40, noise=0.0)
    (there / "misses").write_text("".join(f"{5 if n < 30 else 90}\n" for n in range(40)))
    assert main(["simpoint", name, "--with", "misses:2", "-q"]) == 0
    assert [w.weight for w in simpoint.read_weights("results.weights")] == [0.75, 0.25]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent"], "absent cannot be read"),
        (["bb", "--k", "101"], "101 clusters are not possible: of 100 intervals"),
        (["bb", "--max-k", "101"], "Up to 101 phases are not possible with 100 intervals"),
        (["bb", "--k", "3", "--max-error", "2%"], "--k and --max-error both say how many"),
        (["bb", "--k", "3", "--max-k", "2"], "--k 3 is more than --max-k 2"),
        (["bb", "--max-error", "0"], "'0' is no part of a whole (write 2% or 0.02)"),
        (["bb", "--coverage", "95"], "'95' is no part of a whole"),
        (["bb", "--seed", "-1"], "'-1' is not a whole number from 0"),
        (["bb", "--with", "bb"], "--with bb is a file of block vectors"),
        (["bb", "--with", "one"], "bb has 100 intervals, one has 1"),
        (["one", "--pc", "one"], "one has no blocks that --pc could name"),
        (["bb", "-o", "no/where"], "cannot be written"),
        (["bb", "--json", "results.weights"], "name the same file"),
        (["bb", "--check", "far", "weights"], "far:1: the point is interval 100, the run has only 100"),
        (["bb", "--check", "near", "other"], "other:1: the weight is of cluster 7"),
        (["run"], "There is no command to run"),
        (["run", "--save", "x.txt", "--", "true"], "--save x.txt is no JSON file by its name"),
        (["run", "--thread", "main", "--", "true"], "--thread main: no such thread"),
        (["run", "--I1", "32768,8,64", "--", "true"], "--I1 is for the simulator. Ask for that, too"),
        (["run", "--cachesim", "--D1", "5,6,7", "--", "true"], "--D1"),
        (["run", "--mica", "ipc", "--", "true"], "ipc"),
        (["run", "--cachesim", "--skip", "5", "--", "true"], "--skip and --count yet"),
        (["run", "--thread", "together", "--mica", "ppm", "--", "true"], "--mica does not go with --thread"),
    ],
)
def test_bad_input(there: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    vector_file(there / "bb", PHASES)
    for name, text in {
        "one": "5\n",
        "far": "100 0\n",
        "near": "1 0\n",
        "weights": "1 0\n",
        "other": "1 7\n",
    }.items():
        (there / name).write_text(text)
    assert main(["simpoint", *arguments]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert says in error
    assert not (there / "results.simpoints").exists()


@pytest.mark.parametrize("argv", [["--help"], ["run", "--help"]])
def test_help(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simpoint", *argv]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: livepro simpoint")
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "examples:" in out


def test_a_real_program(there: Path) -> None:
    """gzip compresses text, then noise: at least two phases. Everything fits what `livepro run` counts."""
    noise = random.Random(1)
    text = b"the quick brown fox jumps over the lazy dog " * 12000
    (there / "in").write_bytes(text + noise.randbytes(600_000))
    shutil.copy("in", "native")
    subprocess.run(["gzip", "-n", "native"], check=True)
    options = ["--interval-size", "500K", "--save", "v.json.gz", "--json", "s.json", "--no-aslr"]
    options += ["--loops", "5", "--pin-csv", "r.csv"]
    done = subprocess.run(
        [*LIVEPRO, "run", *options, "--", "gzip", "-n", "in"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert (there / "in.gz").read_bytes() == (there / "native.gz").read_bytes()
    study = json.loads((there / "s.json").read_text())
    vectors = read("v.json.gz")
    assert isinstance(vectors, Vectors)
    assert vectors.blocks is not None
    assert set(vectors.instructions[:-1].tolist()) == {500_000}
    assert study["instructions"] == sum(vectors.instructions.astype(int).tolist())
    totals = {m.name: n for m, n in zip(vectors.blocks.metrics, vectors.blocks.totals, strict=True)}
    whole = {m["name"]: m["whole"] for m in study["proof"]["metrics"]}
    assert {n: 1000 * t / study["instructions"] for n, t in totals.items()} == whole
    # What the vectors say, block by block, is the run but for the executions that were left half-way.
    by_vectors = vectors.total() @ vectors.blocks.density
    left = [abs(a - b) for a, b in zip(by_vectors.tolist(), vectors.blocks.totals, strict=True)]
    assert max(left) < 100
    assert study["k"] >= 2
    labels = study["labels"]
    noisy = Counter(labels[len(labels) // 2 :]).most_common(1)[0][0]
    assert noisy not in labels[:30]
    # Pin's regions are the points, and the loops lie in the program itself.
    regions = pin_regions.read("r.csv")
    assert [(r.thread, r.start, r.end - r.start, r.weight) for r in regions] == [
        (0, p["start"], p["instructions"], p["weight"]) for p in study["points"]
    ]
    loops = done.stderr.partition("\nLoops")[2].splitlines()[2:7]
    assert len(loops) == 5
    assert all(re.match(r"  (gzip|libc\.so\.6)\+0x[0-9a-f]+ ", line) for line in loops), loops
    # Choosing again from the file gives the same.
    assert main(["simpoint", "v.json.gz", "--json", "again.json", "-o", "again", "-q"]) == 0
    assert json.loads((there / "again.json").read_text()) == study
    assert (there / "again.simpoints").read_text() == (there / "results.simpoints").read_text()
    assert (there / "again.weights").read_text() == (there / "results.weights").read_text()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")
def test_what_is_measured_is_proved_too(there: Path) -> None:
    """The simulator's misses and MICA's numbers of the same run: of the whole run, they are those that a run
    without intervals tells."""
    model, mica = pytest.importorskip("livepro.cachesim.model"), pytest.importorskip("livepro.mica.model")
    noise = random.Random(5)
    (there / "in").write_bytes(bytes(40_000) + noise.randbytes(20_000) + bytes(40_000))
    measured = ["--cachesim", "--branch-sim", "--mica", "ppm,memfootprint", "--json", "study.json"]
    options = ["--interval-size", "100k", "--no-aslr", "-q"]
    command = ["gzip", "-nkc", "in"]
    assert main(["simpoint", "run", *options, *measured, "--", *command]) == 0
    study = json.loads((there / "study.json").read_text())
    found = {(m["group"], m["name"]): m for m in study["proof"]["metrics"]}
    analyses = [model.CacheSim(branches=True), mica.Mica(("ppm",))]
    result = livepro.run(command, aslr=False, analyses=analyses)
    totals = result.analyses["cachesim"][0]["result"]["totals"]
    assert study["instructions"] == totals["Ir"] == result.instructions
    for name, events in {
        "D1 misses": ("D1mr", "D1mw"),
        "LL misses": ("ILmr", "DLmr", "DLmw"),
        "mispredicted": ("Bcm", "Bim"),
    }.items():
        rate = 1000 * sum(totals[event] for event in events) / totals["Ir"]
        # Sums of parts, but for their rounding.
        assert found["simulated", name]["whole"] == pytest.approx(rate, rel=1e-9)
    values = result.analyses["mica"][0]["result"]["total"]["values"]["ppm"]
    rate = 1000 * values[0] / totals["Ir"]
    assert found["ppm", "GAg h=4 mispredicted"]["whole"] == pytest.approx(rate, rel=1e-9)
    assert not found["memfootprint", "data pages"]["rate"]


def test_the_exit_status_is_the_programs(there: Path) -> None:
    program = "import sys; sum(range(10**5)); sys.exit(7)"
    command = [*LIVEPRO, "run", "--interval-size", "1M", "-q", "--", sys.executable, "-S", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (7, "")
    assert simpoint.read_simpoints("results.simpoints")


def test_a_run_of_a_single_interval_tells_a_better_size(there: Path) -> None:
    done = subprocess.run([*LIVEPRO, "run", "--", "true"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0
    assert "There are only 1 intervals of 100,000,000 instructions" in done.stderr
    assert (there / "results.simpoints").read_text() == "0 0\n"
    assert (there / "results.weights").read_text() == "1 0\n"


def test_every_thread(there: Path) -> None:
    program = "import threading\nt = threading.Thread(target=sum, args=(range(10**5),))\nt.start()\nt.join()"
    command = [
        *LIVEPRO,
        "run",
        "--interval-size",
        "500K",
        "--thread",
        "all",
        "--",
        sys.executable,
        "-S",
        "-c",
        program,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert simpoint.read_simpoints("results.simpoints")
    assert simpoint.read_simpoints("results.2.simpoints")
