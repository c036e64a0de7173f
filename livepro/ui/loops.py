"""The loops of a run as a table: where they begin, in words that --start-at takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TextIO

from livepro.flow import FlowGraph, Loop
from livepro.model import BlockTable
from livepro.ui.console import ascii_only, open_console
from livepro.ui.summary import Page
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
