"""The loops of a run, and regions from loop to loop, as tables: places in words that --start-at takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TextIO

from livepro.flow import FlowGraph, Loop
from livepro.model import BlockTable
from livepro.simpoint.together import Region, Turn
from livepro.ui.console import ascii_only, open_console
from livepro.ui.page import Page
from livepro.ui.tables import Column, Table
from livepro.ui.text import grouped, percent


def print_loops(
    table: BlockTable, graph: FlowGraph, loops: Sequence[Loop], whole: int, stream: TextIO
) -> None:
    """Print `loops` of a process that executed `whole` instructions."""
    if not loops:
        return
    console = open_console(stream)
    page = Page(console, console.width, ascii_only(console))
    page.title("Loops", "of all threads; header:N, as --start-at takes it, is its Nth turn")
    rows = Table(
        [
            Column("header", right=False, flexible=True),
            Column("function", right=False, flexible=True),
            Column("depth"),
            Column("turns"),
            Column("per turn"),
            Column("share"),
        ]
    )
    for loop in loops:
        block = int(graph.block[loop.header])
        module = PurePath(table.module[block]).name
        rows.add(
            f"{module}+{int(table.offset[block]):#x}",
            table.function[block],
            str(loop.depth),
            grouped(loop.turns),
            f"{loop.instructions / loop.turns:,.1f}",
            percent(loop.instructions, whole),
        )
    page.table(rows)


def print_regions(regions: Sequence[Region], left_out: float, whole: float, stream: TextIO) -> None:
    """Print where other runs find the regions of a process that executed `whole` instructions, and `left_out`
    more in which its threads waited for each other."""
    console = open_console(stream)
    page = Page(console, console.width, ascii_only(console))
    page.title("Regions", "of all threads together; --start-at and --stop-at take a turn as it stands here")
    columns = [Column("phase"), Column("from", right=False, flexible=True), Column("function", right=False)]
    columns += [Column("up to", right=False, flexible=True), Column("instructions"), Column("counts for")]
    rows = Table(columns)
    for region in regions:
        rows.add(
            str(region.phase),
            place(region.start),
            region.start.function,
            place(region.end),
            grouped(region.instructions),
            f"{region.multiplier:,.2f} x",
        )
    page.table(rows)
    if left_out:
        page.print(f"  left out: {percent(round(left_out), round(whole + left_out))} in which threads waited")


def place(turn: Turn) -> str:
    """A turn as --start-at takes it."""
    return f"{PurePath(turn.module).name}+{turn.offset:#x}:{turn.number}"
