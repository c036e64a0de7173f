"""The names that JIT compilers give their code: perf maps and jitdump files."""

from __future__ import annotations

import os
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tools import needed

import livepro
from livepro.linux.proc import AddressSpace, Mapping
from livepro.names.generated import GeneratedNames
from livepro.names.jitdump import JitDump
from livepro.names.perfmap import GrowingFile, NamedCode, PerfMap, parse_line

SOURCE = Path(__file__).parents[2] / "fixtures/names/jit.c"
MINE = os.getuid(), 0.0


@pytest.fixture(scope="module")
def jit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("jit") / "jit"
    subprocess.run([needed("cc", "gcc"), "-O1", "-o", str(out), str(SOURCE)], check=True)
    return out


@pytest.fixture
def cleared() -> Iterator[list[int]]:
    """Process ids whose perf maps are removed afterwards."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def counted(command: list[str], pids: list[int], **options: object) -> Counter[str]:
    """Instructions of the code that a program makes, by its name."""
    process = livepro.run(command, **options).processes[0]  # type: ignore[arg-type]
    pids.append(process.pid)
    table, out = process.table, Counter[str]()
    for thread in process.threads:
        counts = thread.block_instructions(table)
        for row, module in enumerate(table.module):
            if not module.startswith(("/", "[v")):
                out[table.function[row]] += int(counts[row])
    return out


@pytest.mark.parametrize("way", ["map", "dump"])
def test_new_code_in_the_place_of_old_counts_under_its_own_name(
    jit: Path, tmp_path: Path, cleared: list[int], way: str
) -> None:
    found = counted([str(jit), way, str(tmp_path)], cleared, engine="translate", cache=False)
    second = "made::second()" if way == "map" else "made::second"
    assert found == {"made::first(int)": 2002, second: 4002, "made::third": 6002}


@pytest.mark.parametrize("engine", ["block", "step"])
@pytest.mark.parametrize("way", ["map", "dump"])
def test_engines_that_do_not_translate_name_places_by_what_was_there_last(
    jit: Path, tmp_path: Path, cleared: list[int], way: str, engine: str
) -> None:
    found = counted([str(jit), way, str(tmp_path)], cleared, engine=engine, demangle=False)
    second = "_ZN4made6secondEv" if way == "map" else "made::second"
    assert found == {second: 4002, "made::third": 2002 + 6002}


def test_a_map_that_is_another_process_s_or_older_than_it_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "perf-1.map"
    path.write_text("1000 10 old\n")
    old, theirs = os.stat(path).st_mtime + 10, os.getuid() + 1
    assert PerfMap(GrowingFile(str(path), os.getuid(), old)).news() == []
    if os.getuid() != 0:  # root's files are believed
        assert PerfMap(GrowingFile(str(path), theirs, 0.0)).news() == []
    assert PerfMap(GrowingFile(str(path), *MINE)).news() == [NamedCode(0x1000, 0x1010, "old")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"7f00 1a LazyCompile:*f a.js:1:2", NamedCode(0x7F00, 0x7F1A, "LazyCompile:*f a.js:1:2")),
        (b"0x7f00 0x10 py::f:/a.py", NamedCode(0x7F00, 0x7F10, "py::f:/a.py")),
        (b"7f00 0 empty", None),
        (b"7f00 10", None),
        (b"xyz 10 name", None),
        (b"7f00 -1 name", None),
        (b"", None),
        (b"\xff\xfe 10 \xff", None),
    ],
)
def test_lines(line: bytes, code: NamedCode | None) -> None:
    assert parse_line(line) == code


def test_a_map_is_read_as_it_grows_and_anew_when_it_is_another(tmp_path: Path) -> None:
    path = tmp_path / "perf-1.map"
    source = PerfMap(GrowingFile(str(path), *MINE))
    assert source.news() == []
    path.write_text("1000 10 a\n2000 10 hal")
    assert [code.name for code in source.news()] == ["a"]
    assert source.news() == []
    with path.open("a") as file:
        file.write("f\n3000 10 c\n")
    assert [code.name for code in source.news()] == ["half", "c"]
    path.write_text("4000 10 d\n")
    assert [code.name for code in source.news()] == ["d"]


def record(order: str, kind: int, *values: int, rest: bytes = b"") -> bytes:
    body = struct.pack(f"{order}II{len(values)}Q", 1, 1, *values) + rest
    return struct.pack(f"{order}IIQ", kind, 16 + len(body), 0) + body


@pytest.mark.parametrize("order", "<>")
def test_a_dump_is_read_in_pieces_of_any_size(tmp_path: Path, order: str) -> None:
    path = tmp_path / "jit-1.dump"
    data = struct.pack(f"{order}IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)
    data += record(order, 0, 0x1000, 0x1000, 4, 7, rest=b"first\0code")
    data += record(order, 2, 1, 2)  # debug information: skipped
    data += record(order, 1, 0x9000, 0x1000, 0x9000, 4, 7)
    data += record(order, 3)  # closed
    expected = [NamedCode(0x1000, 0x1004, "first"), NamedCode(0x9000, 0x9004, "first")]
    for step in (1, 7, len(data)):
        path.write_bytes(b"")
        source, found = JitDump(GrowingFile(str(path), *MINE)), []
        for at in range(0, len(data), step):
            with path.open("ab") as file:
                file.write(data[at : at + step])
            found += source.news()
        assert found == expected
    path.write_bytes(b"no such thing" * 10)
    assert JitDump(GrowingFile(str(path), *MINE)).news() == []


def test_later_entries_take_the_place_of_what_they_overlap(tmp_path: Path) -> None:
    dump = tmp_path / "jit-5.dump"
    path = f"/tmp/perf-{os.getpid()}.map"
    mapping = Mapping(0, 4096, True, False, True, False, 0, 1, str(dump))
    names = GeneratedNames(SimpleNamespace(pid=os.getpid(), space=AddressSpace([mapping])))
    try:
        Path(path).write_text("1000 100 a\n1100 100 b\n1200 100 c\n")
        assert names.look() == []
        assert [names.find(pc) for pc in (0xFFF, 0x1000, 0x10FF, 0x1100, 0x12FF, 0x1300)] == [
            "", "a", "a", "b", "c", ""
        ]  # fmt: skip
        with open(path, "a") as file:
            file.write("10f0 120 d\n1000 10 a2\n10f0 120 d\n")
        assert names.look() == [(0x1000, 0x1100), (0x1100, 0x1200), (0x1200, 0x1300)]
        assert [names.find(pc) for pc in (0x1000, 0x1010, 0x10EF, 0x10F0, 0x120F, 0x1210)] == [
            "a2", "", "", "d", "d", ""
        ]  # fmt: skip
        header = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)
        dump.write_bytes(header + record("<", 0, 0x1000, 0x1000, 16, 1, rest=b"e\0"))
        assert names.look() == [(0x1000, 0x1010)]
        assert names.find(0x1000) == "e"
    finally:
        os.unlink(path)


@pytest.mark.long
@pytest.mark.parametrize("option", ["--perf-basic-prof", "--perf-prof"])
def test_javascript_by_function(
    tmp_path: Path, cleared: list[int], monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)  # V8 writes its dump there
    program = tmp_path / "hot.js"
    program.write_text(
        "function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }\n"
        "let t = 0; for (let j = 0; j < 200; j++) t ^= hotLoop(20000);\n"
    )
    found = counted([needed("node", "nodejs"), option, str(program)], cleared)
    hot = sum(count for name, count in found.items() if "hotLoop" in name)
    # When V8 compiles is a matter of time, and with it how much is executed where. All of it has a name.
    assert hot > 0.5 * sum(found.values())
    assert found[""] < 0.01 * sum(found.values())
