"""SIMD counters: which vector instructions a thread executed, how often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from livepro.model import BlockTable, CodeLabel, Instruction, Origin, ProcessResult, SimdType, ThreadCounts

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class SimdRow:
    """Executions (`count`) by one thread of instructions that agree in every other field.

    The fields are those of `Instruction` and `SimdFacts`; `thread` is the
    thread id. `origin`, `tier` and `method` say who made the code, in rows by origin.
    """

    thread: int
    set: str
    mnemonic: str
    opcode: str
    category: str
    extension: str
    type: SimdType
    width: int
    scalar: bool
    element: str
    masked: bool
    count: int
    description: str
    origin: str = ""
    tier: int = 0
    method: str = ""


class SetWidth(NamedTuple):
    """Sums keep scalar instructions apart from packed ones of the same width."""

    set: str
    width: int
    scalar: bool


class _Kind(NamedTuple):
    """The fields of a row but thread and count."""

    set: str
    opcode: str
    mnemonic: str
    width: int
    scalar: bool
    element: str
    masked: bool
    type: SimdType
    category: str
    extension: str
    description: str


class SimdKinds:
    """The SIMD instructions of a table sorted into kinds, once for all its threads."""

    def __init__(self, table: BlockTable) -> None:
        self.table = table
        kind_of = [_kind(i) for i in table.instructions]
        self.kinds = sorted({k for k in kind_of if k is not None})
        number = {k: n for n, k in enumerate(self.kinds)}
        self.form: npt.NDArray[np.intp] = np.array(
            [f for f, k in enumerate(kind_of) if k is not None], np.intp
        )
        """The rows of `table.instructions` that are SIMD instructions."""
        self.kind: npt.NDArray[np.intp] = np.array([number[k] for k in kind_of if k is not None], np.intp)
        """The kind of each, an index into `kinds`."""

    def rows(self, thread: ThreadCounts) -> list[SimdRow]:
        """The kinds that `thread` executed, the most frequent first, then by set and opcode."""
        counts = np.zeros(len(self.kinds), np.uint64)
        np.add.at(counts, self.kind, thread.form_counts(self.table)[self.form])
        order = sorted(np.flatnonzero(counts).tolist(), key=lambda n: (-int(counts[n]), n))
        return [SimdRow(thread=thread.tid, count=int(counts[n]), **self.kinds[n]._asdict()) for n in order]

    def rows_by_label(self, thread: ThreadCounts) -> list[SimdRow]:
        """The kinds by who made the code, and for which Java method; ordered as `rows`."""
        table = self.table
        known = table.label
        if known is None:
            return self.rows(thread)
        number: dict[CodeLabel, int] = {}
        group = {label: number.setdefault(_with_method(label), len(number)) for label in set(known)}
        of_block = np.array([group[label] for label in known], np.intp)
        made_by = list(number)
        kind_of_form = np.full(len(table.instructions), -1, np.intp)
        kind_of_form[self.form] = self.kind
        kind = kind_of_form[table.form]
        executions = thread.executions(table)
        at = np.flatnonzero((kind >= 0) & (executions > 0))
        key = kind[at] * len(made_by) + np.repeat(of_block, table.length)[at]
        found, place = np.unique(key, return_inverse=True)
        counts = np.zeros(len(found), np.uint64)
        np.add.at(counts, place, executions[at])
        rows = []
        for pair, count in zip(found.tolist(), counts.tolist(), strict=True):
            what, label = self.kinds[pair // len(made_by)], made_by[pair % len(made_by)]
            by = {"origin": str(label.origin), "tier": label.tier, "method": label.name}
            rows.append(SimdRow(thread=thread.tid, count=count, **what._asdict(), **by))
        return sorted(rows, key=lambda r: (-r.count, r.set, r.opcode, r.origin, r.tier, r.method))


def _with_method(label: CodeLabel) -> CodeLabel:
    """A label with its name only if that is a Java method's."""
    java = (Origin.C1, Origin.C2, Origin.WRAPPER)
    return label if label.origin in java else label._replace(name="")


def thread_rows(table: BlockTable, thread: ThreadCounts) -> list[SimdRow]:
    """The SIMD rows of one thread, the most frequent first; empty if it executed none."""
    return SimdKinds(table).rows(thread)


def process_rows(process: ProcessResult) -> list[list[SimdRow]]:
    """The SIMD rows of each thread of a process, in the order of its threads."""
    kinds = SimdKinds(process.table)
    return [kinds.rows(t) for t in process.threads]


def process_rows_by_label(process: ProcessResult) -> list[list[SimdRow]]:
    """As `process_rows`, with rows apart for code of different origin, tier or Java method; just
    those of `process_rows` for a process that has no labels."""
    kinds = SimdKinds(process.table)
    return [kinds.rows_by_label(t) for t in process.threads]


def total(rows: Iterable[SimdRow]) -> int:
    """SIMD instructions executed."""
    return sum(r.count for r in rows)


def by_set(rows: Iterable[SimdRow]) -> dict[str, int]:
    """Executions per instruction set, the most frequent first."""
    return _sums((r.set, r.count) for r in rows)


def by_set_and_width(rows: Iterable[SimdRow]) -> dict[SetWidth, int]:
    """Executions per set, vector width in bits, and scalar or packed; the most frequent first."""
    return _sums((SetWidth(r.set, r.width, r.scalar), r.count) for r in rows)


def by_type(rows: Iterable[SimdRow]) -> dict[SimdType, int]:
    """Executions per SIMD type, the most frequent first."""
    return _sums((r.type, r.count) for r in rows)


def share(rows: Iterable[SimdRow], instructions: int) -> float:
    """The part (0 to 1) of `instructions` that the rows make up; 0 where nothing was executed."""
    return total(rows) / instructions if instructions else 0.0


def _kind(instruction: Instruction) -> _Kind | None:
    facts = instruction.simd
    if facts is None:
        return None
    return _Kind(
        set=facts.set,
        opcode=instruction.opcode,
        mnemonic=instruction.mnemonic,
        width=facts.width,
        scalar=facts.scalar,
        element=facts.element,
        masked=facts.masked,
        type=facts.type,
        category=instruction.category,
        extension=facts.extension,
        description=facts.description,
    )


def _sums(pairs: Iterable[tuple[K, int]]) -> dict[K, int]:
    sums: dict[K, int] = {}
    for key, count in pairs:
        sums[key] = sums.get(key, 0) + count
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
