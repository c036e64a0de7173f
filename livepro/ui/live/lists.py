"""The lists of the live view: threads, types, SIMD, functions, blocks, instructions."""

from __future__ import annotations

from pathlib import PurePath

from rich.text import Text

from livepro.model.live import Measure, Picture
from livepro.ui.live.state import State
from livepro.ui.live.style import Paper, amount, fitted, fraction, rate, share, size
from livepro.ui.tables import Column, Table

COUNT = 15
"""Least columns of a count: up to 99,999,999,999 nothing moves."""

RATE = 8
SHARE = 6
MARK = ">"


def threads(state: State, shown: Picture, paper: Paper) -> list[Text]:
    """Threads, the one the list is filtered by marked with a star."""
    several = len({t.pid for t in shown.threads}) > 1
    table = Table(
        [
            Column("tid", right=False, least=7),
            Column("thread", right=False, flexible=True, least=15),
            Column(_ordered("instructions", shown.query.thread_order), least=COUNT),
            Column("rate", least=RATE),
            Column("share", least=SHARE),
            Column(_ordered("SIMD", shown.query.thread_order), least=SHARE),
            Column("blocks", least=7),
        ]
    )
    for row in shown.threads:
        name = row.name if not several or row.name == row.program else f"{row.name} ({row.program})"
        table.add(
            str(row.tid),
            name if row.alive else f"{name} (ended)",
            f"{row.instructions.total:,}",
            rate(row.instructions),
            share(row.instructions, shown.whole, state.rates),
            share(row.simd, row.instructions, state.rates),
            f"{row.blocks:,}",
        )
    return scrolled(table, state, paper, shown.threads_total, "threads")


def functions(state: State, shown: Picture, paper: Paper, *, select: bool = True) -> list[Text]:
    """Functions by what was executed in them."""
    table = Table(
        [
            Column(_ordered("instructions", shown.query.function_order), least=COUNT),
            Column("rate", least=RATE),
            Column("share", least=SHARE),
            Column(_ordered("SIMD", shown.query.function_order), least=SHARE),
            Column(
                _ordered("function", shown.query.function_order, "name"), right=False, flexible=True, weight=3
            ),
            Column("module", right=False, flexible=True, weight=2),
        ]
    )
    for row in shown.functions if select else shown.functions[: paper.height]:
        table.add(
            f"{row.instructions.total:,}",
            rate(row.instructions),
            share(row.instructions, shown.selected, state.rates),
            share(row.simd, row.instructions, state.rates),
            Text(row.name or "(no symbol)", "" if row.name else "dim"),
            PurePath(row.module).name or "-",
        )
    if not select:
        return [fitted(line, paper.width) for line in table.lines(paper.width, paper.ascii)[: paper.height]]
    return scrolled(table, state, paper, shown.functions_total, "functions")


def blocks(state: State, shown: Picture, paper: Paper) -> list[Text]:
    """Basic blocks, of one function if one was chosen."""
    table = Table(
        [
            Column(_ordered("instructions", shown.query.block_order), least=COUNT),
            Column("rate", least=RATE),
            Column("share", least=SHARE),
            Column(_ordered("times run", shown.query.block_order, "executions"), least=COUNT - 3),
            Column("len", least=3),
            Column("function", right=False, flexible=True, weight=3),
            Column(
                _ordered("block at", shown.query.block_order, "address"), right=False, flexible=True, weight=4
            ),
        ]
    )
    for row in shown.blocks:
        module = PurePath(row.module).name
        table.add(
            f"{row.instructions.total:,}",
            rate(row.instructions),
            share(row.instructions, shown.selected, state.rates),
            amount(row.executions, state.rates),
            str(row.length),
            Text(row.function or "(no symbol)", "" if row.function else "dim"),
            f"{module}+{row.offset:#x}" if module else f"{row.offset:#x}",
        )
    return scrolled(table, state, paper, shown.blocks_total, "blocks")


def code(state: State, shown: Picture, paper: Paper) -> list[Text]:
    """Instructions with how often each was executed; * where a block begins."""
    most = max((size(line.executions, state.rates) for line in shown.listing), default=0.0)
    wide = paper.width >= 100
    table = Table(
        [
            Column("address", least=9),
            Column("", right=False, least=1),
            Column("per second" if state.rates else "times run", least=COUNT),
            Column("", right=False, least=8, style="cyan"),
            *([Column("bytes", right=False, flexible=True, least=24, style="dim")] if wide else []),
            Column("instruction", right=False, flexible=True, weight=8),
        ]
    )
    for line in shown.listing:
        table.add(
            f"{line.address:x}",
            "*" if line.first else "",
            amount(line.executions, state.rates),
            paper.bar(size(line.executions, state.rates) / most if most else 0.0, 8),
            *([line.code.hex(" ")] if wide else []),
            line.text,
        )
    return scrolled(table, state, paper, len(shown.listing), "instructions")


def types(state: State, shown: Picture, paper: Paper, *, most: int | None = None) -> list[Text]:
    """Instruction types as bars, in the groups' own order; the `most` frequent ones if not all fit."""
    rows = [(group.replace("_", " "), measure) for group, measure in shown.itypes]
    if most is not None and len(rows) > most:
        kept = sorted(rows, key=lambda row: -size(row[1], state.rates))[:most]
        rows = [row for row in rows if row in kept]
    return bars(rows, named(shown, state.rates), state, paper, 14, "cyan", counts=most is None)


def simd(state: State, shown: Picture, paper: Paper, *, most: int | None = None) -> list[Text]:
    """SIMD instructions by set and width; in full with what they do."""
    whole = named(shown, state.rates)
    rows = [(f"{name} {width}", measure) for (name, width), measure in shown.simd]
    if most is not None:
        return bars(rows[:most], whole, state, paper, 15, "magenta", counts=False) or [
            Text("  no SIMD instructions so far", "dim")
        ]
    if not rows:
        return [Text("  No SIMD instructions so far.")]
    out = [Text("  by set and width in bits, % of all instructions", "bold")]
    kinds = [(name.replace("_", " ").lower(), measure) for name, measure in shown.simd_types]
    room = max(3, paper.height - min(len(kinds), 6) - 3)
    out += bars(rows[:room], whole, state, paper, 18, "magenta", counts=True)
    out += [Text(""), Text("  by what they do, % of SIMD instructions", "bold")]
    vectors = Measure(sum(m.total for _, m in rows), sum(m.rate for _, m in rows))
    out += bars(kinds, vectors, state, paper, 18, "magenta", counts=True)
    return out


def named(shown: Picture, rates: bool) -> Measure:
    """The instructions that types and SIMD are known of: what their shares are of."""
    total = shown.selected.total - shown.unnamed
    return Measure(max(0, total), shown.selected.rate)


def bars(
    rows: list[tuple[str, Measure]],
    whole: Measure,
    state: State,
    paper: Paper,
    names: int,
    style: str,
    *,
    counts: bool,
) -> list[Text]:
    """A bar for each row: its share of the whole."""
    out = []
    before = 2 + names + 1 + (COUNT + 2 if counts else 0) + 8
    room = max(4, min(50, paper.width - before - 1))
    for name, measure in rows:
        line = Text(f"  {paper.cut(name, names):<{names}} ")
        if counts:
            line.append(f"{amount(measure, state.rates):>{COUNT}}  ")
        line.append(f"{share(measure, whole, state.rates):>7} ")
        line.append(paper.bar(fraction(measure, whole, state.rates), room), style)
        out.append(fitted(line, paper.width))
    return out


def scrolled(table: Table, state: State, paper: Paper, total: int, what: str) -> list[Text]:
    """The part of a table around the selected row, its heading first, and what is below."""
    lines = table.lines(paper.width, paper.ascii)
    head, rows = lines[0], lines[1:]
    room = max(1, paper.height - 1)
    cursor = min(state.place.cursor, max(0, len(rows) - 1))
    cut = len(rows) > room or total > len(rows)
    if cut:
        room = max(1, room - 1)
    top = max(0, min(cursor - room // 2, len(rows) - room))
    out = [head]
    for at, row in enumerate(rows[top : top + room], top):
        line = row.copy()
        if at == cursor:
            line.plain = MARK + line.plain[1:]
            line.append(" " * (paper.width - len(line)))
            line.stylize("reverse")
        out.append(line)
    if cut:
        out += [Text("")] * (room + 1 - len(out))
        behind = f"; only the first {len(rows):,} are listed" if total > len(rows) else ""
        out.append(
            Text(f"  {top + 1:,} to {min(top + room, len(rows)):,} of {total:,} {what}{behind}", "dim")
        )
    return [fitted(line, paper.width) for line in out]


def _ordered(title: str, order: str, name: str = "") -> str:
    """A column's title, marked where the list is sorted by it."""
    return f"{title}*" if order == (name or title) else title
