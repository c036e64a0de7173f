"""What the commands of `livepro blocks` share: filters, files, the table."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import TextIO

from livepro import isa as registry
from livepro.blocks import files
from livepro.blocks.rows import BlockRow, Filters, instructions, merged
from livepro.errors import LiveproError
from livepro.formats.files import check_writable
from livepro.ui.console import ascii_only, open_console
from livepro.ui.tables import Column, Table
from livepro.ui.text import grouped, percent, plural

TOP = 10
"""Blocks of the table, unless --top says otherwise."""

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


def share(text: str) -> float:
    """A share as people write it, 0.01 or 1%, from 0 to 1. Raises argparse.ArgumentTypeError."""
    match = _PERCENT.fullmatch(text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share (write 0.01 or 1%)")
    return value


def positive(text: str) -> int:
    """A whole number above 0. Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def add_output(parser: argparse.ArgumentParser, counted: bool) -> None:
    """The options that choose blocks and say where they go."""
    which = parser.add_argument_group("which blocks")
    if counted:
        which.add_argument(
            "--min-share",
            type=share,
            default=0.0,
            metavar="S",
            help="only blocks that are at least S of all executions or of all time (0.01 or 1%%)",
        )
    which.add_argument(
        "--loops-only",
        action="store_true",
        help="only blocks that repeat themselves or are in an innermost loop",
    )
    which.add_argument("--no-calls", action="store_true", help="only blocks that do not end in a call")
    which.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="NAME",
        help="only blocks of this file: its name or path (libc is libc.so.6; can be given several times)",
    )
    which.add_argument("--distinct", action="store_true", help="blocks of equal bytes are one")
    where = parser.add_argument_group("where they go")
    where.add_argument(
        "-o", "--output", metavar="PATH", help="the file to write; a directory for a file per block"
    )
    where.add_argument(
        "--format",
        choices=files.FORMATS,
        help="what to write (default: by the file's name, .csv .json .parquet .sqlite)",
    )
    where.add_argument(
        "--top",
        type=positive,
        default=TOP,
        metavar="N",
        help=f"blocks in the table on the terminal (default: {TOP})",
    )
    where.add_argument("-q", "--quiet", action="store_true", help="no table")


def check_output(args: argparse.Namespace, stdout: bool) -> None:
    """Raise LiveproError, before anything else is done, for an output that cannot be written. `stdout`
    says whether text may go to standard output."""
    if args.output is None:
        if args.format and not stdout:
            raise LiveproError(
                f"--format {args.format} without a file: standard output is the program's.",
                f"Say where it is to go: `-o NAME{files.FORMATS[args.format].suffix}`.",
            )
        return
    directory = args.output.endswith("/") or Path(args.output).is_dir()
    args.format = args.format or files.format_of(args.output)
    kind = files.FORMATS[args.format]
    if kind.only_each or (directory and kind.each):
        from livepro.formats.files import prepare_directory

        prepare_directory(args.output, "-o")
    else:
        check_writable(args.output, "-o")


def chosen(args: argparse.Namespace, rows: Iterable[BlockRow]) -> list[BlockRow]:
    """The rows that the options want, equal ones merged if asked for."""
    filters = Filters(
        min_share=getattr(args, "min_share", 0.0),
        loops_only=args.loops_only,
        no_calls=args.no_calls,
        modules=args.module,
    )
    rows = merged(rows) if args.distinct else rows
    return [row for row in rows if filters.keep(row)]


def report(args: argparse.Namespace, all_rows: Iterable[BlockRow], stream: TextIO, heading: str) -> None:
    """Write the rows that the options want where they say, and print the table to `stream`."""
    from livepro.blocks.lines import with_lines

    rows = chosen(args, all_rows)
    if args.format in files.TABLES:
        rows = with_lines(rows)
    elif not args.quiet:
        rows[: args.top] = with_lines(rows[: args.top])
    if args.output is not None:
        files.write(rows, Path(args.output), args.format)
    elif args.format:
        sys.stdout.write(files.text(rows, args.format))
        return
    if not args.quiet:
        print_table(rows, stream, args.top, heading)
        if args.output is not None:
            print(f"\n{plural(len(rows), 'block')} written to {args.output}", file=stream)


def print_table(rows: Sequence[BlockRow], stream: TextIO, top: int, heading: str) -> None:
    """The first `top` rows with what they are, and their instructions."""
    console = open_console(stream)
    plain = ascii_only(console)

    def show(text: object) -> None:
        console.print(text, soft_wrap=True)

    note = f", here {'the hottest' if rows and rows[0].share is not None else 'the first'} {top}"
    show(f"{heading}: {plural(len(rows), 'block')}{note if len(rows) > top else ''}")
    if not rows:
        return
    show("")
    for line in table(rows[:top]).lines(console.width, plain):
        show(line)
    for row in rows[:top]:
        show("")
        show(f"  {row.name}  {PurePath(row.module).name}{place(row)}")
        isa = registry.for_machine(row.isa)
        for address, code in instructions(isa, row.bytes, row.address):
            show(f"    {address:x}  {isa.disassemble(code, address)}")


def table(rows: Sequence[BlockRow]) -> Table:
    """The rows in columns."""
    counted = any(row.occurrences is not None for row in rows)
    several = len({row.benchmark for row in rows}) > 1
    name = "samples" if all(row.method == "sampled" for row in rows) else "times run"
    columns = [Column(name), Column("share"), Column("of time")] if counted else []
    columns += [
        Column("instr."),
        Column("bytes"),
        Column("mem."),
        Column("loop", right=False),
        Column("SIMD", right=False, flexible=True),
        Column("block", right=False, flexible=True, weight=3, style="cyan"),
        Column("module", right=False, flexible=True, weight=2),
    ]
    columns += [Column("benchmark", right=False, flexible=True)] if several else []
    out = Table(columns)
    for row in rows:
        figures = [grouped(row.occurrences or 0), part(row.share), part(row.time_share)] if counted else []
        width = f" {row.simd_width}" if row.simd_width else ""
        out.add(
            *figures,
            str(row.length),
            str(row.size),
            str(row.memory) if row.memory else "-",
            row.loop or "-",
            f"{row.simd}{width}" or "-",
            row.name,
            PurePath(row.module).name,
            *([row.benchmark] if several else []),
        )
    return out


def part(value: float | None) -> str:
    """A share in percent."""
    return "-" if value is None else percent(round(value * 10**9), 10**9)


def place(row: BlockRow) -> str:
    """The source line, where it is known."""
    return f"  {PurePath(row.file).name}:{row.line}" if row.file else ""
