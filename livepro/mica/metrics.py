"""Named metrics of MICA's raw numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

AGES = (1, 2, 4, 8, 16, 32, 64)
STRIDES = (0, 8, 64, 512, 4096, 32768, 262144)
PREDICTORS = tuple(f"{variant} h={h}" for h in (4, 8, 12) for variant in ("GAg", "PAg", "GAs", "PAs"))
WINDOWS = (32, 64, 128, 256)


class Metric(NamedTuple):
    """`value` is None where nothing was there to be measured. `unit` is ``share`` for parts of 1."""

    analysis: str
    name: str
    value: float | None
    unit: str


def metrics(values: Mapping[str, Sequence[int]], events: int, settings: Mapping[str, Any]) -> list[Metric]:
    """The metrics of one line of numbers of each analysis, over `events` events."""
    out: list[Metric] = []
    for analysis, numbers in values.items():
        for name, value, unit in _OF[analysis](numbers, events, settings):
            out.append(Metric(analysis, name, value, unit))
    return out


_Rows = Iterator[tuple[str, float | None, str]]


def _part(number: int, of: int) -> float | None:
    return number / of if of else None


def _ilp(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    for window, cycles in zip(WINDOWS, numbers, strict=True):
        yield f"ILP, window {window}", _part(events, cycles), "instructions/cycle"


def _ilp_one(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    yield f"ILP, window {settings['ilp_size']}", _part(events, numbers[0]), "instructions/cycle"


def _itypes(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    for name, number in zip(settings["groups"], numbers, strict=False):
        yield name, _part(number, events), "share"


def _ppm(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    branches, transitions, taken = numbers[12:]
    for name, misses in zip(PREDICTORS, numbers, strict=False):
        yield f"{name} mispredicted", _part(misses, branches), "share"
    yield "conditional branches", _part(branches, events), "share of instructions"
    yield "rarer of transition and repetition", _part(transitions, branches), "share"
    yield "rarer of taken and not taken", _part(taken, branches), "share"


def _reg(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    operands, instances, uses, reads, *ages = numbers
    yield "register operands", _part(operands, events), "per instruction"
    yield "degree of use", _part(uses, instances), "reads/value"
    for age, number in zip(AGES, ages, strict=True):
        yield f"dependency distance <= {age}", _part(number, reads), "share"


def _stride(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    for kind, part in (("read", numbers[:15]), ("write", numbers[15:])):
        yield f"{kind}s", _part(part[0], events), "per instruction"
        for which, counts in (("local", part[1:8]), ("global", part[8:])):
            for limit, number in zip(STRIDES, counts, strict=True):
                yield f"{which} {kind} stride <= {limit}", _part(number, part[0]), "share"


def _memfootprint(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    block, page = 1 << settings["block_size"], 1 << settings["page_size"]
    for what, number, size in zip(
        ("data, blocks", "data, pages", "code, blocks", "code, pages"),
        numbers,
        (block, page, block, page),
        strict=True,
    ):
        yield f"{what} of {size:,} B", float(number), "count"


def _memstackdist(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    references, cold, *buckets = numbers
    yield "block reads", _part(references, events), "per instruction"
    yield "cold", _part(cold, references), "share"
    for k, number in enumerate(buckets):
        name = f"distance < {2 ** (k + 1):,}" if k < 18 else f"distance >= {2**18:,}"
        low = f"{2**k:,} <= " if 0 < k < 18 else ""
        yield f"{low}{name}", _part(number, references), "share"


def _fullmemstackdist(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> _Rows:
    references, cold, *counts = numbers
    yield "cold", _part(cold, references), "share"
    for distance, number in enumerate(counts):
        yield f"distance {'>=' if distance == 128 else '='} {distance}", _part(number, references), "share"


_OF = {
    "ilp": _ilp,
    "ilp_one": _ilp_one,
    "itypes": _itypes,
    "ppm": _ppm,
    "reg": _reg,
    "stride": _stride,
    "memfootprint": _memfootprint,
    "memstackdist": _memstackdist,
    "fullmemstackdist": _fullmemstackdist,
}
