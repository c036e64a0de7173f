"""The fixture programs: what their sources promise, and how they are built.

A fixture's source states its counts in comment lines (see fixtures/README.md);
they are read here, so that a count stands in one place only, beside its proof.
"""

from __future__ import annotations

import ast
import hashlib
import operator
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fuzz.machine import completes_int1

ROOT = Path(__file__).resolve().parent.parent / "fixtures"
ASM_FLAGS = (
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,--build-id=none,-z,noexecstack,--no-warn-rwx-segments",
)
FREESTANDING_FLAGS = (
    *ASM_FLAGS,
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-lgcc",
)
HOSTED_FLAGS = ("-pthread", "-ldl", "-Wl,-z,now")

_DIRECTIVE = re.compile(
    r"^//[ \t]+(COUNT|PROCESS|THREADS|FLDCW|SIMD|ARGS|NEEDS|REFEREE|FUZZY|VARIES|COST)\b[ \t]*(.*)$",
    re.MULTILINE,
)
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


@dataclass(frozen=True)
class Counts:
    """What one process image must show. `exit` is None for an image that exec ends."""

    exit: int | None
    instructions: int | None
    rep_instructions: int
    rep_iterations: int


@dataclass(frozen=True)
class Fixture:
    """One fixture source and what it promises.

    `processes` are its process images in order of start, `threads` the
    instructions of the first image's threads in order of start (empty: not
    stated; None: not exact). `needs` are CPU flags as /proc/cpuinfo spells
    them, and "int1" (`completes_int1`). `no_referee` says why Valgrind cannot confirm the total (empty: it
    can), `fuzzy` why the total is a lower bound only (empty: it is exact).
    `varies` says that the first image executes as many instructions more as its exit status.
    `heavy` marks what is too long for an engine that stops at every
    instruction. `fldcw` is the number of fldcw instructions executed, `simd` the
    number of SIMD instructions executed by set (empty: not stated).
    """

    name: str
    source: Path
    args: tuple[str, ...]
    processes: tuple[Counts, ...]
    threads: tuple[int | None, ...]
    needs: tuple[str, ...]
    no_referee: str
    fuzzy: str
    heavy: bool
    fldcw: int
    simd: tuple[tuple[str, int], ...]
    varies: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """What the fixture needs and this machine lacks."""
        return tuple(
            flag for flag in self.needs if not (completes_int1() if flag == "int1" else flag in cpu_flags())
        )

    @property
    def instructions(self) -> int:
        """Instructions of all processes together (the exact part, for a fuzzy fixture)."""
        return sum(p.instructions or 0 for p in self.processes)


@cache
def cpu_flags() -> frozenset[str]:
    """The CPU's feature flags, as /proc/cpuinfo spells them."""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return frozenset(found[1].split() if found else ())


def evaluate(expression: str) -> int:
    """The value of a proof: whole numbers, +, - and * with parentheses."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return int(_OPERATORS[type(node.op)](value(node.left), value(node.right)))
        raise ValueError(f"not a count: {expression}")

    return value(ast.parse(expression, mode="eval").body)


def parse(source: Path) -> Fixture:
    """Read a fixture's promises. Raises ValueError for a line that is not understood."""
    lines: dict[str, list[str]] = {}
    for word, rest in _DIRECTIVE.findall(source.read_text()):
        lines.setdefault(word, []).append(rest.strip())
    if "COUNT" in lines and "PROCESS" in lines:
        raise ValueError(f"{source}: COUNT is for one process, PROCESS for several")
    return Fixture(
        name=source.stem,
        source=source,
        args=tuple(" ".join(lines.get("ARGS", [])).split()),
        processes=tuple(_counts(line) for line in lines.get("COUNT", []) + lines.get("PROCESS", [])),
        threads=tuple(
            None if word == "*" else evaluate(word) for word in " ".join(lines.get("THREADS", [])).split()
        ),
        needs=tuple(" ".join(lines.get("NEEDS", [])).split()),
        no_referee=" ".join(lines.get("REFEREE", [])).removeprefix("none:").strip(),
        fuzzy=" ".join(lines.get("FUZZY", [])),
        heavy="COST" in lines,
        fldcw=evaluate(lines["FLDCW"][0]) if "FLDCW" in lines else 0,
        simd=tuple(
            (name, evaluate(count))
            for name, count in (word.split("=") for word in " ".join(lines.get("SIMD", [])).split())
        ),
        varies="VARIES" in lines,
    )


def _counts(line: str) -> Counts:
    words = dict(word.split("=", 1) for word in line.split())
    values = {key: evaluate(text) for key, text in words.items()}
    out = Counts(
        exit=values.pop("exit", None),
        instructions=values.pop("instructions", None),
        rep_instructions=values.pop("rep_instructions", 0),
        rep_iterations=values.pop("rep_iterations", 0),
    )
    if values:
        raise ValueError(f"unknown counts {sorted(values)} in {line!r}")
    return out


FOLDERS = {"x86_64": ROOT / "asm", "aarch64": ROOT / "asm/aarch64"}
"""Where the assembly fixtures of a machine are (its name as `uname -m` gives it)."""


@cache
def assembly(machine: str = platform.machine()) -> tuple[Fixture, ...]:
    """All assembly fixtures of a machine, by name."""
    return tuple(parse(path) for path in sorted(FOLDERS[machine].glob("*.S")))


@cache
def freestanding() -> tuple[Fixture, ...]:
    """All C fixtures without libc (fixtures/c/free_*.c), by name."""
    return tuple(parse(path) for path in sorted((ROOT / "c").glob("free_*.c")))


class Builder:
    """Compiles fixtures into a directory, each variant once."""

    def __init__(self, directory: Path, compiler: str = "gcc") -> None:
        self.directory = directory
        self.compiler = compiler
        self._built: dict[tuple[Path, tuple[str, ...]], Path] = {}

    def build(self, source: Path, flags: Sequence[str] = ASM_FLAGS) -> Path:
        """The program built from `source` with `flags`. Raises CalledProcessError with gcc's words."""
        key = (source, tuple(flags))
        if key not in self._built:
            variant = hashlib.sha256("\0".join(key[1]).encode()).hexdigest()[:8]
            out = self.directory / f"{source.stem}.{variant}"
            compiler = shutil.which(self.compiler) or self.compiler
            subprocess.run(
                [compiler, "-g", "-o", str(out), str(source), *flags], check=True, stderr=subprocess.STDOUT
            )
            self._built[key] = out
        return self._built[key]

    def assembly(self, fixture: Fixture) -> Path:
        """A freestanding assembly program."""
        return self.build(fixture.source, ASM_FLAGS)

    def freestanding(self, fixture: Fixture, *variant: str) -> Path:
        """A C program without libc, with the variant's optimisation flags."""
        return self.build(fixture.source, (*FREESTANDING_FLAGS, *variant))

    def hosted(self, name: str, *variant: str) -> Path:
        """fixtures/c/`name`.c, dynamically linked with libc."""
        return self.build(ROOT / "c" / f"{name}.c", ("-O1", *HOSTED_FLAGS, *variant))
