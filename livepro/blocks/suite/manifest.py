"""A suite's manifest: what is built how, and run how. TOML; every key is checked.

Text in braces is filled in: {cc} {flags} {sources} {program} {folder} (of the built program) and
{source-directory} (of the first source) in `build`; {program}, {folder} and {directory} (the suite's) in
`run` and `working-directory`. ${NAME} is the environment variable NAME.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from livepro.blocks.suite import spec
from livepro.errors import LiveproError

READY = Path(__file__).with_name("ready")
"""Manifests that come with livepro, and the kernels of one of them."""

_SUITE = {"name": str, "directory": str, "build": str, "own-code-only": bool, "discover": str}
_TARGET = {"cc": str, "weights": str}

RUN, LINES = "run", "lines"
"""What weighs the blocks of another instruction set: a run by an emulator, or source lines."""
WEIGHTS = (RUN, LINES)
_BENCHMARK = {
    "name": str,
    "sources": list,
    "build": str,
    "run": list,
    "environment": dict,
    "working-directory": str,
    "input": str,
    "expect": str,
    "expect-file": str,
    "program": str,
}


@dataclass(frozen=True)
class Benchmark:
    """One program: its sources (or, where there are none, `program` itself), how it is run, with which
    standard input, and what it must write to standard output (None: anything)."""

    name: str
    sources: tuple[str, ...] = ()
    build: str = ""
    program: str = ""
    run: tuple[str, ...] = ("{program}",)
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    input: str = ""
    expect: str | None = None


@dataclass(frozen=True)
class Manifest:
    """A suite. `directory` is where its sources are, `variants` are flags by name, `targets` compilers by
    instruction set, `weights` what weighs its blocks where it is not the machine's (`RUN` where
    nothing is said). With `own_code_only` blocks of libraries are left out."""

    path: Path
    text: str
    name: str
    directory: Path
    own_code_only: bool
    variants: Mapping[str, str]
    targets: Mapping[str, str]
    weights: Mapping[str, str]
    benchmarks: tuple[Benchmark, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load(name: str, environment: Mapping[str, str]) -> Manifest:
    """The manifest in the file `name`, or the ready one of that name. Raises LiveproError for what is wrong
    in it, saying where."""
    path = Path(name)
    ready = READY / f"{name}.toml"
    if not path.exists() and ready.exists():
        path = ready
    try:
        text = path.read_text()
        data = tomllib.loads(text)
    except OSError as error:
        known = ", ".join(sorted(p.stem for p in READY.glob("*.toml")))
        raise LiveproError(
            f"There is no manifest {name}.", f"Name a TOML file, or a ready suite: {known}."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LiveproError(f"{path} is no TOML: {error}.", "Correct it there.") from error
    return _Reader(path, environment).manifest(text, data)


class _Reader:
    """Checks one manifest."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._environment = environment

    def manifest(self, text: str, data: dict[str, Any]) -> Manifest:
        tables = {"suite": dict, "variants": dict, "targets": dict, "benchmarks": list}
        self._check(data, tables, "the file", ("suite",))
        suite = data["suite"]
        self._check(suite, _SUITE, "[suite]", ("name",))
        directory = self._path.parent / self._fill(suite.get("directory", "."))
        if not directory.is_dir():
            raise self._wrong("[suite] directory", f"{directory} is no directory")
        listed = [*data.get("benchmarks", ()), *self._discovered(suite, directory)]
        for name, flags in data.get("variants", {}).items():
            self._type(flags, str, f"[variants] {name}")
        for name, target in data.get("targets", {}).items():
            self._type(target, dict, f"[targets.{name}]")
            self._check(target, _TARGET, f"[targets.{name}]", ("cc",))
            if target.get("weights", RUN) not in WEIGHTS:
                raise self._wrong(f"[targets.{name}] weights", f"must be {' or '.join(WEIGHTS)}")
        benchmarks = tuple(self._benchmark(b, suite.get("build", "")) for b in listed)
        names = [b.name for b in benchmarks]
        if not names or len(set(names)) != len(names):
            raise self._wrong("[[benchmarks]]", "needs at least one, and each a name of its own")
        return Manifest(
            path=self._path.resolve(),
            text=text,
            name=suite["name"],
            directory=directory.resolve(),
            own_code_only=suite.get("own-code-only", False),
            variants=data.get("variants") or {"default": ""},
            targets={n: t["cc"] for n, t in data.get("targets", {}).items()},
            weights={n: t["weights"] for n, t in data.get("targets", {}).items() if "weights" in t},
            benchmarks=benchmarks,
        )

    def _discovered(self, suite: dict[str, Any], directory: Path) -> list[dict[str, Any]]:
        """The benchmarks that an installed suite has made ready."""
        kind = suite.get("discover")
        if kind is None:
            return []
        if kind != "speccpu2017":
            raise self._wrong("[suite] discover", f"'{kind}' is not known", "Known is speccpu2017.")
        found = spec.benchmarks(directory)
        if not found:
            raise LiveproError(
                f"{directory} has no run directory of SPEC CPU 2017.",
                "Make some: `runcpu --action=setup --config=CONFIG --size=test intrate`.",
            )
        return found

    def _benchmark(self, data: Any, build: str) -> Benchmark:
        self._type(data, dict, "[[benchmarks]]")
        where = f"[[benchmarks]] {data.get('name', '')}".strip()
        self._check(data, _BENCHMARK, where, ("name",))
        if not re.fullmatch(r"[\w.+-]+", data["name"]):
            raise self._wrong(where, "a name consists of letters, digits and _.+-")
        if bool(data.get("sources")) == bool(data.get("program")):
            raise self._wrong(where, "needs either sources, which are built, or a program")
        expect = data.get("expect")
        if "expect-file" in data:
            try:
                expect = (self._path.parent / self._fill(data["expect-file"])).read_text()
            except OSError as error:
                raise self._wrong(f"{where} expect-file", str(error)) from error
        return Benchmark(
            name=data["name"],
            sources=tuple(map(self._fill, data.get("sources", ()))),
            build=data.get("build", build),
            program=self._fill(data.get("program", "")),
            run=tuple(map(self._fill, data.get("run", ("{program}",)))),
            environment={k: self._fill(str(v)) for k, v in data.get("environment", {}).items()},
            working_directory=self._fill(data.get("working-directory", "")),
            input=self._fill(data.get("input", "")),
            expect=expect,
        )

    def _check(
        self, data: dict[str, Any], known: Mapping[str, type], where: str, needed: tuple[str, ...]
    ) -> None:
        for key, value in data.items():
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"Did you mean {near[0]}? " if near else ""
                raise self._wrong(where, f"there is no key '{key}'", f"{hint}Known are {', '.join(known)}.")
            self._type(value, known[key], f"{where} {key}")
        for key in needed:
            if key not in data:
                raise self._wrong(where, f"'{key}' is missing")

    def _type(self, value: Any, kind: type, where: str) -> None:
        words = {str: "a string", bool: "true or false", list: "a list", dict: "a table"}
        if not isinstance(value, kind):
            raise self._wrong(where, f"must be {words[kind]}")

    def _fill(self, text: str) -> str:
        def variable(match: re.Match[str]) -> str:
            if match[1] not in self._environment:
                raise self._wrong(
                    match[0],
                    "the environment variable is not set",
                    f"Set it: `{match[1]}=DIRECTORY livepro ...`.",
                )
            return self._environment[match[1]]

        return re.sub(r"\$\{(\w+)\}", variable, text)

    def _wrong(self, where: str, what: str, remedy: str = "Correct it there.") -> LiveproError:
        return LiveproError(f"{self._path}: {where}: {what}.", remedy)


def build_command(manifest: Manifest, benchmark: Benchmark, flags: str, cc: str, program: Path) -> list[str]:
    """The words of the command that builds a benchmark."""
    sources = " ".join(shlex.quote(s) for s in benchmark.sources)
    values = {
        "cc": cc,
        "flags": flags,
        "sources": sources,
        "program": shlex.quote(str(program)),
        "folder": shlex.quote(str(program.parent)),
        "source-directory": shlex.quote(os.path.dirname(benchmark.sources[0]) or "."),
    }
    return shlex.split(fill(benchmark.build, values))


def fill(text: str, values: Mapping[str, str]) -> str:
    """`text` with {name} replaced by each of `values`."""
    return re.sub(r"\{([\w-]+)\}", lambda m: values.get(m[1], m[0]), text)
