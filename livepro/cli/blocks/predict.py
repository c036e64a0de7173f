"""`livepro blocks predict`: what throughput models say of the blocks of a data set."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from livepro.blocks import files
from livepro.blocks.predict.models import DEFAULT_PROCESSORS, MODELS, OTHER_ISA, PROCESSORS, Prediction
from livepro.cli.blocks import options
from livepro.cli.parser import Parser, names, suggest
from livepro.errors import LiveproError
from livepro.formats.files import check_writable
from livepro.kept.place import default_directory
from livepro.ui.text import plural, scaled

if TYPE_CHECKING:
    from livepro.blocks.predict.predictions import Answers
    from livepro.blocks.rows import BlockRow
    from livepro.ui.tables import Table

SHOWN = 3
"""Blocks that are named for each reason that there is no prediction."""

DESCRIPTION = """\
Have throughput models predict the cycles that each of the hottest blocks takes when it is
executed again and again, from the first-level cache. The blocks are those of a table
(.csv, .json, .parquet) or of a data set's directory."""

EPILOG = """\
examples:
  livepro blocks predict blocks.csv
  livepro blocks predict dataset --with llvm-mca,osaca --cpu skylake,zen3 --top 50
  livepro blocks predict dataset --cpu neoverse-n1 -o predictions.json

models: llvm-mca (Debian's package llvm), osaca (`pip install 'livepro[blocks]'`).
processors: {processors}.
Answers are remembered (`livepro cache`); --no-cache asks anew."""


def parser() -> Parser:
    """The options of `livepro blocks predict`."""
    out = Parser("livepro blocks predict", DESCRIPTION, EPILOG.format(processors=", ".join(PROCESSORS)))
    out.usage = "livepro blocks predict DATASET [options]"
    out.add_argument("dataset", metavar="DATASET")
    out.add_argument(
        "--with", dest="models", type=names, metavar="MODELS", help="models (default: those installed)"
    )
    out.add_argument(
        "--cpu",
        type=names,
        metavar="CPUS",
        help="processors (default: skylake for x86-64, neoverse-n1 and neoverse-v2 for AArch64)",
    )
    out.add_argument(
        "--top",
        type=options.positive,
        default=20,
        metavar="N",
        help="the N hottest blocks of each instruction set (default: 20)",
    )
    out.add_argument("--loops-only", action="store_true", help="only blocks of innermost loops")
    out.add_argument("--no-calls", action="store_true", help="only blocks that do not end in a call")
    out.add_argument("--no-cache", dest="cache", action="store_false", help="remember nothing")
    out.add_argument("-o", "--output", metavar="FILE", help="write all of it as JSON")
    return out


def main(argv: Sequence[str]) -> int:
    """Ask the models, print and write; 0 if all went well."""
    args = parser().parse_args(argv)
    from livepro.blocks.predict.predictions import predict

    models = known(args.models, MODELS, "model") if args.models else installed()
    if args.output:
        check_writable(args.output, "-o")
    every = files.read(Path(args.dataset))
    rows = hottest(every, args)
    if not rows:
        raise LiveproError(f"{args.dataset} has no such blocks.", "Leave out a filter.")
    default = tuple(p for isa in sorted({row.isa for row in rows}) for p in DEFAULT_PROCESSORS[isa])
    processors = known(args.cpu, PROCESSORS, "processor") if args.cpu else default
    kept = default_directory() if args.cache else None
    answers = predict(rows, models, processors, kept, lambda text: print(f"livepro: {text}", file=sys.stderr))
    show(rows, every, answers)
    if args.output:
        Path(args.output).write_text(json.dumps(document(rows, answers), indent=1) + "\n")
    return 0


def hottest(rows: Sequence[BlockRow], args: argparse.Namespace) -> list[BlockRow]:
    """The hottest rows of each instruction set that the options want, over all benchmarks."""
    from livepro.blocks.rows import weight

    wanted = [row for row in rows if (row.loop or not args.loops_only) and not (args.no_calls and row.call)]
    wanted.sort(key=lambda row: -weight(row))
    return [
        row
        for isa in sorted({row.isa for row in wanted})
        for row in [row for row in wanted if row.isa == isa][: args.top]
    ]


def installed() -> tuple[str, ...]:
    """The models that can be asked. Raises LiveproError where there is none."""
    found = (*(["llvm-mca"] if shutil.which("llvm-mca") else []), *(["osaca"] if find_spec("osaca") else []))
    if not found:
        raise LiveproError(
            "Neither llvm-mca nor OSACA is installed.",
            "Debian's package llvm has llvm-mca; `pip install 'livepro[blocks]'` brings OSACA.",
        )
    return found


def known(asked: Sequence[str], names_: Collection[str], what: str) -> tuple[str, ...]:
    """`asked`, each of which must be a known name. Raises LiveproError."""
    for name in asked:
        if name not in names_:
            raise LiveproError(
                f"There is no {what} '{name}'.",
                "uiCA is in no package registry: `--format uica` of `livepro blocks` writes what it reads."
                if name.lower() == "uica"
                else f"{suggest(name, names_)}Known are {', '.join(names_)}.",
            )
    return tuple(asked)


def show(rows: Sequence[BlockRow], every: Sequence[BlockRow], answers: Sequence[Answers]) -> None:
    """The blocks with what each model says, and the totals, on standard output."""
    from livepro.blocks.rows import EXACT, LINES, weight
    from livepro.ui.console import ascii_only, open_console

    console = open_console(sys.stdout)
    exact = all(row.method in (EXACT, LINES) for row in rows)
    print(f"cycles for each execution of a block, {plural(len(rows), 'block')} of {len(every):,}")
    for isa in dict.fromkeys(row.isa for row in rows):
        print(f"\n{isa}")
        for line in table(rows, answers, isa).lines(console.width, ascii_only(console)):
            console.print(line, soft_wrap=True)
    print()
    for a in answers:
        own = [(row, p) for row, p in zip(rows, a.predictions, strict=True) if p.reason != OTHER_ISA]
        left_out = [(row, p) for row, p in own if p.cycles is None]
        text = f"{a.model} for {a.processor}: {len(own) - len(left_out)} of {plural(len(own), 'block')}"
        total = a.total(rows)
        if exact and total:
            instructions = sum(
                weight(row) for row, p in zip(rows, a.predictions, strict=True) if p.cycles is not None
            )
            top = max(
                zip(rows, a.predictions, strict=True),
                key=lambda x: (x[0].occurrences or 0) * (x[1].cycles or 0),
            )
            part = (top[0].occurrences or 0) * (top[1].cycles or 0) / total
            text += (
                f", {scaled(total)} cycles, {instructions / total:.2f} instructions a cycle; "
                f"{100 * part:.0f} % in {top[0].name}"
            )
        print(text)
        for reason, names_ in by_reason(left_out).items():
            more = f" and {len(names_) - SHOWN:,} more" if len(names_) > SHOWN else ""
            print(f"  no prediction for {', '.join(names_[:SHOWN])}{more}: {reason}")
    for sentence in disagreements(rows, answers):
        print(sentence)


def table(rows: Sequence[BlockRow], answers: Sequence[Answers], isa: str) -> Table:
    """The blocks of one instruction set, with a column for each model and processor that says anything."""
    from livepro.ui.tables import Column, Table

    several = len({row.benchmark for row in rows}) > 1
    own = [i for i, row in enumerate(rows) if row.isa == isa]
    shown = [a for a in answers if any(a.predictions[i].cycles is not None for i in own)]
    columns = [Column("times run"), Column("instr.")]
    columns += [Column(f"{a.model}\n{a.processor}") for a in shown]
    columns += [Column("bounded by", right=False, flexible=True, weight=2)]
    columns += [Column("block", right=False, flexible=True, weight=3, style="cyan")]
    columns += [Column("benchmark", right=False, flexible=True, weight=2)] if several else []
    out = Table(columns)
    for i in own:
        row = rows[i]
        said = [a.predictions[i] for a in shown]
        bounds = dict.fromkeys(p.bottleneck for p in said if p.bottleneck)
        figures = ["-" if p.cycles is None else f"{p.cycles:.2f}" for p in said]
        times = "-" if row.occurrences is None else f"{row.occurrences:,}"
        out.add(
            times,
            str(row.length),
            *figures,
            "; ".join(bounds) or "-",
            row.name,
            *([row.benchmark] if several else []),
        )
    return out


def by_reason(left_out: Sequence[tuple[BlockRow, Prediction]]) -> dict[str, list[str]]:
    """The names of blocks without a prediction, by the reason."""
    out: dict[str, list[str]] = {}
    for row, prediction in left_out:
        names_ = out.setdefault(prediction.reason, [])
        if row.name not in names_:
            names_.append(row.name)
    return out


def disagreements(rows: Sequence[BlockRow], answers: Sequence[Answers]) -> list[str]:
    """Where two models say most different things of one processor."""
    out = []
    for processor in dict.fromkeys(a.processor for a in answers):
        own = [a for a in answers if a.processor == processor]
        found = []
        for i, row in enumerate(rows):
            cycles = [c for a in own if (c := a.predictions[i].cycles)]
            if len(cycles) > 1 and max(cycles) > 1.5 * min(cycles):
                found.append((max(cycles) / min(cycles), row.name))
        if found:
            worst = max(found)
            out.append(
                f"for {processor} the models differ by more than half on {plural(len(found), 'block')}, "
                f"most on {worst[1]}: {worst[0]:.1f} times"
            )
    return out


def document(rows: Sequence[BlockRow], answers: Sequence[Answers]) -> list[dict[str, object]]:
    """All of it, an object for each block."""
    return [
        {
            **row.values(),
            "predictions": [
                {"model": a.model, "cpu": a.processor, **a.predictions[i]._asdict()} for a in answers
            ],
        }
        for i, row in enumerate(rows)
    ]
