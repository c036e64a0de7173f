"""`livepro mica` as its user meets it: proved numbers, MICA's files, intervals, what is refused."""

from __future__ import annotations

import csv
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
if platform.machine() != "x86_64":
    pytest.skip("written for x86-64 programs", allow_module_level=True)

from tools import needed

from fixtures import ASM_FLAGS, ROOT, Builder


def livepro(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "livepro", "mica", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def measured(program: Path, tmp_path: Path, *options: str) -> dict[str, Any]:
    """The result of the only thread of a program."""
    done = livepro("--no-files", "-q", "--json", "out.json", *options, "--", str(program), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (process,) = json.loads((tmp_path / "out.json").read_text())["processes"]
    (thread,) = process["threads"]
    result: dict[str, Any] = thread
    return result


def fixture(builder: Builder, name: str, **defined: int) -> Path:
    flags = [f"-D{key}={value}" for key, value in defined.items()]
    return builder.build(ROOT / "mica" / f"{name}.S", [*ASM_FLAGS, *flags])


@pytest.mark.parametrize("engine", ["translate", "step"])
@pytest.mark.parametrize(("streams", "cycles"), [(1, [972, 940, 876, 748]), (4, [243, 235, 219, 187])])
def test_parallelism(engine: str, streams: int, cycles: list[int], builder: Builder, tmp_path: Path) -> None:
    program = fixture(builder, "chain", N=1000, STREAMS=streams)
    thread = measured(program, tmp_path, "--analyses", "ilp,ilp_one", "--ilp-size", "64", "--engine", engine)
    assert thread["instructions"] == thread["events"] == 1003
    assert thread["values"] == {"ilp": cycles, "ilp_one": [cycles[1]]}


def test_stores_are_loaded(builder: Builder, tmp_path: Path) -> None:
    thread = measured(fixture(builder, "memory", N=500), tmp_path)
    assert thread["instructions"] == 1003
    values = thread["values"]
    assert values["ilp"] == [972, 940, 876, 748]
    strides = [*[0] * 7, 0, *[499] * 6]
    assert values["stride"] == [500, *strides, 500, *strides]
    assert values["memfootprint"][:2] == [1, 1]
    assert values["memstackdist"] == [500, 1, 499, *[0] * 18]


@pytest.mark.parametrize(
    ("dialect", "cycles"), [("exact", [972, 940, 876, 748]), ("mica", [486, 470, 438, 374])]
)
def test_parts_of_registers(dialect: str, cycles: list[int], builder: Builder, tmp_path: Path) -> None:
    program = fixture(builder, "parts", N=1000)
    thread = measured(program, tmp_path, "--analyses", "ilp", "--mica-dialect", dialect)
    assert thread["values"]["ilp"] == cycles


@pytest.mark.parametrize("engine", ["translate", "step"])
def test_ends_of_pages_and_repetitions(engine: str, builder: Builder, tmp_path: Path) -> None:
    thread = measured(fixture(builder, "edges"), tmp_path, "--engine", engine)
    assert (thread["instructions"], thread["events"]) == (8, 107)
    values = thread["values"]
    assert values["memfootprint"][:2] == [4, 3]
    assert values["memstackdist"] == [2, 2, *[0] * 19]
    assert values["stride"] == [1, *[0] * 14, 101, 0, *[99] * 6, 0, 99, 99, 99, 100, 100, 100]


def test_register_traffic(builder: Builder, tmp_path: Path) -> None:
    with_, without = (
        measured(fixture(builder, "chain", N=n, STREAMS=1), tmp_path, "--analyses", "reg")["values"]["reg"]
        for n in (1000, 0)
    )
    operands, instances, uses, reads, *ages = (a - b for a, b in zip(with_, without, strict=True))
    assert (operands, instances, uses, reads) == (2000, 1001, 1000, 1000)
    assert ages == [1000] * 7


def test_branches(builder: Builder, tmp_path: Path) -> None:
    thread = measured(fixture(builder, "taken"), tmp_path, "--analyses", "ppm")
    assert thread["instructions"] == 204
    assert thread["values"]["ppm"] == [2, 2, 6, 6, 2, 2, 10, 10, 2, 2, 14, 14, 100, 1, 1]


@pytest.mark.parametrize("engine", ["translate", "step"])
def test_memory(engine: str, builder: Builder, tmp_path: Path) -> None:
    thread = measured(fixture(builder, "walk"), tmp_path, "--engine", engine)
    assert thread["instructions"] == 812
    values = thread["values"]
    strides = [0, 0, 198, 198, 198, 199, 199]
    assert values["stride"] == [200, *strides, *strides, 0, *[0] * 14]
    assert values["memfootprint"][:2] == [100, 2]
    assert values["memstackdist"] == [200, 100, *[0] * 6, 100, *[0] * 12]
    assert values["itypes"][0] == 200


def test_misses_of_caches_of_all_sizes(builder: Builder, tmp_path: Path) -> None:
    """By the comment of walk.S: 100 blocks are read twice; a cache of 128 misses the first reads only."""
    done = livepro("--analyses", "memstackdist", "--", str(fixture(builder, "walk")), cwd=tmp_path)
    assert done.returncode == 0
    rows = [line.split("█")[0].split() for line in done.stderr.splitlines()]
    assert ["<", "128", "100", "50.0", "%", "8", "KiB", "50.0", "%"] in rows
    assert ["first", "100", "50.0", "%"] in rows


@pytest.mark.parametrize("by", ["place", "number"])
@pytest.mark.parametrize("engine", ["translate", "step"])
def test_a_region(engine: str, by: str, builder: Builder, tmp_path: Path) -> None:
    """From the second pass of walk.S on: two instructions, 100 turns of four, two that end the pass, three
    that leave: all but the first 405. Its 100 blocks are new again; the first read is at no distance."""
    program = fixture(builder, "walk")
    with program.open("rb") as file:
        (outer,) = ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name("outer")
    place = f"{program.name}+{outer['st_value']:#x}:2"
    where = ("--start-at", place) if by == "place" else ("--skip", "405")
    thread = measured(program, tmp_path, "--engine", engine, *where)
    assert (thread["instructions"], thread["events"]) == (407, 407)
    values = thread["values"]
    assert values["memstackdist"] == [100, 100, *[0] * 19]
    assert values["memfootprint"][:2] == [100, 2]
    assert values["stride"][:8] == [100, 0, 0, 99, 99, 99, 99, 99]
    assert values["itypes"][0] == 100
    refused = livepro(*where, "--interval-size", "100", "--", str(program), cwd=tmp_path)
    assert refused.returncode == 2
    assert "intervals are of the whole run" in refused.stderr


def test_mica_reads_its_configuration_and_scripts_its_files(builder: Builder, tmp_path: Path) -> None:
    """A mica.conf in the working directory; files to the blank as MICA writes them."""
    (tmp_path / "mica.conf").write_text("analysis_type: all\ninterval_size: 300\n")
    done = livepro("-q", "--mica-dialect", "mica", "--", str(fixture(builder, "walk")), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    files = {path.name: path.read_text() for path in tmp_path.glob("*_pin.out")}
    assert sorted(files) == [
        f"{base}_phases_int_pin.out"
        for base in ("ilp", "itypes", "memfootprint", "memstackdist", "ppm", "reg", "stride")
    ]
    leads = {name: [line.split(" ")[0] for line in text.splitlines()[:3]] for name, text in files.items()}
    assert leads["ilp_phases_int_pin.out"] == ["300", "300", "212"]
    assert leads["itypes_phases_int_pin.out"] == ["300", "300", "212"]
    assert leads["ppm_phases_int_pin.out"][:2] == leads["reg_phases_int_pin.out"][:2] == ["300", "300"]
    # Instruction 4 * k is the kth read, 404 + 4 * k the kth of the second pass, whose blocks are not new.
    assert leads["stride_phases_int_pin.out"] == ["75", "74", "51"]
    references = [line.split()[:2] for line in files["memstackdist_phases_int_pin.out"].splitlines()]
    assert references == [["75", "75"], ["74", "25"], ["51", "0"]]
    assert files["memfootprint_phases_int_pin.out"].splitlines()[0].split()[:2] == ["75", "2"]
    assert files["memstackdist_phases_int_pin.out"].endswith(" ")
    assert files["ppm_phases_int_pin.out"].endswith("\n ")


def test_intervals_add_up_and_are_rows(builder: Builder, tmp_path: Path) -> None:
    """Options hold over the mica.conf; each file of intervals leads with their instructions."""
    (tmp_path / "mica.conf").write_text("analysis_type: ppm\ninterval_size: full\nappend_pid: yes\n")
    done = livepro(
        *("-d", "results", "--analyses", "stride,memstackdist,memfootprint", "--interval-size", "300"),
        *("--csv", "rows.csv", "--json", "out.json", "--", str(fixture(builder, "walk"))),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "3 intervals of 300 instructions" in done.stderr
    (process,) = json.loads((tmp_path / "out.json").read_text())["processes"]
    (thread,) = process["threads"]
    name = f"stride_phases_int_{process['pid']}_pin.out"
    rows = [list(map(int, line.split())) for line in (tmp_path / "results" / name).read_text().splitlines()]
    assert [row[0] for row in rows] == [300, 300, 212]
    assert [sum(column) for column in zip(*rows, strict=True)] == [812, *thread["values"]["stride"]]
    assert thread["values"]["memfootprint"][:2] == [100, 2]  # of the whole: no sum
    with (tmp_path / "rows.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [(row["interval"], row["instructions"]) for row in table] == [
        ("0", "300"),
        ("1", "300"),
        ("2", "212"),
    ]
    assert [float(row["memfootprint: data, blocks of 64 B"]) for row in table] == [75, 74, 51]


def test_each_thread_has_files_of_its_own(builder: Builder, tmp_path: Path) -> None:
    done = livepro("--analyses", "itypes", "--", str(builder.hosted("pthreads", "-static")), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "total 10000\n")
    names = sorted(path.name for path in tmp_path.glob("itypes_full*"))
    first = "itypes_full_int_pin.out"
    assert names == [first, *(f"{first}.{n}" for n in range(2, 6))]
    assert "threads    instructions  tid" in done.stderr


def test_a_process_that_runs(builder: Builder, tmp_path: Path) -> None:
    with subprocess.Popen(
        ["sh", "-c", "while :; do :; done"], stdout=subprocess.DEVNULL, cwd=tmp_path
    ) as shell:
        done = livepro("--pid", str(shell.pid), "--duration", "0.3s", "--analyses", "ilp", cwd=tmp_path)
        assert shell.poll() is None
        shell.kill()
    assert done.returncode == 0, done.stderr
    assert "Instruction-level parallelism" in done.stderr
    assert (tmp_path / "ilp_full_int_pin.out").read_text().count(" ") == 4


def test_beside_all_that_is_counted_of_a_process_that_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "livepro", "attach", "--mica", "--duration", "0.5s"]
    command += ["--json", "all.json"]
    with subprocess.Popen(["sh", "-c", "while :; do :; done"], stdout=subprocess.DEVNULL) as shell:
        done = subprocess.run([*command, str(shell.pid)], cwd=tmp_path, capture_output=True, text=True)
        assert shell.poll() is None
        shell.kill()
    assert done.returncode == 0, done.stderr
    assert "Instruction-level parallelism" in done.stderr
    document = json.loads((tmp_path / "all.json").read_text())
    (process,) = document["analyses"]["mica"]
    (thread,) = process["result"]["threads"]
    assert thread["instructions"] == document["instructions"] > 0


@pytest.mark.parametrize(
    ("conf", "options", "said"),
    [
        ("analysis_type: all\nintervall_size: 3\n", (), "mica.conf:2: there is no key 'intervall_size'."),
        ("analysis_type: everything\n", (), "mica.conf:1: there is no analysis 'everything'."),
        ("interval_size: full\n", (), "mica.conf does not say what to analyse. Add `analysis_type: all`"),
        (
            "analysis_type: all\nblock_size 6\n",
            (),
            "mica.conf:2: 'block_size 6' is not a line",
        ),
        ("analysis_type: all\ninterval_size: 0\n", (), "mica.conf:2: interval_size cannot be '0'."),
        ("analysis_type: all\nappend_pid: maybe\n", (), "mica.conf:2: append_pid cannot be 'maybe'."),
        ("analysis_type: ilp_one\n", (), "mica.conf:1: ilp_one needs a window."),
        ("analysis_type: all\nblock_size: 77\n", (), "A block size of 77 is not possible."),
        ("", ("--analyses", "ilp,everything"), "MICA has no analysis 'everything'."),
        ("", ("--analyses", "ilp_one"), "A window of 0 instructions is not possible."),
        ("", ("--interval-size", "0"), "'0' is too small, the least is 1"),
        ("", ("--page-size", "-1"), "A page size of -1 is not possible."),
        ("", ("-d", "/proc/nowhere"), "/proc/nowhere"),
        ("", ("--children", "follow"), "The files of several processes would have the same names."),
        ("", ("--conf", "none.conf"), "none.conf"),
    ],
)
def test_what_is_wrong_is_said_before_the_program_starts(
    conf: str, options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    if conf:
        (tmp_path / "mica.conf").write_text(conf)
    done = livepro(*options, "--", "touch", "started", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("livepro: ")
    assert not (tmp_path / "started").exists()


@pytest.mark.long(seconds=60)
def test_a_java_program(tmp_path: Path) -> None:
    """`livepro mica -- java -jar`: nothing of it is known beforehand but what must agree with what."""
    compiler = needed("javac", "openjdk-17-jdk-headless")
    (tmp_path / "Sum.java").write_text(
        "public class Sum { public static void main(String[] a) { long s = 0; "
        'for (int i = 0; i < 2000000; i++) s += i % 7; System.out.println("sum " + s); } }'
    )
    subprocess.run([compiler, "Sum.java"], cwd=tmp_path, check=True)
    (tmp_path / "manifest").write_text("Main-Class: Sum\n")
    subprocess.run(["jar", "cfm", "app.jar", "manifest", "Sum.class"], cwd=tmp_path, check=True)
    options = ("-d", "files", "--json", "out.json", "--", "java", "-XX:+UseSerialGC", "-jar", "app.jar")
    done = livepro(*options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "sum 5999995\n"), done.stderr
    (process,) = json.loads((tmp_path / "out.json").read_text())["processes"]
    threads, total = process["threads"], process["total"]
    assert len(threads) > 5
    assert total["instructions"] == sum(thread["instructions"] for thread in threads) > 20_000_000
    values = total["values"]
    accesses = values["stride"][0]
    assert accesses > 5_000_000
    assert values["ppm"][12] > 2_000_000  # the loop's branches
    for name in ("ilp", "itypes", "ppm", "stride", "memstackdist"):
        sums = [sum(column) for column in zip(*(t["values"][name] for t in threads), strict=True)]
        assert sums == values[name]
    for name in ("ilp", "reg", "stride"):
        assert len(list((tmp_path / "files").glob(f"{name}_full_int_pin.out*"))) == len(threads)
