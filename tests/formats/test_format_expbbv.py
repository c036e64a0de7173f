"""Vector and pc files: what we write, what we read, and the same from Valgrind's exp-bbv itself."""

from __future__ import annotations

import io
import random
import subprocess
from itertools import pairwise
from pathlib import Path

import model_builders as mb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from livepro.analyses import bbv
from livepro.analyses.bbv import CutRule, Dialect
from livepro.errors import LiveproError
from livepro.formats import expbbv
from livepro.formats.expbbv import PcEntry, Trailer
from livepro.formats.files import name_for_thread, open_text

TRAILER = Trailer(
    thread=2, intervals=20, interval_size=100, instructions=2021, reps=16, unique_reps=4, fldcw=1
)

GOLDEN = (
    "T:1:3   :2:98   \n"
    "T:2:100   \n"
    "\n"
    "\n"
    "# Thread 2\n"
    "#   Total intervals: 20 (Interval Size 100)\n"
    "#   Total instructions: 2021\n"
    "#   Total reps: 16\n"
    "#   Unique reps: 4\n"
    "#   Total fldcw instructions: 1\n"
    "\n"
)


def pairs(*numbers: tuple[int, int]) -> expbbv.Pairs:
    return np.array([n[0] for n in numbers], np.int64), np.array([n[1] for n in numbers], np.uint64)


def plain(vectors: object) -> list[list[tuple[int, int]]]:
    return [list(zip(ids.tolist(), counts.tolist(), strict=True)) for ids, counts in vectors]  # type: ignore[attr-defined]


def rewritten(file: expbbv.VectorFile) -> str:
    out = io.StringIO()
    assert file.trailer is not None
    expbbv.write_vectors(out, file.vectors, file.trailer)
    return out.getvalue()


def test_written_to_the_letter() -> None:
    out = io.StringIO()
    written = expbbv.write_vectors(out, [pairs((1, 3), (2, 98)), pairs((2, 100))], TRAILER)
    assert out.getvalue() == GOLDEN
    assert written == (2, len("T:1:3   :2:98   \n"))


def test_without_vectors_only_the_trailer() -> None:
    out = io.StringIO()
    assert expbbv.write_vectors(out, [], TRAILER) == (0, 0)
    assert out.getvalue() == GOLDEN[GOLDEN.index("\n\n\n") + 1 :]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_read_back(tmp_path: Path, suffix: str) -> None:
    name = str(tmp_path / f"bb{suffix}")
    with open_text(name) as out:
        out.write(GOLDEN)
    file = expbbv.read_vectors(name)
    assert plain(file.vectors) == [[(1, 3), (2, 98)], [(2, 100)]]
    assert file.trailer == TRAILER
    assert rewritten(file) == GOLDEN


# How long it takes to make up inputs says how busy the machine is.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2**31), st.integers(0, 2**64 - 1)), max_size=8), max_size=8)
)
def test_any_vectors_round_trip(given_vectors: list[list[tuple[int, int]]]) -> None:
    out = io.StringIO()
    expbbv.write_vectors(out, [pairs(*v) for v in given_vectors], TRAILER)
    assert plain(expbbv.iter_vectors(io.StringIO(out.getvalue()))) == given_vectors


def test_other_writers_lines() -> None:
    """The Valgrind manual's own example separates with one space; PinPoints adds lines of other letters."""
    text = "# comment\nT:45:1024 :189:99343\nM: 1 2\nT:11:78573 :15:1353  :56:1\nT\nT:0:5"
    assert plain(expbbv.iter_vectors(io.StringIO(text))) == [
        [(45, 1024), (189, 99343)],
        [(11, 78573), (15, 1353), (56, 1)],
        [],
        [(0, 5)],
    ]


@pytest.mark.parametrize(
    "line",
    ["T:1", "T:1:2:3", "T 5", "T:1:2 314:5", "T:-1:2", "T:1:0x2", "Thread", "T:1:18446744073709551616"],
)
def test_malformed_vectors_are_located(tmp_path: Path, line: str) -> None:
    (tmp_path / "bb").write_text(f"T:1:2   \n{line}\n")
    with pytest.raises(LiveproError, match=r"/bb:2: the line "):
        expbbv.read_vectors(str(tmp_path / "bb"))


def test_no_trailer(tmp_path: Path) -> None:
    (tmp_path / "bb").write_text("T:1:2   \n# something else\n")
    assert expbbv.read_vectors(str(tmp_path / "bb")).trailer is None


def test_a_line_as_long_as_simpoint_reads_gives_no_warning() -> None:
    assert expbbv.simpoint_warning("bb", expbbv.Written(1, 2**20 - 1)) == ""


def test_a_line_too_wide_for_simpoint_is_warned_about() -> None:
    number = 2**16
    ids = np.arange(10**5, 10**5 + number)  # ":100000:1000000   ": 18 characters a pair
    written = expbbv.write_vectors(io.StringIO(), [(ids, np.full(number, 10**6, np.uint64))], TRAILER)
    assert written.widest == 1 + 18 * number + 1
    assert (
        "The longest vector of bb has 1179650 characters; SimPoint 3.2 reads 1048575"
        in expbbv.simpoint_warning("bb", written)
    )


def test_pc_file(tmp_path: Path) -> None:
    table = mb.table(
        (0x7FFF_0000_0F00, [mb.NOP], "", "[vdso]"),
        (0x401000, [mb.NOP], "std::vector<int>::push_back(int)", "/bin/prog"),
        (0x40100A, [mb.RET], "main", "/bin/prog"),
    )
    text = "F:2:401000:std::vector<int>::push_back(int)\nF:3:40100a:main\nF:1:7fff00000f00:\n"
    out = io.StringIO()
    expbbv.write_pc(out, expbbv.pc_entries(table))
    assert out.getvalue() == text
    (tmp_path / "pc").write_text(text)
    assert expbbv.read_pc(str(tmp_path / "pc")) == [
        PcEntry(2, 0x401000, "std::vector<int>::push_back(int)"),
        PcEntry(3, 0x40100A, "main"),
        PcEntry(1, 0x7FFF_0000_0F00, ""),
    ]


@pytest.mark.parametrize("line", ["F:1:401000", "F:x:401000:main", "F:1:40g:main", "G:1:2:f", ""])
def test_malformed_pc_lines_are_located(tmp_path: Path, line: str) -> None:
    (tmp_path / "pc").write_text(f"F:1:401000:main\n{line}\n")
    with pytest.raises(LiveproError, match=r"/pc:2: the line is not F:id:address:function"):
        expbbv.read_pc(str(tmp_path / "pc"))


STANDALONE = ("-nostdlib", "-static", "-Wl,-e,begin")  # Valgrind shows _start by another name

# Something of everything that a vector file shows: loops, a rep of 7 and one of 0 iterations, fldcw.
# `later` lies below `begin`, so that the order of addresses differs from that of ids.
PROGRAM = """
    .text
    .globl later
    .type later, @function
later:
    dec %edx
    jnz later
    ret
    .size later, . - later
    .globl begin
    .type begin, @function
begin:
    mov $50, %ecx
1:  dec %ecx
    jnz 1b
    sub $64, %rsp
    mov %rsp, %rdi
    mov $7, %ecx
    cld
    rep stosb
    rep stosb
    fnstcw (%rsp)
    fldcw (%rsp)
    mov $60, %edx
    call later
    mov $60, %eax
    xor %edi, %edi
    syscall
    .size begin, . - begin
    .data  # Valgrind reads the symbols of a file only once it is mapped writable, too
    .quad 1
    .section .note.GNU-stack, "", @progbits
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("program")
    (where / "program.S").write_text(PROGRAM)
    subprocess.run(["gcc", *STANDALONE, "-o", "program", "program.S"], cwd=where, check=True)
    return where / "program"


def exp_bbv(program: Path, *options: str) -> None:
    command = [
        "valgrind",
        "-q",
        "--tool=exp-bbv",
        "--bb-out-file=bb",
        "--pc-out-file=pc",
        *options,
        str(program),
    ]
    subprocess.run(command, cwd=program.parent, check=True, capture_output=True)


@pytest.mark.parametrize("size", [1, 7, 40, 234, 235, 100_000])
def test_files_of_exp_bbv_are_read_and_written_again_to_the_byte(program: Path, size: int) -> None:
    exp_bbv(program, f"--interval-size={size}")
    name = str(program.parent / "bb")
    file = expbbv.read_vectors(name)
    assert file.trailer is not None
    # 1 + 2 * 50; 7 with both reps; 2 x87; 2; 2 * 60 + 1; 3
    assert file.trailer.instructions == 101 + 6 + 2 + 2 + 121 + 3
    assert file.trailer.intervals == 235 // size
    assert (file.trailer.unique_reps, file.trailer.fldcw) == (2, 1)
    assert rewritten(file) == Path(name).read_text()

    pc = expbbv.read_pc(str(program.parent / "pc"))
    out = io.StringIO()
    expbbv.write_pc(out, pc)
    assert out.getvalue() == (program.parent / "pc").read_text()
    assert [e.address for e in pc] == sorted(e.address for e in pc)
    assert {e.function for e in pc} == {"later", "begin"}


def test_instr_count_only_of_exp_bbv_is_a_trailer_alone(program: Path) -> None:
    exp_bbv(program, "--instr-count-only=yes")
    file = expbbv.read_vectors(str(program.parent / "bb"))
    assert file.vectors == ()
    assert rewritten(file) == (program.parent / "bb").read_text()


@pytest.mark.parametrize("size", [10, 25, 50])
def test_our_exp_bbv_dialect_is_exp_bbv_to_the_byte(tmp_path: Path, size: int) -> None:
    """A loop that both tools see as the same blocks: model it, cut it by the rule, compare whole files."""
    (tmp_path / "loop.S").write_text(
        ".globl begin\n.type begin, @function\n"
        "begin: mov $100, %ecx\n1: dec %ecx\n jnz 1b\n mov $60, %eax\n xor %edi, %edi\n syscall\n"
        '.size begin, . - begin\n.data\n.quad 1\n.section .note.GNU-stack, "", @progbits\n'
    )
    subprocess.run(["gcc", *STANDALONE, "-o", "loop", "loop.S"], cwd=tmp_path, check=True)
    exp_bbv(tmp_path / "loop", f"--interval-size={size}")
    start = expbbv.read_pc(str(tmp_path / "pc"))[0].address

    # As Valgrind cuts blocks: mov, dec, jnz | dec, jnz (99 times) | mov, xor, syscall.
    table = mb.table(
        (start, [mb.ADD, mb.ADD, mb.JNZ], "begin", ""),
        (start + 5, [mb.ADD, mb.JNZ], "begin", ""),
        (start + 9, [mb.ADD, mb.ADD, mb.NOP], "begin", ""),
    )
    rule = CutRule(size, Dialect.EXP_BBV)
    stream = [0] * 3 + [1] * 198 + [2] * 3
    edges = [0]
    while edges[-1] < len(stream):
        edges.append(min(rule.next_cut(edges[-1]), len(stream)))
    cut = [stream[a:b] for a, b in pairwise(edges)]
    thread = mb.thread(
        [1, 99, 1], intervals=[mb.interval({row: part.count(row) for row in set(part)}) for part in cut]
    )

    out = io.StringIO()
    expbbv.write_vectors(out, bbv.vectors(table, thread, rule), Trailer(1, *bbv.summary(table, thread, rule)))
    assert out.getvalue() == (tmp_path / "bb").read_text()
    out = io.StringIO()
    expbbv.write_pc(out, expbbv.pc_entries(table))
    assert out.getvalue() == (tmp_path / "pc").read_text()


def test_threads_of_exp_bbv_have_files_named_as_ours(tmp_path: Path) -> None:
    (tmp_path / "two.c").write_text(
        "#include <pthread.h>\nvoid *f(void *p) { return p; }\n"
        "int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); return pthread_join(t, 0); }\n"
    )
    subprocess.run(["gcc", "-pthread", "-o", "two", "two.c"], cwd=tmp_path, check=True)
    exp_bbv(tmp_path / "two", "--interval-size=1000")
    for number in (1, 2):
        name = tmp_path / name_for_thread("bb", number)
        file = expbbv.read_vectors(str(name))
        assert file.trailer is not None
        assert file.trailer.thread == number
        assert rewritten(file) == name.read_text()


@pytest.mark.parametrize("largest", [1, 9, 10, 999_999_999, 1_000_000_000, (1 << 32) + 1, (1 << 64) - 1])
def test_every_number_is_written_as_it_is(largest: int) -> None:
    rng = random.Random(largest)
    counts = [1, largest, *(rng.randint(1, 10 ** rng.randint(1, len(str(largest)))) for _ in range(200))]
    counts = [min(count, largest) for count in counts] + [10**n for n in range(len(str(largest)))]
    ids = sorted(rng.sample(range(1, 20_000), len(counts)))
    out = io.StringIO()
    pairs = np.array(ids, np.int64), np.array(counts, np.uint64)
    expbbv.write_vectors(out, [pairs, (pairs[0][:0], pairs[1][:0])], TRAILER)
    first, second, *_ = out.getvalue().split("\n")
    assert first == "T" + "".join(f":{i}:{count}   " for i, count in zip(ids, counts, strict=True))
    assert second == "T"
