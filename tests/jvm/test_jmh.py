"""The profiler for JMH, compiled against stubs of JMH's interfaces and run as JMH runs it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tools import needed

from livepro import inprocess
from livepro.cli.api import main

ROOT = Path(__file__).parents[2]
STUBS = ROOT / "fixtures/jmh"
LIVEPRO = Path(sys.executable).with_name("livepro")
ITERATIONS, OPERATIONS = 3, 600


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profiler as `livepro api --jmh` copies it, compiled with JMH's stubs and the harness."""
    sources = tmp_path_factory.mktemp("sources")
    assert main(["--jmh", str(sources)]) == 0
    assert {path.name for path in sources.iterdir()} == {inprocess.JMH.name, inprocess.JAVA.name}
    out = tmp_path_factory.mktemp("classes")
    files = [*sources.iterdir(), *STUBS.rglob("*.java")]
    javac = needed("javac", "openjdk-17-jdk-headless")
    command = [
        javac,
        "--release",
        "11",
        "-Xlint:all,-options,-serial,-rawtypes",
        "-Werror",
        "-d",
        out,
        *files,
    ]
    subprocess.run(command, check=True)
    return out


def harness(classes: Path, options: str, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    command = ["java", "-cp", str(classes), "Harness", options, *words]
    environment = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(Path.home())}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def test_instructions_per_operation_of_measured_iterations_alone(classes: Path, tmp_path: Path) -> None:
    table = tmp_path / "counts.csv"
    options = f"csv={table};json={tmp_path}"
    done = harness(classes, options, "-XX:+UseSerialGC", "-Xshare:auto", path=str(LIVEPRO.parent))
    assert (done.returncode, done.stderr) == (0, "")
    prefix, *lines = done.stdout.splitlines()
    report = tmp_path / "Harness.axpy-Throughput-0.json"
    assert prefix == f"prefix {LIVEPRO} run --quiet --no-code --json {report} --"

    # Counting was paused behind the last iteration: the snapshot that it took is all there is.
    counts = json.loads(report.read_text())
    snapshots = counts["snapshots"]
    assert [snapshot["label"] for snapshot in snapshots] == ["iteration 1", "iteration 2", "iteration 3"]
    total = counts["instructions"]
    assert snapshots[-1]["instructions"] == total
    assert snapshots[0]["instructions"] < snapshots[1]["instructions"] < total

    # What is executed in warm-up, and between iterations, is not in it. (By its end it is compiled.)
    (process,) = counts["processes"]
    names = {function["function"] for function in process["functions"]}
    assert "Harness.axpy(F)V" in names
    assert not any("warmUpOnly" in name for name in names)

    figures = {}
    for line in lines:
        label, value, unit = line.rsplit(" ", 2)
        figures[label] = float(value), unit
    assert figures["livepro:instructions"] == (total / OPERATIONS, "#/op")
    rows = [row for thread in process["threads"] for row in thread["simd"]]
    assert figures["livepro:SIMD"] == (sum(row["count"] for row in rows) / OPERATIONS, "#/op")
    by_set: dict[str, int] = {}
    for row in rows:
        width = "scalar" if row["scalar"] else row["width"] or "other"
        label = f"livepro:SIMD:{row['set']}:{width}"
        by_set[label] = by_set.get(label, 0) + row["count"]
    shares: dict[str, int] = {}
    for row in process["origins"]:
        label = f"livepro:{row['origin']}"
        shares[label] = shares.get(label, 0) + row["instructions"]
    assert shares["livepro:C2"] > 0
    assert figures == {
        **{label: figures[label] for label in ("livepro:instructions", "livepro:SIMD")},
        **{label: (count / OPERATIONS, "#/op") for label, count in by_set.items() if count},
        **{label: (100 * count / total, "%") for label, count in shares.items() if count},
    }
    with table.open() as file:
        written = list(csv.DictReader(file))
    assert {row["benchmark"] for row in written} == {"Harness.axpy-Throughput"}
    assert {row["operations"] for row in written} == {str(OPERATIONS)}
    assert {row["metric"]: (float(row["value"]), row["unit"]) for row in written} == figures


def test_a_tier_alone_is_asked_for_and_the_report_is_removed(classes: Path) -> None:
    # /bin/true takes livepro's place: only the command in front of the forked JVM is looked at.
    done = harness(classes, "tier=c2;livepro=/bin/true")
    words = done.stdout.splitlines()[0].split()
    assert words[:7] == ["prefix", "/bin/true", "run", "--quiet", "--no-code", "--tier", "c2"]
    assert (words[7], words[9]) == ("--json", "--")
    assert "livepro's counts cannot be read" in done.stderr  # it wrote none; JMH's run goes on
    assert done.returncode == 0
    assert not Path(words[8]).exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("teer=c2", "livepro has no option 'teer=c2'. Its options are tier=LIST"),
        ("", "There is no livepro on the PATH."),
    ],
)
def test_what_is_wrong_is_said(classes: Path, options: str, said: str) -> None:
    done = harness(classes, options)
    assert done.returncode == 1
    assert said in done.stderr


def test_without_livepro_the_forked_jvm_counts_nothing(classes: Path) -> None:
    done = harness(classes, "--forked", "livepro=none")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
