"""Making a data set from a manifest, and making it again to compare.

A data set is a directory: `blocks.parquet` (all blocks, `benchmark` is BENCHMARK/VARIANT),
`dataset.json` (what it was made from and on), `README.md` (what is in it); `parts/` holds each task's own.
"""

from __future__ import annotations

import datetime
import json
import platform
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from livepro import __version__
from livepro.blocks import files
from livepro.blocks.files import parquet
from livepro.blocks.rows import EXACT, LINES, BlockRow, with_shares
from livepro.blocks.suite import manifest as manifests
from livepro.blocks.suite.manifest import Manifest, build_command, fill
from livepro.blocks.suite.tasks import Task
from livepro.errors import LiveproError
from livepro.linux.cpu import cpu

EMULATORS = {"aarch64": "qemu-aarch64", "x86_64": "qemu-x86_64"}
"""What executes static programs of another instruction set (Debian's package qemu-user)."""

States = list[dict[str, Any]]


def tasks(manifest: Manifest, into: Path, method: str, isa: str, weights: str = manifests.RUN) -> list[Task]:
    """Every benchmark in every variant, for the instruction set `isa`. With the `weights` `LINES` programs of
    another one than the machine's are weighted by the source lines of this machine's. Raises LiveproError
    where there is no compiler or emulator for it."""
    native = isa == platform.machine()
    measured = {}
    if not native and weights == manifests.LINES:
        if method != EXACT:
            raise LiveproError("Source lines are weighted by exact counts.", "Leave out `--method sampled`.")
        measured = {task.name: task for task in tasks(manifest, into, method, platform.machine())}
    cc = manifest.targets.get(isa, "cc" if native else "")
    if not cc:
        raise LiveproError(
            f"{manifest.path} names no compiler for {isa}.", f'Add [targets.{isa}] with cc = "...".'
        )
    compiler = shlex.split(cc)[0]
    if shutil.which(compiler) is None and any(b.sources for b in manifest.benchmarks):
        raise LiveproError(
            f"The compiler {compiler} is not there.", "Install it, or name another in [targets]."
        )
    emulator = "" if native or measured else shutil.which(EMULATORS[isa]) or ""
    if not native and not emulator and not measured:
        raise LiveproError(
            f"Programs for {isa} take {EMULATORS[isa]} on this machine.",
            "Debian's package qemu-user has it; or take the source lines of this machine's run: "
            "`--weights lines`.",
        )
    if emulator and method != EXACT:
        raise LiveproError(f"An emulated {isa} program cannot be sampled.", "Leave out `--method sampled`.")
    folder = into / "parts" / isa
    out = []
    for benchmark in manifest.benchmarks:
        for variant, flags in manifest.variants.items() if benchmark.sources else [("as-is", "")]:
            program = folder / f"{benchmark.name}-{variant}"
            if benchmark.program:
                program = manifest.directory / benchmark.program
            values = {
                "program": str(program),
                "folder": str(folder),
                "directory": str(manifest.directory),
            }
            build = build_command(manifest, benchmark, flags, cc, program) if benchmark.sources else []
            name = f"{benchmark.name}@{variant}"
            out.append(
                Task(
                    name=name,
                    isa=isa,
                    folder=str(folder),
                    directory=str(manifest.directory),
                    build=tuple(build),
                    program=str(program),
                    run=tuple(fill(word, values) for word in benchmark.run),
                    environment=tuple(sorted(benchmark.environment.items())),
                    working_directory=fill(benchmark.working_directory, values),
                    input="" if measured else benchmark.input,
                    expect=None if measured else benchmark.expect,
                    method=method,
                    emulator=emulator,
                    own_code_only=manifest.own_code_only,
                    measured=measured.get(name),
                )
            )
    return out


def collect(
    into: Path, every: Sequence[Task], states: States, manifest: Manifest, method: str
) -> list[BlockRow]:
    """Write the data set of what its tasks have left; returns its rows."""
    good = {(s["isa"], s["name"]) for s in states if not s["failure"]}
    rows: list[BlockRow] = []
    for task in every:
        if (task.isa, task.name) in good:
            benchmark, _, variant = task.name.partition("@")
            # A relative module: the data set does not depend on where it was made.
            rows += [
                replace(
                    row,
                    benchmark=f"{benchmark}/{variant}",
                    module=row.module.removeprefix(f"{into.resolve()}/"),
                    file=row.file.removeprefix(f"{manifest.directory}/"),
                )
                for row in parquet.read(task.table)
            ]
    by_isa = [with_shares(r for r in rows if r.isa == isa) for isa in sorted({r.isa for r in rows})]
    rows = [row for part in by_isa for row in part]
    parquet.write(rows, into / files.DATASET)
    document = {
        "suite": manifest.name,
        "manifest": str(manifest.path),
        "manifest_sha256": manifest.digest,
        "manifest_text": manifest.text,
        "method": method,
        "isas": sorted({task.isa for task in every}),
        "livepro": __version__,
        "compilers": {isa: _version(manifest.targets.get(isa, "cc")) for isa in {t.isa for t in every}},
        "variants": dict(manifest.variants),
        "machine": {"name": platform.machine(), "kernel": platform.release(), "processor": cpu().model},
        "weights": {task.isa: manifests.LINES if task.measured else manifests.RUN for task in every},
        "left_out": {f"{s['isa']}/{s['name']}": s["left_out"] for s in states if s.get("left_out")},
        "emulators": sorted({task.emulator for task in every if task.emulator}),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "failures": {f"{s['isa']}/{s['name']}": s["failure"] for s in states if s["failure"]},
    }
    (into / "dataset.json").write_text(json.dumps(document, indent=1) + "\n")
    (into / "README.md").write_text(readme(document, rows))
    return rows


def _version(cc: str) -> str:
    try:
        words = [shlex.split(cc)[0], "--version"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    except OSError:
        return ""


def readme(document: dict[str, Any], rows: Sequence[BlockRow]) -> str:
    """What a reader wants to know of a data set first."""
    lines = [
        f"# Basic blocks of the suite {document['suite']}",
        "",
        f"Made {document['date']} by livepro {document['livepro']}, method: {document['method']}, on "
        f"{document['machine']['processor'] or document['machine']['name']}.",
    ]
    if document["emulators"]:
        lines.append(
            "Counts of another instruction set than the machine's are those of QEMU's user-mode emulator."
        )
    for isa, weights in document["weights"].items():
        if weights == manifests.LINES:
            own = [left for name, left in document["left_out"].items() if name.startswith(f"{isa}/")]
            functions, without, never = (
                sum(left[key] for left in own) for key in ("functions", "without_line", "not_executed")
            )
            lines.append(
                f"The programs for {isa} were built, not executed: a block of theirs has the executions that "
                f"its first source line had in the run for {document['machine']['name']} (method: {LINES}). "
                f"Left out were {without:,} blocks without a source line, {never:,} whose line was not "
                f"executed, and {functions:,} functions without debug information."
            )
    lines += [
        "",
        "| instruction set | benchmarks | blocks | distinct | in innermost loops | with SIMD |",
        "|---|---|---|---|---|---|",
    ]
    for isa in sorted({row.isa for row in rows}):
        own = [row for row in rows if row.isa == isa]
        lines.append(
            f"| {isa} | {len({r.benchmark for r in own})} | {len(own)} | {len({r.code for r in own})} | "
            f"{sum(bool(r.loop) for r in own)} | {sum(bool(r.simd) for r in own)} |"
        )
    lengths = Counter(min(row.length, 20) for row in rows)
    lines += [
        "",
        "Lengths (instructions: blocks): " + ", ".join(f"{n}: {lengths[n]}" for n in sorted(lengths)),
    ]
    for name, reason in document["failures"].items():
        lines.append(f"\nNot in it: {name}: {reason}")
    return "\n".join(lines) + "\n"


class Differences(NamedTuple):
    """What differs between two data sets: blocks that only one has, and those counted otherwise."""

    only_first: list[BlockRow]
    only_second: list[BlockRow]
    changed: list[tuple[BlockRow, BlockRow]]

    @property
    def none(self) -> bool:
        """Whether nothing differs."""
        return not (self.only_first or self.only_second or self.changed)


def differences(first: Sequence[BlockRow], second: Sequence[BlockRow]) -> Differences:
    """Compare block by block; all occurrences are compared but samples."""
    one, other = ({_key(row): row for row in rows} for rows in (first, second))
    return Differences(
        [row for key, row in one.items() if key not in other],
        [row for key, row in other.items() if key not in one],
        [
            (row, other[key])
            for key, row in one.items()
            if key in other and row.method in (EXACT, LINES) and row.occurrences != other[key].occurrences
        ],
    )


def _key(row: BlockRow) -> tuple[str, str, str, int, str]:
    return row.benchmark, row.isa, row.function, row.offset, row.code


def describe(into: Path) -> dict[str, Any]:
    """A data set's `dataset.json`. Raises LiveproError where there is none."""
    try:
        document: dict[str, Any] = json.loads((into / "dataset.json").read_text())
        return document
    except (OSError, ValueError) as error:
        raise LiveproError(
            f"{into} is no data set: it has no dataset.json that can be read.",
            "`livepro blocks suite MANIFEST -o DIR` makes one.",
        ) from error


Progress = Callable[[dict[str, Any], int, int], None]
"""Told of each task's state, with how many are done, of how many."""
