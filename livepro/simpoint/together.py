"""All threads of a process side by side: intervals cut at the same moments, and loops that lead to them.

In the manner of LoopPoint (A. Sabu et al., HPCA 2022): an interval is so many instructions of all threads
together, those left out that they execute while they wait for each other. It is found again in another run by
loop headers: it begins when the header's turn with a certain number begins, whichever thread's it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.errors import LiveproError
from livepro.flow import flow_graph, natural_loops
from livepro.model import BlockTable, ProcessResult, RunResult, ThreadCounts
from livepro.simpoint.choosing import Choice
from livepro.simpoint.counted import densities, metrics_of
from livepro.simpoint.vectors import Blocks, Floats, Vectors, from_rows

SNAPSHOTS = 8
"""Moments per interval at which a run is looked at: an interval is up to an eighth longer than asked for."""

_MOST_LOOPS = 400  # headers that are looked at, those of the loops in which most was executed
_OFTEN = (
    100  # turns in an interval, of which one is a hundredth: the cut is hardly moved by going to the next
)


class Turn(NamedTuple):
    """A loop header of a process and the `number` of one of its turns, from 1, of all threads together.

    `address` is the header's in that run, `offset` its place in the file `module`.
    """

    module: str
    offset: int
    address: int
    function: str
    number: int


class Region(NamedTuple):
    """An interval as another run finds it: from one turn of a loop up to another.

    It is interval `interval` (from 0) and stands for phase `phase`; `warmup` is where what is to be executed
    before it begins (None: it is the first interval). `instructions` are those that count, of all threads;
    `multiplier` is how many times as many its phase has.
    """

    interval: int
    phase: int
    warmup: Turn | None
    start: Turn
    end: Turn
    instructions: int
    weight: float
    multiplier: float


@dataclass(frozen=True)
class Together:
    """The N intervals of a process. Column ``t * B + b`` of the `vectors` is block b of thread t.

    `headers` are H loop headers (rows of the table), and `turns` (int64, N + 1 x H) how many turns of
    each had begun at each cut, the beginning and the end with them. `left_out` are instructions
    (float64, N) in which threads waited for each other.
    """

    process: ProcessResult
    vectors: Vectors
    headers: tuple[int, ...]
    turns: npt.NDArray[np.int64]
    left_out: Floats

    def regions(self, choice: Choice) -> list[Region]:
        """The points of a choice, each from a turn of a loop to another. Raises LiveproError where no loop
        leads to one."""
        whole = float(self.vectors.instructions.sum())
        out = []
        for point in choice.points:
            start, end = self._ends(point.interval)
            before = self._ends(point.interval - 1)[0] if point.interval else None
            multiplier = point.weight * choice.coverage * whole / point.instructions
            out.append(
                Region(
                    point.interval,
                    point.phase,
                    before,
                    start,
                    end,
                    point.instructions,
                    point.weight,
                    multiplier,
                )
            )
        return out

    def _ends(self, interval: int) -> tuple[Turn, Turn]:
        """Where an interval begins and ends: turns of the same loop, where there is one that had turns in it
        and goes on behind it."""
        last = interval == len(self.vectors) - 1
        here = self.turns[interval + 1] - self.turns[interval]
        behind = here if last else self.turns[interval + 2] - self.turns[interval + 1]
        both = np.minimum(here, behind)
        start = self._best(both if both.any() else here, interval)
        end = start if both.any() else self._best(behind, interval)
        first = int(self.turns[interval, start]) + 1
        # The first interval begins with the run: with the loop's first turn.
        final = int(self.turns[interval + 1, end]) + (not last)
        return self._turn(start, first), self._turn(end, final)

    def _best(self, turns: npt.NDArray[np.int64], interval: int) -> int:
        """Of the loops that turn often enough the one with the fewest turns, else the one with most: the
        program's own before those of libraries, which the loader goes round in as the environment has it."""
        if not turns.any():
            raise LiveproError(
                f"No loop had a turn at the ends of interval {interval}.",
                "Measure with a larger --interval-size.",
            )
        often = np.flatnonzero(turns >= _OFTEN)
        own = [n for n in often.tolist() if ".so" not in PurePath(self._module(n)).name]
        often = np.array(own, np.int64) if own else often
        if len(often):
            return int(often[np.argmin(turns[often])])
        return int(np.argmax(turns))

    def _module(self, header: int) -> str:
        return self.process.table.module[self.headers[header]]

    def _turn(self, header: int, number: int) -> Turn:
        table, row = self.process.table, self.headers[header]
        return Turn(
            table.module[row], int(table.offset[row]), int(table.address[row]), table.function[row], number
        )


def together(
    result: RunResult, process: ProcessResult, size: int, left_out: npt.NDArray[np.bool_]
) -> Together:
    """The intervals of a process in a run that was looked at often (`SNAPSHOTS`): one ends at the first look
    at which `size` instructions have been executed in blocks that are not `left_out` (B). Raises
    LiveproError where it executed nothing that counts, or no loop."""
    table, threads = process.table, len(process.threads)
    headers = _headers(process, left_out)
    addresses = Addresses(table, [int(table.address[row]) for row in headers])
    kept = np.flatnonzero(~left_out)
    rows: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]] = []
    turns = [np.zeros(len(headers), np.int64)]
    waited: list[float] = []
    before = np.zeros((threads, len(table)), np.int64)
    moments = [*_moments(result, process), list(enumerate(process.threads))]
    for number, moment in enumerate(moments, 1):
        now = np.zeros_like(before)
        for index, counts in moment:
            now[index] = counts.block_instructions(table).astype(np.int64)
        more = now - before
        if int(more[:, kept].sum()) < size and number < len(moments):
            continue
        begun = addresses.executed([counts for _, counts in moment])
        if number == len(moments) and (not more[:, kept].any() or not (begun > turns[-1]).any()) and rows:
            break  # the end of the last interval
        waited.append(float(more[:, left_out].sum()))
        more[:, left_out] = 0
        flat = more.ravel()
        columns = np.flatnonzero(flat)
        rows.append((columns + 1, flat[columns].astype(np.uint64)))
        turns.append(begun)
        before = now
    name = f"{threads} threads of {' '.join(process.command)}"
    vectors = from_rows(rows, name, _blocks(process, left_out), np.arange(1, threads * len(table) + 1))
    if not vectors.instructions.any():
        raise LiveproError(
            "The program executed nothing but waiting.",
            "Check --spin, and the options that choose what counts.",
        )
    return Together(process, vectors, tuple(headers), np.array(turns), np.array(waited))


def _moments(result: RunResult, process: ProcessResult) -> list[list[tuple[int, ThreadCounts]]]:
    """What each thread of the process had executed at each look, with the thread's place."""
    number = next(n for n, other in enumerate(result.processes) if other is process)
    return [
        [(t.thread, t.counts(result.processes)) for t in snapshot.threads if t.process == number]
        for snapshot in result.snapshots
    ]


def _headers(process: ProcessResult, left_out: npt.NDArray[np.bool_]) -> list[int]:
    """The table rows of loop headers in files, which another run finds at the same place. Raises LiveproError
    if there are none."""
    graph, table = flow_graph(process), process.table
    found = [int(graph.block[loop.header]) for loop in natural_loops(graph)]
    named = [row for row in found if table.module[row].startswith("/") and not left_out[row]]
    if not named:
        raise LiveproError(
            "No loop was executed in the program's files.",
            "Threads are cut by their loops; use --thread busiest or all.",
        )
    return named[:_MOST_LOOPS]


def _blocks(process: ProcessResult, left_out: npt.NDArray[np.bool_]) -> Blocks:
    """The blocks of all threads, thread after thread. The totals leave out what is left out."""
    table, threads = process.table, len(process.threads)
    metrics, of_form = metrics_of(table)
    density = densities(table, of_form)
    executed = sum(
        (thread.block_instructions(table).astype(np.int64) for thread in process.threads),
        np.zeros(len(table), np.int64),
    )
    executed[left_out] = 0
    totals = tuple(round(n) for n in (executed @ density).tolist())
    return Blocks(
        np.tile(table.address, threads),
        table.function * threads,
        table.module * threads,
        np.tile(table.offset, threads),
        metrics,
        np.tile(density, (threads, 1)),
        totals,
    )


class Addresses:
    """Counts how often the instructions at some addresses of a process were executed, in whichever blocks
    they are: control also falls into a loop, in a block that begins before its header."""

    def __init__(self, table: BlockTable, addresses: Sequence[int]) -> None:
        self._table = table
        within = np.cumsum(table.step, dtype=np.uint64) - table.step
        at = np.repeat(table.address - within[table.start[:-1]], table.length) + within
        order = np.argsort(at, kind="stable")
        first, behind = (np.searchsorted(at[order], addresses, side) for side in ("left", "right"))
        self._places = [order[a:b] for a, b in zip(first.tolist(), behind.tolist(), strict=True)]

    def executed(self, threads: Sequence[ThreadCounts]) -> npt.NDArray[np.int64]:
        """Executions of each of them (int64) by all these threads."""
        total = np.zeros(len(self._table.form), np.int64)
        for thread in threads:
            total += thread.executions(self._table).astype(np.int64)
        return np.array([total[places].sum() for places in self._places], np.int64)
