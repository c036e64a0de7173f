"""What the commands of `livepro blocks` share: which blocks are wanted, files, the table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import TextIO

from livepro import isa as registry
from livepro.blocks import files
from livepro.blocks.lines import with_lines
from livepro.blocks.rows import BlockRow, Filters, instructions, merged
from livepro.ui.console import ascii_only, open_console
from livepro.ui.tables import Column, Table
from livepro.ui.text import grouped, percent, plural


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
