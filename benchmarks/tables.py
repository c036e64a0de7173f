"""The tables that are printed: in a terminal, or as Markdown for a README."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.results import OK
from benchmarks.runners import NATIVE, TRANSLATE, VECTORS
from benchmarks.workloads import Workload

START_LIMITS = {"livepro --version": 0.15, "livepro run -- true": 0.4}
"""Seconds of wall time within which each is to answer on an idle machine."""


def print_tables(results: Mapping[str, Any], workloads: Sequence[Workload], *, markdown: bool) -> None:
    """Print every table that `results` (the JSON document) has rows for."""
    # A pipe has no width, and a Markdown line must not be broken.
    console = Console(width=250 if markdown else None)
    style = box.MARKDOWN if markdown else box.SIMPLE_HEAD
    chosen = [w for w in workloads if w.name in results["workloads"]]
    if any(not w.short for w in chosen):
        console.print(ratios(results, [w for w in chosen if not w.short], style))
    if chosen:
        console.print(seconds(results, chosen, style, explained=markdown))
    if results["start"]:
        console.print(start(results["start"], style))


def ratios(results: Mapping[str, Any], workloads: Sequence[Workload], style: box.Box) -> Table:
    """CPU time over native, a row per workload, a column per runner. (Programs that end at
    once have no CPU time worth dividing by.)"""
    shown = {name for w in workloads for name in results["workloads"][w.name]["runners"]}
    runners = [name for name in results["runners"] if name != NATIVE and name in shown]
    table = Table(box=style, title="CPU time over native", title_justify="left")
    table.add_column("workload", no_wrap=True)
    table.add_column("native, s", justify="right")
    for name in runners:
        table.add_column(name, justify="right")
    table.add_column("bound", justify="right")
    table.add_column("vectors add", justify="right")
    for workload in workloads:
        of = results["workloads"][workload.name]["runners"]
        table.add_row(
            workload.name,
            f"{of[NATIVE]['cpu_median']:.3f}",
            *(cell(of.get(name), "cpu_ratio") for name in runners),
            "" if workload.bound is None else f"{workload.bound:.2f}",
            extra(of),
        )
    return table


def seconds(
    results: Mapping[str, Any], workloads: Sequence[Workload], style: box.Box, *, explained: bool
) -> Table:
    """Wall time, a row per workload, a column per runner."""
    table = Table(box=style, title="Wall time, seconds", title_justify="left")
    table.add_column("workload", no_wrap=True)
    table.add_column("million instructions" if explained else "M instr.", justify="right")
    for name in results["runners"]:
        table.add_column(name, justify="right")
    for workload in workloads:
        row = results["workloads"][workload.name]
        table.add_row(
            f"{workload.name}: {workload.what}" if explained else workload.name,
            "" if row["instructions"] is None else f"{row['instructions'] / 1e6:,.1f}",
            *(cell(row["runners"].get(name), "wall_median") for name in results["runners"]),
        )
    return table


def start(rows: Mapping[str, Any], style: box.Box) -> Table:
    """Wall time of livepro's own start."""
    table = Table(box=style, title="livepro's own start, wall time, seconds", title_justify="left")
    table.add_column("command")
    for name in ("median", "least", "bound"):
        table.add_column(name, justify="right")
    for command, row in rows.items():
        bound = START_LIMITS.get(command)
        table.add_row(
            command,
            f"{row['wall_median']:.3f}" if row["verdict"] == OK else row["verdict"],
            f"{min(row['wall']):.3f}",
            "" if bound is None else f"{bound:.2f}",
        )
    return table


def cell(of: Mapping[str, Any] | None, key: str) -> str:
    """One number; what went wrong in its stead; empty where nothing was measured."""
    if of is None:
        return ""
    if of["verdict"] != OK:
        return str(of["verdict"])
    return "" if of[key] is None else f"{of[key]:.2f}"


def extra(of: Mapping[str, Any]) -> str:
    """What vectors add to the translate engine's CPU time."""
    both = [of.get(name) for name in (TRANSLATE, VECTORS)]
    if any(one is None or one["verdict"] != OK for one in both):
        return ""
    plain, vectors = (one["cpu_median"] for one in both if one)
    return f"{vectors / plain - 1:+.0%}"
