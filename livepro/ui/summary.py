"""The summary of a run: what a person wants to know first, on one or two screens.

Everything exact and complete is in the JSON report; here small shares are
rounded, long lists cut, and what was cut is said.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from rich.text import Text

from livepro.analyses import snapshots
from livepro.analyses.sampling import estimate
from livepro.model import RunResult, SamplingResult
from livepro.model.itypes import ItypesSpec
from livepro.ui import advice, origins
from livepro.ui.console import ascii_only, open_console
from livepro.ui.matrix import itypes_matrix, simd_matrix
from livepro.ui.page import Page
from livepro.ui.tables import GAP, INDENT, Column, Table
from livepro.ui.text import bar, duration, grouped, percent, plural, scaled, shortened
from livepro.ui.view import NO_WIDTH, Counts, RunView, shown, view

if TYPE_CHECKING:
    from livepro.analyses.inlined import Frames

MOST_ROWS = 24
"""Rows of the table of processes and threads."""

MOST_THREADS = 12
"""Rows of the tables of types and SIMD by thread."""

MOST_SETS = 16
"""Rows of the SIMD table."""

HOTTEST = 10

LONGEST_BAR = 40

T = TypeVar("T")

SECTIONS = ("totals", "simd", "itypes", "origins", "hot")
"""Parts that can be left out, by the names of the analyses that they show."""


def print_summary(
    result: RunResult,
    stream: TextIO,
    width: int | None = None,
    sections: Iterable[str] = SECTIONS,
    stats: bool = False,
    spec: ItypesSpec | None = None,
    frames: Frames | None = None,
) -> None:
    """Print the summary of `result` to `stream`, in colour only where that is a terminal.

    `width` overrides the columns found out; `sections` are names of `SECTIONS`;
    `stats` adds the engine's own figures; `spec` are the user's
    instruction-type groups; `frames` finds the inlined functions that blocks are in.
    """
    console = open_console(stream, width)
    page = Page(console, console.width, ascii_only(console))
    wanted = set(sections)
    run = view(result, HOTTEST, spec, frames if "hot" in wanted else None)
    heading(page, result, run)
    if "totals" in wanted and (len(run.processes) > 1 or any(len(p.threads) > 1 for p in run.processes)):
        processes(page, run)
    if "itypes" in wanted:
        itypes(page, run)
    if "simd" in wanted:
        simd(page, run)
    if "origins" in wanted:
        java(page, result)
    if "hot" in wanted:
        hottest(page, run)
        if told := advice.names(result):
            page.print(Text("\nnote: ", "bold cyan").append(told, "default"))
    for name, outcome in result.analyses.items():
        analysis(page, name, outcome)
    if result.snapshots:
        snapshot_table(page, snapshots.rows(result))
    if stats and result.stats:
        engine_stats(page, result)
    for warning in result.warnings:
        page.print(Text("\nwarning: ", "bold yellow").append(warning, "default"))


def sampled(sampling: SamplingResult) -> str:
    """The windows, and what they say of the whole time."""
    found = estimate(sampling)
    watched = duration(sum(window.seconds for window in sampling.windows))
    text = f"{plural(len(sampling.windows), 'window')}, {watched} in all: {scaled(found.mean)} instructions/s"
    if isfinite(found.margin):
        text += (
            f" +- {scaled(found.margin)} (95 %), {scaled(found.total)} +- {scaled(found.total_margin)} in all"
        )
    return text


def analysis(page: Page, name: str, told: Sequence[dict[str, Any]]) -> None:
    """What an analysis of the event stream told, process by process."""
    for process in told:
        note = f"pid {process['pid']} {' '.join(process['command'])}" if len(told) > 1 else ""
        page.title(name, note)
        for line in process["report"]:
            page.print(Text(" " * INDENT + line))


def heading(page: Page, result: RunResult, run: RunView) -> None:
    """The command, how it ended, and the totals."""
    command = shown(result.command)
    page.print(Text("livepro  ", "bold").append(shortened(command, page.width - 9, page.plain), "bold cyan"))
    pids = len({p.pid for p in run.processes})
    threads = len({t.tid for p in run.processes for t in p.threads})  # an exec goes on in the same thread
    ended = "let go" if result.exit is None else f"exit {ending(result.exit)}"
    parts = [ended, duration(result.wall_seconds), f"{result.engine} engine"]
    if pids > 1:
        parts.append(plural(pids, "process", "processes"))
    if threads > pids:
        parts.append(plural(threads, "thread"))
    page.print(Text(f"  {', '.join(parts)}", "dim"))
    if result.region is not None:
        page.print(Text(f"  counted: {result.region.asked}", "dim"))
    if result.sampling is not None:
        page.print(Text(f"  {sampled(result.sampling)}", "dim"))
    counts = run.counts
    blocks = sum(p.blocks for p in run.processes)
    figures = [(counts.instructions, "instructions", ""), (blocks, "distinct basic blocks", "")]
    if counts.rep_instructions:
        note = f"({plural(counts.rep_iterations, 'iteration')})"
        figures.append((counts.rep_instructions, "rep instructions", note))
    figures.append((counts.simd_total, "SIMD instructions", share_note(counts)))
    wide = max(len(grouped(number)) for number, _, _ in figures)
    page.print("")
    for number, what, note in figures:
        what = what.removesuffix("s") if number == 1 else what
        page.print(
            Text(f"  {grouped(number):>{wide}}", "bold").append(f"  {what} {note}".rstrip(), "default")
        )


def share_note(counts: Counts) -> str:
    """The SIMD share in parentheses, nothing when there is none."""
    return f"({percent(counts.simd_total, counts.instructions)})" if counts.simd_total else ""


def ending(status: int | None) -> str:
    """An exit status, with the signal's name where it stands for one."""
    if status is None:
        return "exec"
    if status > 128:
        try:
            return f"{status} {signal.Signals(status - 128).name}"
        except ValueError:
            pass
    return str(status)


def processes(page: Page, run: RunView) -> None:
    """Processes, and under each its threads where there are several."""
    page.title("Processes and threads", cut_note(len(rows_of(run)), MOST_ROWS))
    table = Table(
        [
            Column("pid/tid", right=False),
            Column("command/thread", right=False, flexible=True),
            Column("instructions"),
            Column("share"),
            Column("blocks"),
            Column("SIMD"),
            Column("exit", right=False),
        ]
    )
    whole = run.counts.instructions
    for label, name, blocks, counts, exit_text in kept(
        rows_of(run), MOST_ROWS, lambda row: row[3].instructions
    ):
        table.add(
            label,
            name,
            grouped(counts.instructions),
            percent(counts.instructions, whole),
            grouped(blocks),
            percent(counts.simd_total, counts.instructions),
            exit_text,
        )
    page.table(table)
    by_thread(page, run)


Row = tuple[str, str, int, Counts, str]


def rows_of(run: RunView) -> list[Row]:
    """One row per process, then one per thread of processes with several."""
    rows: list[Row] = []
    last = {process.pid: process for process in run.processes}
    for process in run.processes:
        ended = "runs" if process.exit is None and process is last[process.pid] else ending(process.exit)
        rows.append((str(process.pid), process.program, process.blocks, process.counts, ended))
        if len(process.threads) > 1:
            rows += [(f"  {t.tid}", t.name, t.blocks, t.counts, "") for t in process.threads]
    return rows


def by_thread(page: Page, run: RunView) -> None:
    """Types and SIMD of every thread, in percent of its own instructions."""
    rows = [
        (str(t.tid), t.name if len(p.threads) > 1 else p.name, t.counts)
        for p in run.processes
        for t in p.threads
    ]
    rows = kept(rows, MOST_THREADS, lambda row: row[2].instructions)
    page.title("Instruction types by thread", "% of the thread's instructions")
    page.table(itypes_matrix(rows, page.width))
    if any(counts.simd for _, _, counts in rows):
        page.title("SIMD by thread", "set and width, % of the thread's instructions")
        page.table(simd_matrix(rows, page.width))


def kept(rows: Sequence[T], most: int, weight: Callable[[T], int]) -> list[T]:
    """The heaviest `most` rows, in their given order."""
    chosen = sorted(range(len(rows)), key=lambda i: -weight(rows[i]))[:most]
    return [rows[i] for i in sorted(chosen)]


def cut_note(number: int, most: int, what: str = "rows") -> str:
    """Says so when a list is cut."""
    return f"the largest {most} of {number:,} {what}" if number > most else ""


def itypes(page: Page, run: RunView) -> None:
    """Instruction types as bars, in the groups' own order."""
    counts = run.counts
    if not any(counts.itypes.values()):
        return
    page.title("Instruction types", "an instruction can be of several")
    table = Table([Column("", right=False, flexible=True), Column(""), Column(""), Column("", right=False)])
    executed = [(group, number) for group, number in counts.itypes.items() if number]
    rows = [
        (group.replace("_", " "), grouped(number), percent(number, counts.instructions))
        for group, number in executed
    ]
    used = INDENT + sum(max(len(row[i]) for row in rows) + GAP for i in range(3))
    room = max(10, min(LONGEST_BAR, page.width - used))
    for row, (_, number) in zip(rows, executed, strict=True):
        table.add(*row, Text(bar(number / counts.instructions, room, page.plain), "cyan"))
    for line in table.lines(page.width, page.plain)[1:]:
        page.print(line)
    if counts.other:
        page.shares("other: ", counts.other, counts.other.total())


def simd(page: Page, run: RunView) -> None:
    """SIMD instructions by set and width, and by what they do."""
    counts = run.counts
    if not counts.simd:
        return
    by_set: Counter[str] = Counter()
    for (name, _), number in counts.simd.items():
        by_set[name] += number
    page.title("SIMD by set and width in bits", cut_note(len(by_set), MOST_SETS, "sets"))
    widths = sorted({width for _, width in counts.simd}, key=width_order)
    table = Table([Column("set", right=False), *map(Column, widths), Column("all"), Column("share")])
    for name, total in by_set.most_common(MOST_SETS):
        cells = [grouped(counts.simd[name, w]) if counts.simd[name, w] else "-" for w in widths]
        table.add(name, *cells, grouped(total), percent(total, counts.instructions))
    page.table(table)
    page.shares("", counts.simd_types, counts.simd_total)


def width_order(label: str) -> int:
    """Scalar first, then by bits, what has no width last."""
    return {"scalar": -1, NO_WIDTH: 1 << 30}.get(label, 0) or int(label)


def java(page: Page, result: RunResult) -> None:
    """Who made the code of Java virtual machines."""
    processes = origins.machines(result)
    if not processes:
        return
    page.title("Code by origin", "of the processes that run a Java virtual machine")
    page.table(origins.by_origin(processes))
    rows = origins.made(processes)
    if rows:
        page.title("SIMD by thread and origin", cut_note(len(rows), origins.MOST_ROWS))
        page.table(
            origins.simd_by_origin(kept(rows, origins.MOST_ROWS, lambda row: row.simd.total()), page.width)
        )
    methods = origins.hottest_methods(processes, result.instructions)
    if methods is not None:
        page.title("Hottest Java methods")
        page.table(methods)


def hottest(page: Page, run: RunView) -> None:
    """The blocks in which most instructions were executed."""
    if not run.hot:
        return
    page.title("Hottest blocks")
    table = Table(
        [
            Column("instructions"),
            Column("share"),
            Column("times run"),
            Column("function", right=False, flexible=True, weight=3, style="cyan"),
            Column("block at", right=False, flexible=True, weight=4),
        ]
    )
    for block in run.hot:
        table.add(
            grouped(block.instructions),
            percent(block.instructions, run.counts.instructions),
            grouped(block.executions),
            block.function or "-",
            block.place,
        )
    page.table(table)


def snapshot_table(page: Page, rows: Sequence[snapshots.SnapshotRow]) -> None:
    """The snapshots: each one's counts, and what has come since the one before."""
    note = (
        "counts since the last reset" if len(rows) <= MOST_ROWS else f"the last {MOST_ROWS} of {len(rows):,}"
    )
    page.title("Snapshots", note)
    table = Table(
        [
            Column("after"),
            Column("label", right=False, flexible=True),
            Column("instructions"),
            Column("of these new"),
            Column("SIMD"),
            Column("threads"),
        ]
    )
    for row, before in list(zip(rows, [None, *rows], strict=False))[-MOST_ROWS:]:
        follows = before is not None and before.resets == row.resets
        more = row.instructions - before.instructions if before and follows else row.instructions
        table.add(
            duration(row.seconds),
            row.label,
            grouped(row.instructions),
            grouped(more),
            percent(row.simd, row.instructions),
            grouped(len(row.threads)),
        )
    page.table(table)


def engine_stats(page: Page, result: RunResult) -> None:
    """The engine's own figures, as it names them."""
    page.title(f"Figures of the {result.engine} engine")
    table = Table([Column("", right=False), Column("")])
    for name, value in result.stats.items():
        shown = (
            grouped(value)
            if isinstance(value, int)
            else f"{value:.3f}"
            if isinstance(value, float)
            else value
        )
        table.add(name.replace("_", " "), str(shown))
    for line in table.lines(page.width, page.plain)[1:]:
        page.print(line)
