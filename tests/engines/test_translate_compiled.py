"""Compiled code that translates: what it takes instructions for, and that it writes what the emitter does."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engines.contract import EngineContract
from engines.observed import TIMEOUT
from engines.test_translate import Compiled, CompiledAllowing
from tools import needed, turn

from fixtures import Builder, Fixture, assembly

if platform.machine() != "x86_64":
    pytest.skip("it looks at shapes, which x86-64 alone has", allow_module_level=True)

from elftools.elf.elffile import ELFFile
from engines.compiled_shapes import shapes_of_none
from iced_x86 import Decoder

from livepro.engines.translate.translator.compiling.tables import PC
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.accesses import told
from livepro.engines.translate.translator.x86_64.compiled.module import CompiledModule, Text
from livepro.engines.translate.translator.x86_64.compiled.prepared import loading, store
from livepro.engines.translate.translator.x86_64.compiled.templates import pieces
from livepro.engines.translate.translator.x86_64.compiler import Compiler
from livepro.engines.translate.translator.x86_64.emitter import Emitter
from livepro.engines.translate.translator.x86_64.facts import FactTable
from livepro.isa import for_machine
from livepro.isa.access import Pattern

FEW = ("returns", "nested_loops", "threads_handoff", "signal_nested", "rep_scas", "flags_alive")
"""Fixtures of the contract."""

TWIN = Path(__file__).with_name("compiled_twin.py")


class Checked:
    """A table of shapes, with what iced-x86 says of each encoding beside what its shape says."""

    def __init__(self) -> None:
        self.shapes = shapes_of_none()
        self.shapes.records = True
        self.left = self.same = self.recorded = self.stepped = 0
        self._facts = FactTable()
        self._kinds: dict[int, tuple[object, ...]] = {}
        self._describe = for_machine("x86_64").describe

    def see(self, text: bytes, *, kinds: bool) -> None:
        """Look at the instruction that `text` begins with; `kinds`: at its description, too."""
        code = np.frombuffer(text.ljust(32, b"\0"), np.uint8)
        measured, place = self.shapes.locate(code, 0)
        if not measured:
            self.left += 1
            return
        self.shapes.learn(code, 0)
        _, place = self.shapes.locate(code, 0)
        row = int(self.shapes.rows[place])
        kind, *facts = self.shapes.facts[row].tolist()
        if kind in (tables.OTHER, tables.INVALID):
            self.left += 1
            return
        decoder = Decoder(64, code.tobytes())
        instruction = decoder.decode()
        length = measured & 0xFF
        assert instruction.len == length, text.hex()
        mine = self._facts.learn(
            code[:length].tobytes(), instruction, decoder.get_constant_offsets(instruction)
        )
        said = mine.reads, mine.kills, mine.registers_read, mine.registers_killed, mine.faults
        assert tuple(facts[:5]) == said, text.hex()
        head = measured >> 8 & 0xFF
        assert mine.displacement in (0, head), text.hex()
        assert mine.kind == kind, text.hex()
        self._see_accesses(code[:length].tobytes(), measured, row)
        if kinds:
            described = self._describe(code[:length].tobytes()).kind
            assert self._kinds.setdefault(int(row), described) == described, text.hex()
        self.same += 1

    def _see_accesses(self, encoding: bytes, measured: int, row: int) -> None:
        """What is recorded of the encoding is what its shape says."""
        head, displacement, immediate = (measured >> shift & 0xFF for shift in (8, 16, 24))
        said = self.shapes.recorded[row].tolist()
        mine = told(encoding, relative=bool(measured >> 32 & 1))
        if said[tables.CAN] == tables.NO:
            self.stepped += 1
            return
        assert mine is not None, encoding.hex()
        accesses, places, effects, flow = mine
        assert (len(accesses), flow) == (said[tables.ACCESSES], said[tables.FLOW]), encoding.hex()
        behind = head + displacement
        moved = int.from_bytes(encoding[head:behind], "little", signed=True)
        by = int.from_bytes(encoding[behind : behind + immediate], "little", signed=True)
        by = said[tables.BY] + said[tables.BY_IMMEDIATE] * by
        assert (said[tables.WRITTEN], said[tables.MOVED], by, False) == effects, encoding.hex()
        for n, (access, place) in enumerate(zip(accesses, places, strict=True)):
            at = tables.ACCESS + n * tables.ACCESS_COLUMNS
            base, scaled, scale, constant, factor, fs, relative, size, kind = said[
                at : at + tables.ACCESS_COLUMNS
            ]
            where = (base, scaled, scale, constant + factor * moved, False, bool(fs), bool(relative))
            assert where == place[1:], encoding.hex()
            assert (access.pattern, access.size, access.kind) == (Pattern.ONE, size, kind), encoding.hex()
        self.recorded += 1


def encodings(path: str) -> Iterator[bytes]:
    """The instructions of a file's code, as iced-x86 finds them one behind the other."""
    with open(path, "rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if section["sh_flags"] & 4:  # SHF_EXECINSTR
                code = section.data()
                decoder = Decoder(64, code, ip=section["sh_addr"])
                at = 0
                for instruction in decoder:
                    yield code[at : at + max(instruction.len, 1)]
                    at += instruction.len


def libraries(*names: str) -> list[str]:
    """The paths of shared libraries that this interpreter has loaded, by parts of their names."""
    maps = Path("/proc/self/maps").read_text()
    return sorted({m[0] for n in names for m in re.finditer(rf"/\S*{n}\S*\.so\S*", maps)})


def twin(*arguments: str | Path) -> list[int]:
    """How many fragments of a program are the same, how many different, how many branches lead astray, and
    how many comparisons there are."""
    done = subprocess.run(
        [sys.executable, TWIN, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{TWIN.parents[2]}:{TWIN.parents[1]}"},
    )
    told = re.search(
        r"^(\d+) the same (\d+) different (\d+) astray, (\d+) compared$", done.stdout, re.MULTILINE
    )
    assert told is not None
    if told[2] != "0" or told[3] != "0":
        print(done.stdout)
    return [int(number) for number in told.groups()]


@pytest.mark.parametrize("of", [8, pytest.param(1, marks=pytest.mark.long(seconds=90))])
def test_a_shape_says_all_of_libc(of: int) -> None:
    """Each encoding that occurs (one `of` so many, others each time) means what the first one of its shape
    means: length, flags, registers, and how it is described."""
    checked = Checked()
    for path in libraries("libc"):
        for text in sorted(set(encodings(path)))[turn(of) :: of]:
            checked.see(text, kinds=True)
    assert checked.same > 20_000 // of
    assert checked.left < checked.same // 20  # there are constants among code
    assert checked.recorded + checked.stepped == checked.same
    assert checked.stepped < checked.same // 10  # masked vectors, gathers, system calls


@pytest.mark.long
def test_a_shape_says_all_of_other_libraries() -> None:
    import ssl  # noqa: F401 - so that libcrypto is loaded

    import numpy.linalg  # noqa: F401 - and OpenBLAS

    checked = Checked()
    paths = libraries("libcrypto", "libm", "openblas", "_multiarray_umath")
    assert len(paths) >= 4
    for path in paths:
        for text in set(encodings(path)):
            checked.see(text, kinds=True)
    assert checked.same > 100_000
    assert checked.left < checked.same // 20
    assert checked.recorded > 100_000


@pytest.mark.parametrize("count", [30_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_shape_says_all_of_random_bytes(count: int) -> None:
    generator, checked = random.Random(count), Checked()
    for _ in range(count):
        checked.see(generator.randbytes(16), kinds=False)
    assert checked.same > count // 4


@pytest.mark.parametrize(
    "command",
    [
        ["/bin/ls", "-l", "/"],
        ["--record", "/bin/ls", "-l", "/"],
        ["--filter", "/bin/ls", "-l", "/"],
        ["--intervals", "/bin/ls", "-l", "/"],
        ["--short", "/bin/ls", "-l", "/"],
        ["--unkept", "/bin/ls", "-l", "/"],
        ["--branches", "/bin/ls", "-l", "/"],
        ["--dropping", sys.executable, "-S", "-c", "import json"],
        pytest.param(["--record", sys.executable, "-S", "-c", "import json"], marks=pytest.mark.long),
        pytest.param(["--filter", sys.executable, "-S", "-c", "import json"], marks=pytest.mark.long),
        pytest.param(["--intervals", sys.executable, "-S", "-c", "import json"], marks=pytest.mark.long),
        pytest.param(["--short", sys.executable, "-S", "-c", "import json"], marks=pytest.mark.long),
        pytest.param([sys.executable, "-S", "-c", "import json"], marks=pytest.mark.long),
        pytest.param(["gcc", "-O2", "-S", "-o", "/dev/null", "-x", "c", "/dev/null"], marks=pytest.mark.long),
    ],
    ids=[
        "ls",
        "ls recorded",
        "ls filtered",
        "ls intervals",
        "ls short intervals",
        "ls unkept",
        "ls branches",
        "dropped",
        "python recorded",
        "python filtered",
        "python intervals",
        "python short intervals",
        "python",
        "gcc",
    ],
)
def test_compiled_code_writes_what_the_emitter_writes(command: list[str], tmp_path: Path) -> None:
    """Byte by byte, but for where branches lead, and the same fields and links; branches lead where they
    should."""
    if command[0] == "gcc":
        needed("gcc", "gcc")
    options, command = (command[:1], command[1:]) if command[0][:2] == "--" else ([], command)
    told = twin(*options, tmp_path, *command)
    assert told[0] > 1000
    assert (told[1], told[2]) == (0, 0)


@pytest.mark.parametrize(
    "options",
    [[], ["--intervals"], ["--short"], ["--dropping"], ["--record"], ["--branches"], ["--filter"]],
    ids=" ".join,
)
@pytest.mark.some(2)
def test_so_it_does_of_code_that_changes(options: list[str], tmp_path: Path) -> None:
    """Java's, whose fragments compare it on entry."""
    told = twin(*options, tmp_path, needed("java", "openjdk-17-jdk-headless"), "-version")
    assert told[3] > 1000
    assert (told[1], told[2]) == (0, 0)


def test_what_is_dropped_stays_counted(tmp_path: Path) -> None:
    """Where the code cache is too small for what compiled code has made of perl, which does the same at the
    same addresses: all is dropped several times."""
    needed("perl", "perl")
    made = "my $s = 0; for my $i (1 .. 20000) { $s += $i % 7; $h{$i % 50} .= 'x' } print $s"
    report = tmp_path / "json"
    command = [sys.executable, "-m", "livepro", "run", "--stats", "--no-cache", "--no-aslr", "--json", report]
    found = []
    for options in ([], ["--cache-size", "400K"]):
        done = subprocess.run(
            [*command, *options, "--", "perl", "-e", made],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
            env={**os.environ, "PERL_HASH_SEED": "0", "LC_ALL": "C"},
        )
        flushes = re.search(r"^ +flushes +(\d+)$", done.stdout + done.stderr, re.MULTILINE)
        assert flushes is not None
        assert done.stdout.startswith("59998")
        found.append((int(flushes[1]) > 1, json.loads(report.read_text())["instructions"]))
    assert found == [(False, found[0][1]), (True, found[0][1])]


def test_processes_learn_from_each_other() -> None:
    """Where one has come to others will: the second and third one together stop less often than the first."""
    needed("perl", "perl")
    Compiler().prepare()
    command = [sys.executable, "-m", "livepro", "run", "--stats", "--no-cache", "--", "sh", "-c"]
    stops = []
    for script in ("perl -e 'print 1'; :", "perl -e 'print 1'; perl -e 'print 2'; perl -e 'print 3'; :"):
        done = subprocess.run([*command, script], capture_output=True, text=True, timeout=TIMEOUT, check=True)
        told = re.search(r"^ +stops +([\d,]+)$", done.stdout + done.stderr, re.MULTILINE)
        assert told is not None
        assert done.stdout.startswith("1" if len(stops) == 0 else "123")
        stops.append(int(told[1].replace(",", "")))
    assert stops[1] < 2 * stops[0]


def module_of(code: bytes) -> CompiledModule:
    """What translates a module's code, into a cache that nobody runs."""
    emitter = Emitter(1 << 20, {}, Countdown.NONE)
    text, image = Text(1 << 30, 1 << 17, shapes_of_none()), np.zeros(1 << 20, np.uint8)
    made_for = pieces(emitter.lookup, emitter.landing(0))
    return CompiledModule(text, 1 << 31, image, *made_for, low=False, records=False, filter=None, asks=False)


@pytest.mark.parametrize(("readable", "blocks"), [(1 << 12, 2), ((1 << 12) - 1, 0)])
def test_code_that_cannot_all_be_read_is_left_to_python(readable: int, blocks: int) -> None:
    """Behind the end of a file that is mapped there is nothing, not zeros: a thread that comes there gets a
    signal."""
    module = module_of(code := b"\x90\x75\x01\x90\xc3".ljust(1 << 16, b"\x90"))
    room = 16, 1 << 19, 1 << 18, 1 << 20
    for _ in range(5):
        module.begin(0)
        made = module.run(0, 0, room, lands=False, likely=True)
        if not module.prepare(lambda at, size: code[:readable]):
            break
    assert (0 if made is None else len(made.rows)) == blocks


def ahead(code: bytes, budget: int) -> tuple[list[int], list[int]]:
    """The offsets of the blocks that are translated when a thread comes to the first one, and of those that
    the lookup table then has."""
    module, room = module_of(code := code.ljust(1 << 16, b"\xcc")), (16, 1 << 19, 1 << 18, 1 << 20)
    blocks, landed, pc = [], [], 0
    module.begin(budget)
    while True:
        made = module.run(
            pc, len(blocks), (*module.ends, *room[2:]) if blocks else room, lands=False, likely=True
        )
        if made is not None:
            blocks += made.rows[:, PC].tolist()
            landed += made.landings[:, 0].tolist()
            pc = -1
        if not module.prepare(lambda at, size: code[:size]):
            return sorted(blocks), sorted(landed)


def test_what_calls_return_to_is_translated_with_them() -> None:
    """However many there are. Three calls of functions of their own, 5 bytes each, then `ret`; what is called
    is laid out behind who calls."""
    calls = b"".join(b"\xe8" + (0x100 * n - 5 * n).to_bytes(4, "little") for n in (1, 2, 3))
    code = bytearray((calls + b"\xc3").ljust(0x400, b"\xcc"))
    for n in (1, 2, 3):
        code[0x100 * n] = 0xC3
    assert ahead(bytes(code), 0) == ([0, 0x100], [])
    assert ahead(bytes(code), 1) == ([0, 5, 10, 15, 0x100, 0x200, 0x300], [5, 10, 15])


def test_what_a_linkage_table_leads_to_at_first_is_translated_with_it() -> None:
    """An entry that is bound when it is used: `jmp [rip + n]`, `push 1`, `jmp`."""
    code = b"\xff\x25\x00\x10\x00\x00\x68\x01\x00\x00\x00\xe9\x10\x00\x00\x00"
    assert ahead(code, 1)[1] == [6]
    assert ahead(code, 1)[0][:2] == [0, 6]
    assert ahead(code.replace(b"\x68", b"\x66"), 1) == ([0], [])  # a branch by a table, as any other


def test_what_is_kept_of_shapes_means_what_their_encodings_do() -> None:
    """Of all that preparing has learnt, which is what libc is made of."""
    Compiler().prepare()
    describe = for_machine("x86_64").describe
    kept = store.ShapeStore()
    shapes = loading.loaded(kept, kept.read())
    assert len(shapes) > 1000
    rows = np.arange(0, len(shapes), 3)
    groups, instructions = shapes.described(rows)
    for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
        example = shapes.example(row)
        assert instructions[group].kind == describe(example).kind, example.hex()


def test_an_address_right_before_a_module_is_one_of_its_own() -> None:
    """An offset of -1 is one as any other in the table of addresses."""
    module = module_of(b"")
    one, none, pairs = np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    module.take(none, none, none, none, one - 1, one + 7, pairs)
    module.take(none, none, one + 4, one + 9, none, none, pairs)
    assert module.links_to(9) == [4]
    assert all(module.links_to(offset) == [] for offset in range(-2, 9))


def test_a_kernel_takes_what_it_was_compiled_for() -> None:
    """An array of another type, or with gaps, would be read as something else."""
    kernels = shapes_of_none().kernels
    code, out = np.frombuffer(b"\x90\x48\x89\xc8\xc3".ljust(32, b"\0"), np.uint8), np.zeros(3, np.uint8)
    kernels.measure_all(code, 0, out)
    assert out.tolist() == [1, 3, 1]
    for wrong in (out.astype(np.int64), np.zeros(6, np.uint8)[::2], np.zeros((3, 1), np.uint8)):
        with pytest.raises(TypeError, match="argument 2"):
            kernels.measure_all(code, 0, wrong)
    with pytest.raises(ValueError, match="argument"):
        kernels.measure_all(code, 0)


@pytest.mark.parametrize("fixture", [f for f in assembly() if f.name in FEW], ids=lambda f: f.name)
def test_counts(fixture: Fixture, builder: Builder, tmp_path: Path) -> None:
    """(All of the contract: `test_translate`, in CI.)"""
    for runner in (Compiled, CompiledAllowing):
        run = runner("translate", tmp_path, cache=str(tmp_path / runner.__name__))
        EngineContract().test_proved_counts(fixture, builder, run)
