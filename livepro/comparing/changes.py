"""What differs between two reports, by process, thread, function, instruction type and SIMD set.

Process ids differ from run to run, and so do the addresses of code. What is compared is found again
by name: a process by its program's file name, a thread by its own name within its process, a function by
its module's file name and its own. Where several have the same name, the first of the one run is
compared with the first of the other, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, NamedTuple

Document = dict[str, Any]

KINDS = ("total", "process", "thread", "function", "type", "simd")
"""What is compared, in the order of reports. `simd` is by instruction set, vector width and scalar or
packed; `type` by instruction-type group, where an instruction may be in several."""

TITLES = {
    "total": "Total",
    "process": "Processes",
    "thread": "Threads",
    "function": "Functions",
    "type": "Instruction types",
    "simd": "SIMD by set and width",
}

TOTAL = "instructions"
"""The name of the one change of kind `total`."""

_NO_SYMBOL = "[{}]"


class Change(NamedTuple):
    """Instructions of one thing in both runs; `kind` is one of KINDS."""

    kind: str
    name: str
    before: int
    after: int

    @property
    def delta(self) -> int:
        """By how much it grew; below 0 where it shrank."""
        return self.after - self.before

    @property
    def growth(self) -> float | None:
        """The part by which it grew (0.01: by 1 %); None where there was nothing before."""
        return self.delta / self.before if self.before else None

    @property
    def status(self) -> str:
        """appeared, vanished, grew, shrank or same."""
        if not self.before:
            return "appeared" if self.after else "same"
        if not self.after:
            return "vanished"
        return "grew" if self.delta > 0 else "shrank" if self.delta < 0 else "same"


def changes(before: Document, after: Document) -> dict[str, list[Change]]:
    """By kind, in the order of KINDS, everything that was executed in either report, what changed
    most first; things that did not change last, the hottest first."""
    out = {}
    for kind in KINDS:
        first, second = (_COUNTS[kind](document) for document in (before, after))
        names = dict.fromkeys([*first, *second])
        rows = [Change(kind, name, first.get(name, 0), second.get(name, 0)) for name in names]
        out[kind] = sorted(
            (row for row in rows if row.before or row.after), key=lambda r: (-abs(r.delta), -r.before, r.name)
        )
    return out


def to_document(found: dict[str, list[Change]], before: Document, after: Document) -> Document:
    """The changes as values that JSON knows."""
    return {
        "schema": "livepro-diff/1",
        "before": _origin(before),
        "after": _origin(after),
        "changes": {
            kind: [
                {
                    "name": row.name,
                    "before": row.before,
                    "after": row.after,
                    "delta": row.delta,
                    "growth": row.growth,
                    "status": row.status,
                }
                for row in rows
            ]
            for kind, rows in found.items()
        },
    }


def _origin(document: Document) -> Document:
    return {key: document[key] for key in ("command", "engine", "exit", "instructions")}


def _numbered(names: Iterator[str]) -> Iterator[str]:
    """`names` with ``#2``, ``#3`` behind those that came before."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} #{seen[name]}"


def _processes(document: Document) -> Iterator[tuple[str, Document]]:
    names = (PurePath(p["command"][0]).name if p["command"] else "?" for p in document["processes"])
    return zip(_numbered(names), document["processes"], strict=True)


def _threads(document: Document) -> Iterator[tuple[str, Document]]:
    for program, process in _processes(document):
        names = _numbered(t["name"] for t in process["threads"])
        for name, thread in zip(names, process["threads"], strict=True):
            yield f"{program}: {name}", thread


def _total(document: Document) -> Counter[str]:
    return Counter({TOTAL: document["instructions"]})


def _by_process(document: Document) -> Counter[str]:
    return Counter({name: p["instructions"] for name, p in _processes(document)})


def _by_thread(document: Document) -> Counter[str]:
    return Counter({name: t["instructions"] for name, t in _threads(document)})


def _by_function(document: Document) -> Counter[str]:
    out: Counter[str] = Counter()
    for process in document["processes"]:
        # A report of an older livepro has the hottest only.
        for row in process.get("functions", process["hottest_functions"]):
            out[function_name(row)] += row["instructions"]
    return out


def function_name(row: Document) -> str:
    """How a function is called in comparisons: its name and its module's, and who made its code."""
    module = PurePath(row["module"]).name or row["module"]
    name = row["function"] or _NO_SYMBOL.format(module.strip("[]") + " without symbols")
    made_by = " ".join(str(part) for part in (row.get("origin"), row.get("tier")) if part)
    compiled = made_by and not row["module"].startswith("/")
    return f"{name} ({made_by if compiled else module})"


def _by_type(document: Document) -> Counter[str]:
    out: Counter[str] = Counter()
    for _, thread in _threads(document):
        out.update(thread["itypes"])
    return out


def _by_simd(document: Document) -> Counter[str]:
    out: Counter[str] = Counter()
    for _, thread in _threads(document):
        for row in thread["simd"]:
            out[simd_name(row)] += row["count"]
    return out


def simd_name(row: Document) -> str:
    """An instruction set with the width of a row's vectors."""
    return f"{row['set']} {'scalar' if row['scalar'] else row['width'] or 'other'}"


_COUNTS: dict[str, Callable[[Document], Counter[str]]] = {
    "total": _total,
    "process": _by_process,
    "thread": _by_thread,
    "function": _by_function,
    "type": _by_type,
    "simd": _by_simd,
}
