"""The files of a run: planned and checked before it, written after it."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livepro.analyses import bbv, simd
from livepro.analyses.bbv import CutRule, Dialect
from livepro.analyses.itypes import itypes, other_items
from livepro.analyses.origins import TIERS, compiled, only, tier_wanted
from livepro.cli import checks
from livepro.errors import LiveproError
from livepro.formats import expbbv, files, itypes_spec, json_report, mica, simd_csv
from livepro.isa.vocabulary import vocabulary
from livepro.model import ProcessResult, RunResult
from livepro.model.itypes import ItypesSpec

if TYPE_CHECKING:
    from livepro.analyses.inlined import Frames

UNWRITTEN = 2
"""Exit status where a file that was asked for could not be written after the run."""

SUMMARY_PATIENCE = 1.0
"""Seconds in which the summary looks for inlined functions."""

DEFAULT_INTERVAL = 100_000_000
"""exp-bbv's default interval size, in instructions."""

DEFAULT_VECTORS = "bb.out.%p"
"""exp-bbv's default name."""

JSON_NAME = "livepro.json"
SIMD_NAME = "simd.csv"
PC_NAME = "pc.out.%p"
CACHEGRIND_NAME = "cachegrind.out.%p"
VECTOR_ANALYSIS = "bbv"


@dataclass(frozen=True)
class Plan:
    """What to write where; an empty name or None for what nobody asked for. `itypes`
    is a directory, for MICA's files; the others are file names.

    `rule` says where vectors are cut, `code` whether the report has all blocks with their code, `demangle`
    whether functions are called as in their sources.
    `spec` are the instruction-type groups of the user (None: the default ones).
    """

    json: str = ""
    html: str = ""
    simd: str = ""
    vectors: str = ""
    pc: str = ""
    itypes: str = ""
    cachegrind: str = ""
    vectors_option: str = "--bb-out-file"
    pc_option: str = "--pc-out-file"
    rule: CutRule = field(default_factory=lambda: CutRule(DEFAULT_INTERVAL))
    spec: ItypesSpec | None = None
    code: bool = True
    demangle: bool = True

    @property
    def interval_size(self) -> int:
        """What the engine is asked for: 0 where no vectors are written."""
        return self.rule.interval_size if self.vectors else 0


def plan(args: argparse.Namespace, chosen: tuple[str, ...], environment: Mapping[str, str]) -> Plan:
    """What `args` ask for, every file proved writable. Raises LiveproError for what is not.

    The directory of -o is made if need be; it gets the files of the `chosen` analyses that
    no option of their own sends elsewhere.
    """
    checks.tiers(args.tier, TIERS)
    into = args.output
    if into is not None:
        files.prepare_directory(into, "-o")
    in_directory = "" if into is None else into.rstrip("/").replace("%", "%%") or "/"

    def conventional(name: str, analysis: str) -> str:
        return f"{in_directory}/{name}" if in_directory and analysis in chosen else ""

    vectors: str = args.bb_out_file or conventional(DEFAULT_VECTORS, VECTOR_ANALYSIS)
    if not vectors and not in_directory and args.interval_size is not None:
        vectors = DEFAULT_VECTORS
    out = Plan(
        json=args.json or (str(Path(into, JSON_NAME)) if into is not None else ""),
        html=args.html or "",
        simd=args.simd_csv or (str(Path(into, SIMD_NAME)) if into is not None and "simd" in chosen else ""),
        vectors="" if args.instr_count_only else vectors,
        pc=args.pc_out_file or conventional(PC_NAME, VECTOR_ANALYSIS),
        cachegrind=args.cachegrind_out_file
        or (conventional_cachegrind(in_directory) if checks.counts_lines(args) else ""),
        itypes=into if into is not None and "itypes" in chosen else "",
        vectors_option="--bb-out-file"
        if args.bb_out_file
        else "-o"
        if into is not None
        else "--interval-size",
        pc_option="--pc-out-file" if args.pc_out_file else "-o",
        rule=CutRule(args.interval_size or DEFAULT_INTERVAL, Dialect(args.bbv_dialect)),
        spec=None
        if args.itypes_spec is None
        else itypes_spec.read(args.itypes_spec, vocabulary(platform.machine())),
        code=args.code,
        demangle=args.demangle,
    )
    check(args, out, environment)
    return out


def check(args: argparse.Namespace, out: Plan, environment: Mapping[str, str]) -> None:
    """Prove every file of the plan writable, and no two of them the same."""
    # The process id is not known yet; any stands in for it. An empty name is an error, not an absence.
    patterns = {"--bb-out-file": args.bb_out_file, "--pc-out-file": args.pc_out_file}
    named = {"--json": args.json, "--html": args.html, "--simd-csv": args.simd_csv}
    given = {option: name for option, name in named.items() if name is not None}
    given |= {
        option: files.expand(pattern, 1, environment, option)
        for option, pattern in patterns.items()
        if pattern is not None
    }
    if out.vectors_option == "--interval-size" and out.vectors:
        given["--interval-size"] = files.expand(out.vectors, 1, environment, "--interval-size")
    if out.cachegrind:
        given["--cachegrind-out-file"] = files.expand(out.cachegrind, 1, environment, "--cachegrind-out-file")
    for option, name in given.items():
        files.check_writable(name, option)
    checks.distinct(given)


def write(
    out: Plan, result: RunResult, environment: Mapping[str, str]
) -> tuple[list[str], list[LiveproError]]:
    """Write every file of the plan. Returns warnings, and the errors: one file that
    fails does not keep the others from being written."""
    warnings: list[str] = []
    errors: list[LiveproError] = []
    report_of_run = cache(lambda: to_document(out, result))
    jobs: list[tuple[str, Callable[[], None]]] = [
        (out.json, lambda: json_report.write(out.json, report_of_run())),
        (out.html, lambda: write_html(out.html, report_of_run())),
        (out.simd, lambda: write_simd(out.simd, result)),
        (out.itypes, lambda: write_itypes(Path(out.itypes), result, out.spec)),
        (out.vectors, lambda: warnings.extend(write_vectors(out, result, environment))),
        (out.pc, lambda: write_pc(out, result, environment)),
        (out.cachegrind, lambda: write_cachegrind(out, result, environment)),
    ]
    for name, job in jobs:
        if not name:
            continue
        try:
            job()
        except LiveproError as error:
            errors.append(error)
        except OSError as error:  # a disk that fills up
            errors.append(
                LiveproError(
                    f"{name} could not be written: {error.strerror}.", "What is there is incomplete."
                )
            )
    return warnings, errors


def to_document(out: Plan, result: RunResult) -> dict[str, Any]:
    """The JSON report, with source lines of the code where it can be found out now."""
    from livepro.analyses import document
    from livepro.linux.lines import PATIENCE, LineTables  # what only files need, others need not load

    lines = LineTables().lookup if out.code else None
    frames = inlined_functions(out, PATIENCE)
    return document.to_document(result, out.spec, with_code=out.code, lines=lines, frames=frames)


def inlined_functions(out: Plan, patience: float) -> Frames:
    """What finds the inlined functions that blocks are in, for so many seconds at most."""
    from livepro.linux.inlined import Inlining
    from livepro.names.demangle import Demangler

    return Inlining(patience=patience, spelled=Demangler() if out.demangle else None).lookup


def write_html(name: str, report: dict[str, Any]) -> None:
    """A page for the browser."""
    from livepro.reports.page import page

    with files.open_text(name) as stream:
        stream.write(page([report], [Path(name).name]))


def write_simd(name: str, result: RunResult) -> None:
    """The SIMD profile of every thread of every process, in one file."""
    rows = [
        row
        for process in result.processes
        for thread in simd.process_rows_by_label(process)
        for row in thread
    ]
    with files.open_text(name) as stream:
        simd_csv.write(stream, rows)


def write_itypes(into: Path, result: RunResult, spec: ItypesSpec | None) -> None:
    """MICA's two files of instruction types, for the whole run."""
    counts: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for process in result.processes:
        for thread in process.threads:
            counts.update(itypes(process.table, thread, spec))
            other.update(dict(other_items(process.table, thread, spec)))
    with files.open_text(str(into / mica.FULL)) as stream:
        mica.write_full(stream, result.instructions, counts.values() or [0])
    with files.open_text(str(into / mica.OTHER_CATEGORIES)) as stream:
        mica.write_other_categories(stream, (category for category, _ in other.most_common()))


def images(
    pattern: str, result: RunResult, environment: Mapping[str, str], option: str
) -> Iterator[tuple[str, ProcessResult]]:
    """A file name for every process image that executed something."""
    counted = [p for p in result.processes if len(p.table)]
    names = files.names_for_images(pattern, [(p.pid, p.image) for p in counted], environment, option)
    return zip(names, counted, strict=True)


def write_vectors(out: Plan, result: RunResult, environment: Mapping[str, str]) -> list[str]:
    """A vector file per thread; returns warnings of lines too wide for SimPoint."""
    warnings = []
    for name, process in images(out.vectors, result, environment, out.vectors_option):
        for number, thread in enumerate(process.threads, 1):
            path = files.name_for_thread(name, number)
            trailer = expbbv.Trailer(number, *bbv.summary(process.table, thread, out.rule))
            with files.open_text(path) as stream:
                vectors = bbv.vectors(process.table, thread, out.rule)
                written = expbbv.write_vectors(stream, vectors, trailer)
            warnings.append(expbbv.simpoint_warning(path, written))
    return [warning for warning in warnings if warning]


def conventional_cachegrind(directory: str) -> str:
    """Cachegrind's own name for its file."""
    return f"{directory}/{CACHEGRIND_NAME}" if directory else CACHEGRIND_NAME


def write_cachegrind(out: Plan, result: RunResult, environment: Mapping[str, str]) -> None:
    """A file for each process image that the simulator saw."""
    told = result.analyses.get("hierarchy") or result.analyses.get("cachesim", [])
    pattern, option = out.cachegrind, "--cachegrind-out-file"
    names = files.names_for_images(pattern, [(t["pid"], t["image"]) for t in told], environment, option)
    for name, process in zip(names, told, strict=True):
        found = process["result"]
        from livepro.formats import cachegrind

        profile = cachegrind.Profile(
            tuple(found["events"]),
            " ".join(process["command"]),
            [f"{cache} cache:         {shape}" for cache, shape in found["caches"].items()],
            {(file, function, line): tuple(counts) for file, function, line, *counts in found["lines"]},
        )
        with files.open_text(name) as stream:
            cachegrind.write(stream, profile)


def write_pc(out: Plan, result: RunResult, environment: Mapping[str, str]) -> None:
    """A pc file per process image; it serves all threads."""
    for name, process in images(out.pc, result, environment, out.pc_option):
        with files.open_text(name) as stream:
            expbbv.write_pc(stream, expbbv.pc_entries(process.table))


def totals_text(out: Plan, result: RunResult) -> str:
    """exp-bbv's totals of every thread, for --instr-count-only."""
    parts = []
    for process in result.processes:
        for number, thread in enumerate(process.threads, 1):
            figures = bbv.summary(process.table, thread, out.rule)
            if out.rule.dialect is Dialect.EXACT:  # no vectors were cut, so count those that would have been
                figures = figures._replace(intervals=-(-figures.instructions // figures.interval_size))
            parts.append(expbbv.Trailer(number, *figures).text())
    return "\n".join(parts)


def measured(result: RunResult) -> bool:
    """Whether the part of the run that was to be counted has begun."""
    return result.region is None or result.region.began


def report(args: argparse.Namespace, chosen: tuple[str, ...], out: Plan, result: RunResult) -> bool:
    """Write every file of the plan and, unless the user wants quiet, the summary, with the `chosen`
    analyses. Says what went wrong on standard error; False if a file is not what it should be."""
    if args.tier:
        result = only(result, tier_wanted(args.tier), f"code compiled in tier {', '.join(args.tier)}")
    elif args.jit_only:
        result = only(result, compiled, "code that C1 and C2 compiled")
    warnings, errors = write(out, result, os.environ)
    if args.instr_count_only and not args.quiet:
        print(totals_text(out, result), file=sys.stderr)
    if not args.quiet:
        from livepro.ui.summary import print_summary

        print_summary(
            replace(result, warnings=(*result.warnings, *warnings)),
            sys.stderr,
            sections=chosen,
            stats=args.stats,
            spec=out.spec,
            frames=inlined_functions(out, SUMMARY_PATIENCE),
        )
    for error in errors:
        print(f"livepro: {error}", file=sys.stderr)
    return not errors
