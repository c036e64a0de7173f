"""A characterisation as lines of text: tables of named metrics, and the stack distances drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from livepro.mica.metrics import AGES, PREDICTORS, STRIDES, WINDOWS

_BAR = 30
_MOST = 8
"""Functions shown."""
_TWELVE = PREDICTORS.index("GAs h=12")


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """The total of a process, and a line for each of its threads if it has several."""
    total, settings = result["total"], result["settings"]
    yield f"{total['instructions']:,} instructions, {total['events']:,} with each repetition of rep"
    for name, numbers in total["values"].items():
        yield ""
        yield from _SECTIONS[name](numbers, total["events"], settings)
    if len(result["functions"]) > 1:
        yield ""
        yield from _functions(result["functions"], total["events"])
    threads = result["threads"]
    if len(threads) > 1:
        yield ""
        yield "threads    instructions  tid"
        for thread in threads:
            yield f"{thread['number']:>7}{thread['instructions']:>16,}  {thread['tid']}"
    intervals = sum(len(thread["intervals"]) for thread in threads)
    if intervals:
        yield ""
        yield f"{intervals:,} intervals of {settings['interval_size']:,} instructions"


def _functions(functions: Sequence[Mapping[str, Any]], events: int) -> Iterator[str]:
    """The first ones, with what is known of each."""
    columns: dict[str, tuple[str, Callable[[Any, Mapping[str, Any]], str]]] = {
        "events": ("instructions", lambda number, row: f"{number:,} {_share(number, events)}"),
        "ppm": ("mispredicted", lambda missed, row: _share(missed[_TWELVE], row["branches"])),
        "stride": ("accesses", lambda counts, row: f"{counts[0] + counts[15]:,}"),
        "memfootprint": ("data blocks", lambda counts, row: f"{counts[0]:,}"),
    }
    known = [name for name in columns if name in functions[0]]
    rows = [[columns[name][0] for name in known] + ["function"]]
    for row in functions[:_MOST]:
        place = f"{row['function'] or '(no symbol)'}  {PurePath(row['module']).name}".rstrip()
        rows.append([columns[name][1](row[name], row) for name in known] + [place])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    yield f"Functions  {min(_MOST, len(functions))} of {len(functions):,}"
    for *cells, place in rows:
        yield "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) + f"  {place}"
    if "ppm" in known:
        yield "  mispredicted: conditional branches, by GAs with a history of 12"


def _share(number: int, of: int) -> str:
    return f"{100 * number / of:6.1f} %" if of else "       -"


def _ilp(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    yield "Instruction-level parallelism of an ideal machine, instructions per cycle"
    for window, cycles in zip(WINDOWS, numbers, strict=True):
        yield _ideal(window, events, cycles)


def _ilp_one(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    yield "Instruction-level parallelism of an ideal machine, instructions per cycle"
    yield _ideal(settings["ilp_size"], events, numbers[0])


def _ideal(window: int, events: int, cycles: int) -> str:
    shown = f"{events / cycles:8.2f}" if cycles else "       -"
    return f"  window {window:<6}{shown}   {cycles:>16,} cycles"


def _itypes(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    yield "Instruction types  an instruction can be of several"
    width = max(map(len, settings["groups"]))
    for name, number in zip(settings["groups"], numbers, strict=True):
        yield f"  {name:<{width}}{number:>16,} {_share(number, events)}"


def _ppm(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    branches, transitions, taken = numbers[12:]
    yield f"Conditional branches  {branches:,}, mispredicted by prediction by partial matching"
    yield "                            GAg       PAg       GAs       PAs"
    for n, length in enumerate((4, 8, 12)):
        row = "  ".join(_share(misses, branches) for misses in numbers[4 * n : 4 * n + 4])
        yield f"  history of {length:<2} outcomes  {row}"
    yield "  G: history of all branches, P: of each; g: one table for all, s: one for each"
    yield f"  rarer direction, all branches         {_share(taken, branches)}"
    yield f"  rarer of changing and staying         {_share(transitions, branches)}"


def _reg(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    operands, instances, uses, reads, *ages = numbers
    yield "Registers"
    yield f"  operands per instruction      {operands / events if events else 0:6.2f}"
    yield f"  reads of a value              {uses / instances if instances else 0:6.2f}"
    yield "  instructions from a write to its reads, at most"
    yield "  " + "".join(f"{age:>9}" for age in AGES)
    yield "  " + "".join(f" {_share(number, reads)}" for number in ages)


def _stride(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    yield "Strides in bytes, at most" + "".join(f"{limit:>10,}" for limit in STRIDES)
    for kind, part in (("reads", numbers[:15]), ("writes", numbers[15:])):
        for which, counts in (("same operand", part[1:8]), ("any", part[8:])):
            row = "".join(f"  {_share(number, part[0])}" for number in counts)
            yield f"  {kind + ', ' + which:<23}{row}"


def _memfootprint(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    yield "Memory touched"
    for what, blocks, pages in (("data", *numbers[:2]), ("code", *numbers[2:])):
        yield (
            f"  {what}{blocks:>14,} blocks of {1 << settings['block_size']:,} B"
            f"{pages:>14,} pages of {1 << settings['page_size']:,} B"
        )


def _memstackdist(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    references, cold, *buckets = numbers
    block = 1 << settings["block_size"]
    yield f"LRU stack distances of reads  {references:,} block reads, {block:,} B blocks"
    yield f"{'':42}misses of an LRU cache of that size"
    most, missing = max((*buckets, cold, 1)), references
    for k, number in enumerate(buckets):
        missing -= number  # a cache of N blocks has what is read again after less than N others
        if number and k < len(buckets) - 1:
            misses = f"{_bytes(block << k + 1):>9}{_share(missing, references)}"
            yield _bar(f"< {2 ** (k + 1):,}", number, references, most, misses)
        elif number:
            yield _bar(f">= {2**k:,}", number, references, most, " " * 17)
    yield _bar("first", cold, references, most, " " * 17)


def _fullmemstackdist(numbers: Sequence[int], events: int, settings: Mapping[str, Any]) -> Iterator[str]:
    references, cold, *counts = numbers
    yield f"LRU stack distances of reads, one by one  {references:,} block reads"
    most = max((*counts, cold, 1))
    for distance, number in enumerate(counts):
        if number and (distance < 16 or distance == len(counts) - 1):
            yield _bar(
                f">= {distance}" if distance == len(counts) - 1 else f"{distance}", number, references, most
            )
    yield _bar("first", cold, references, most)


def _bar(name: str, number: int, of: int, most: int, beside: str = "") -> str:
    bar = "█" * round(_BAR * number / most)
    return f"  {name:>10}{number:>16,} {_share(number, of)}  {beside}  {bar}".rstrip()


def _bytes(size: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size >> power} {unit}"
    return f"{size} B"


_SECTIONS = {
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
