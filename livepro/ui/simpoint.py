"""A study of simulation points as text: phases, when each ran, the proof, other seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import TextIO

import numpy as np
from rich.text import Text

from livepro.simpoint import Error, Phase, Proof, Study, phases
from livepro.simpoint.vectors import COMMON
from livepro.ui.console import ascii_only, open_console
from livepro.ui.live.style import PHASES, Paper
from livepro.ui.matrix import group_title, heat
from livepro.ui.page import Page
from livepro.ui.tables import GAP, INDENT, Column, Table
from livepro.ui.text import bar, grouped, percent, plural, shortened

BAR = 10
"""Columns of a phase's bar."""

MOST_TYPES = 5
MOST_METRICS = 24
MOST_PHASES = 30


def print_study(found: Study, stream: TextIO, width: int | None = None) -> None:
    """Print a study to `stream`, in colour only where that is a terminal."""
    console = open_console(stream, width)
    page = Page(console, console.width, ascii_only(console))
    heading(page, found)
    known = phases(found)
    phase_table(page, found, known)
    contents(page, known)
    over_time(page, found, known)
    print_proof(page, found.proof, "Proof", "the weighted points against the whole run")
    numbers_of_phases(page, found)
    other_seeds(page, found)


def print_check(proof: Proof, points: int, stream: TextIO) -> None:
    """Print the proof of a choice that others made."""
    console = open_console(stream)
    page = Page(console, console.width, ascii_only(console))
    print_proof(page, proof, "Proof", f"{plural(points, 'weighted point')} against the whole run")


def heading(page: Page, found: Study) -> None:
    """What was looked at and how much is to be simulated."""
    names = [found.vectors.name] if found.vectors is not None else []
    names += [source.name for source in found.sources]
    name = shortened(" + ".join(names), page.width - len("simpoint  "), page.plain)
    page.print(Text("simpoint  ", "bold").append(name, "bold cyan"))
    points = found.choice.points
    whole = float(found.instructions.sum())
    simulated = sum(point.instructions for point in points)
    page.print("")
    page.print(
        f"  {plural(len(points), 'point')} for {plural(len(found.instructions), 'interval')}: "
        f"{percentage(simulated / whole)} of {grouped(round(whole))} instructions to simulate"
    )
    if found.vectors is not None:
        options = found.options
        space = min(options.dimensions, len(found.vectors.ids))
        page.print(
            Text(
                f"  {plural(len(found.vectors.ids), 'block')} in {plural(space, 'dimension')}, "
                f"seed {options.seed}",
                "dim",
            )
        )
    if found.choice.coverage < 1:
        page.print(Text(f"  the points' phases cover {percentage(found.choice.coverage)} of the run", "dim"))


def phase_table(page: Page, found: Study, known: list[Phase]) -> None:
    """A row for each phase: how much of the run, and which interval stands for it."""
    page.title("Phases")
    point = {p.phase: p for p in found.choice.points}
    partial = found.choice.coverage < 1  # else the weights are the shares
    columns = [Column("phase"), Column("share"), Column("", right=False, least=BAR), Column("intervals")]
    columns += [Column("point"), Column("starts at"), Column("instructions")]
    table = Table([*columns, *([Column("weight")] if partial else [])])
    for phase in known:
        own = point.get(phase.number)
        cells = (str(own.interval), grouped(own.start), grouped(own.instructions)) if own else ("-",) * 3
        weight = (f"{own.weight:.6g}" if own else "-",) if partial else ()
        table.add(
            Text(str(phase.number), style(phase)),
            percentage(phase.share),
            Text(bar(phase.share, BAR, page.plain), style(phase)),
            grouped(phase.intervals),
            *cells,
            *weight,
        )
    page.table(table)


def contents(page: Page, known: list[Phase]) -> None:
    """What each phase executes: instruction types, SIMD, functions; nothing where that is not known."""
    total: Counter[str] = Counter()
    for phase in known:
        total.update({name: phase.share * value for name, value in phase.types})
    groups = [name for name, _ in total.most_common(MOST_TYPES)]
    placed = any(phase.functions for phase in known)
    if not groups and not placed:
        return
    page.title("What they execute", "percent of a phase's instructions" if groups else "")
    columns = [Column("phase")]
    columns += [Column("SIMD"), *(Column(group_title(name)) for name in groups)] if groups else []
    table = Table(columns)
    for phase in known:
        types = dict(phase.types)
        row: list[str | Text] = [Text(str(phase.number), style(phase))]
        if groups:
            shares = (phase.simd or 0.0, *(types.get(name, 0.0) for name in groups))
            row += [heat(round(value * 1000), 10**6) for value in shares]
        table.add(*row)
    if placed:
        used = table.widths(page.width)
        room = page.width - INDENT - sum(used) - GAP * len(used)
        named = Table([*columns, Column("hottest functions", right=False)])
        for own, phase in zip(table.rows, known, strict=True):
            named.add(*own, fitting(phase.functions, room, page.plain))
        table = named
    page.table(table)


def fitting(functions: Sequence[tuple[str, float]], room: int, plain: bool) -> str:
    """Functions with their parts, as many as fit; the first in any case, shortened if need be."""
    text = ""
    for name, part in functions:
        if text and part < 0.0005:
            break
        share = f" {percent(round(part * 10**6), 10**6)}"
        if not text:
            text = shortened(name, room - len(share), plain) + share
        elif len(text) + 2 + len(name) + len(share) <= room:
            text += f", {name}{share}"
        else:
            break
    return text


def style(phase: Phase) -> str:
    """The colour of a phase, in the table and over time."""
    return PHASES[phase.number % len(PHASES)]


def over_time(page: Page, found: Study, known: list[Phase]) -> None:
    """A lane for each phase: how much of each stretch of the run belongs to it."""
    labels = found.choice.clustering.labels
    label = max(len(str(phase.number)) for phase in known)
    room = page.width - INDENT - label - 2
    columns = min(room, len(labels))
    at = np.arange(len(labels)) * columns // len(labels)
    each = -(-len(labels) // columns)
    note = "a column is an interval" if each == 1 else f"a column is up to {plural(each, 'interval')}"
    page.title("Phases over time", note + "; ^ is a point")
    paper = Paper(page.width, 0, page.plain)
    weights = np.maximum(found.weights, 1e-300)
    whole = np.bincount(at, weights, minlength=columns)
    for phase in known[:MOST_PHASES]:
        member = labels == phase.number
        shares = np.bincount(at, weights * member, minlength=columns) / whole
        line = Text(f"{'':{INDENT}}{phase.number:>{label}}  ")
        line.append("".join(paper.level(share) for share in shares), style(phase))
        line.rstrip()
        page.print(line)
    marks = [" "] * columns
    for point in found.choice.points:
        marks[int(at[point.interval])] = "^"
    page.print((" " * (INDENT + label + 2) + "".join(marks)).rstrip())


def print_proof(page: Page, proof: Proof, title: str, note: str) -> None:
    """The metrics of the whole run beside the estimate."""
    page.title(title, note)
    shown = sorted((e for e in proof.errors if e.decides), key=lambda e: -abs(e.relative))
    if shown:
        table = Table(
            [
                Column("metric", right=False, flexible=True),
                Column("kind", right=False, flexible=True),
                Column("whole run"),
                Column("estimate"),
                Column("error"),
            ]
        )
        for error in shown[:MOST_METRICS]:
            table.add(
                error.metric.name, error.metric.group, value(error.whole), value(error.estimate), of(error)
            )
        page.table(table)
        rare = len(proof.errors) - len(shown)
        more = len(shown) - MOST_METRICS
        notes = ["per 1,000 instructions"] if any(e.rate for e in shown) else []
        notes += [f"{plural(more, 'more metric')} with smaller errors"] if more > 0 else []
        others = any(e.common != COMMON for e in proof.errors)
        limit = "below 10 per 1,000" + (", those simulated below 1," if others else "")
        notes += [f"{plural(rare, 'metric')} {limit} left out"] if rare else []
        page.print(Text(" " * INDENT + "; ".join(notes), "dim"))
    if proof.profile is not None:
        text = f"block profile: {percentage(proof.profile)} of the instructions are estimated in wrong blocks"
        page.print(" " * INDENT + text)


def numbers_of_phases(page: Page, found: Study) -> None:
    """The score and the error of every number of phases looked at."""
    page.title("Numbers of phases", "those looked at; BIC score from 0 to 1")
    table = Table(
        [
            Column("k"),
            Column("score"),
            Column("error"),
            Column("worst metric", right=False),
            Column("profile"),
        ]
    )
    for tried in found.tried:
        worst = tried.proof.worst
        chosen = tried.k == found.choice.k
        table.add(
            Text(("> " if chosen else "") + str(tried.k), "bold" if chosen else ""),
            f"{tried.score:.3f}",
            of(worst) if worst else "-",
            worst.metric.name if worst else "-",
            percentage(tried.proof.profile) if tried.proof.profile is not None else "-",
        )
    page.table(table)


def other_seeds(page: Page, found: Study) -> None:
    """What other seeds would have chosen."""
    if not found.again:
        return
    page.title("Other seeds", "agreement: adjusted Rand index, 1 for the same phases")
    table = Table([Column("seed"), Column("k"), Column("agreement"), Column("error")])
    for again in found.again:
        table.add(str(again.seed), str(again.k), f"{again.agreement:.3f}", percentage(again.error))
    page.table(table)


def percentage(share: float) -> str:
    """A share of 0 to 1 in percent; a small one is not rounded to nothing."""
    if share <= 0:
        return "0 %"
    if share < 0.00005:
        return "<0.01 %"
    if share < 0.0095:
        return f"{100 * share:.2f} %"
    return "100 %" if share >= 1 else f"{min(100 * share, 99.9):.1f} %"


def of(error: Error) -> str:
    """A relative error in percent, with its sign."""
    return f"{100 * error.relative:+.2f} %" if isfinite(error.relative) else "-"


def value(number: float) -> str:
    """A metric's value in about four digits."""
    return f"{number:,.1f}" if abs(number) >= 100 else f"{number:.4g}"
