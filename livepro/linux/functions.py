"""Which function holds an address: the symbols of a file as ranges.

The rules are told in `symbols`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from livepro.linux import elf
from livepro.linux.elf import ElfImage, SymbolEntries, Uint64s
from livepro.model.arrays import distinct

MOST_UNDERSCORES = 7
CODE_TYPES = (elf.STT_NOTYPE, elf.STT_FUNC, elf.STT_GNU_IFUNC)


@dataclass(frozen=True)
class FunctionTable:
    """Ranges of virtual addresses and their names, sorted by (start, descending end).

    `start` and `end` (uint64) bound each range; `parent` (int64) is the row of
    the next range to ask when an address is behind this one's end, the
    nearest earlier one that reaches further (-1: none). `name` (int64) is
    where in `strings` the name begins.
    """

    start: Uint64s
    end: Uint64s
    parent: npt.NDArray[np.int64]
    name: npt.NDArray[np.int64]
    strings: bytes
    _decoded: dict[int, str] = field(default_factory=dict)

    COLUMNS: ClassVar[tuple[str, ...]] = ("start", "end", "parent", "name", "strings")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """It as arrays, to be kept."""
        strings = np.frombuffer(self.strings, np.uint8)
        return {
            "start": self.start,
            "end": self.end,
            "parent": self.parent,
            "name": self.name,
            "strings": strings,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FunctionTable:
        """What `arrays` gave."""
        start, end, parent, name, strings = (arrays[column] for column in cls.COLUMNS)
        return cls(start, end, parent, name, strings.tobytes())

    def names(self, addresses: Uint64s) -> list[str]:
        """The name of the range that holds each of `addresses` (uint64), empty where none does."""
        out = np.full(len(addresses), "", object)
        if len(self.start) == 0:
            return out.tolist()
        rows = np.searchsorted(self.start, addresses, "right") - 1
        while (behind := (rows >= 0) & (addresses >= self.end[rows])).any():
            rows[behind] = self.parent[rows[behind]]
        found, back = np.unique(rows, return_inverse=True)
        texts = np.array([self._name(row) if row >= 0 else "" for row in found.tolist()], object)
        return texts[back].tolist() if len(found) else []

    def _name(self, row: int) -> str:
        text = self._decoded.get(row)
        if text is None:
            text = self._decoded[row] = elf.symbol_name(self.strings, int(self.name[row]))
        return text

    @classmethod
    def of_plt(cls, entries: list[tuple[int, int, str]]) -> FunctionTable:
        """The table of PLT entries (address, size, name), which do not overlap."""
        entries = sorted(entries)
        start = np.array([address for address, _, _ in entries], np.uint64)
        size = np.array([size for _, size, _ in entries], np.uint64)
        names = [name.encode() + b"\0" for _, _, name in entries]
        where = np.cumsum([0, *map(len, names)])[:-1]
        return cls(start, start + size, np.full(len(entries), -1), where, b"".join(names))

    @classmethod
    def build(
        cls, image: ElfImage, sources: list[SymbolEntries], types: tuple[int, ...] = CODE_TYPES
    ) -> FunctionTable:
        """The functions (symbols of the `types` given) that `sources` define in `image`'s code, by
        the rules at the top."""
        code_start, code_end = image.code_ranges()
        strings = b"".join(source.strings + b"\0" for source in sources)
        base = np.cumsum([0] + [len(source.strings) + 1 for source in sources])
        parts = [usable(source, code_start, code_end, types) for source in sources]
        if not parts:
            return cls.of_plt([])
        symbols = np.concatenate([part for part, _ in parts])
        name = np.concatenate(
            [part["name"] + shift for (part, _), shift in zip(parts, base[:-1], strict=True)]
        )
        rank = np.concatenate([rank for _, rank in parts])
        start = symbols["value"].astype(np.uint64)
        end = start + symbols["size"]
        kept = np.ones(len(start), bool)
        bare = np.flatnonzero(symbols["size"] == 0)
        kept[bare] = ~inside(start[bare], start, end)
        bare = bare[kept[bare]]
        end[bare] = reach(start[bare], distinct(start[kept]), code_start, code_end)
        start, end, name, rank = start[kept], end[kept], name[kept], rank[kept]
        order = np.lexsort((rank, ~end, start))
        start, end, name = start[order], end[order], name[order]
        first = np.ones(len(start), bool)
        first[1:] = (start[1:] != start[:-1]) | (end[1:] != end[:-1])
        start, end, name = start[first], end[first], name[first]
        return cls(start, end, parents(end), name, strings)


def usable(
    source: SymbolEntries, code_start: Uint64s, code_end: Uint64s, types: tuple[int, ...]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """The symbols that may name code, and their rank (uint8; the lowest names a range).

    Not: undefined and absolute ones, data, sections and files; nor labels that
    are no names: AArch64's mapping symbols (``$x``, ``$d.1``: ELF for the Arm 64-bit
    Architecture, 4.5.4) and those that begin with a dot (assemblers' ``.L1``, annobin's).
    """
    entries = source.entries
    kind, binding = entries["info"] & 15, entries["info"] >> 4
    untyped = kind == elf.STT_NOTYPE
    section = entries["section"]
    good = np.isin(kind, types)
    good &= (section != elf.SHN_UNDEF) & ((section < elf.SHN_LORESERVE) | (section == elf.SHN_XINDEX))
    good &= entries["name"] < len(source.strings)
    good &= inside(entries["value"], code_start, code_end)
    entries, kind, binding, untyped = entries[good], kind[good], binding[good], untyped[good]

    text = np.frombuffer(source.strings + bytes(MOST_UNDERSCORES + 1), np.uint8)
    at = entries["name"].astype(np.int64)
    mapping = (text[at] == ord("$")) & np.isin(text[at + 2], (0, ord(".")))
    named = (text[at] != 0) & ~(untyped & (mapping | (text[at] == ord("."))))

    underscores = np.zeros(len(at), np.uint8)
    leading = np.ones(len(at), bool)
    for i in range(MOST_UNDERSCORES):
        leading &= text[at + i] == ord("_")
        underscores += leading
    rank = ((entries["size"] == 0) * 128 + untyped * 64 + (kind == elf.STT_GNU_IFUNC) * 32).astype(np.uint8)
    rank |= ((binding == elf.STB_LOCAL) * 16 + (binding == elf.STB_WEAK)).astype(np.uint8)
    rank |= underscores << 1
    return entries[named], rank[named]


def inside(addresses: Uint64s, start: Uint64s, end: Uint64s) -> npt.NDArray[np.bool_]:
    """Whether each address lies in one of the ranges [start, end), which may overlap (bool)."""
    if len(start) == 0:
        return np.zeros(len(addresses), bool)
    order = np.argsort(start)
    furthest = np.maximum.accumulate(end[order])
    before = np.searchsorted(start[order], addresses, "right") - 1
    return (before >= 0) & (addresses < furthest[before])


def reach(labels: Uint64s, starts: Uint64s, code_start: Uint64s, code_end: Uint64s) -> Uint64s:
    """Where the code behind each label ends (uint64): at the next of the sorted `starts`, or with
    its code range."""
    section_end: Uint64s = code_end[np.searchsorted(code_start, labels, "right") - 1]
    behind: Uint64s = np.append(starts, np.iinfo(np.uint64).max)
    following: Uint64s = behind[np.searchsorted(starts, labels, "right")]
    return np.minimum(section_end, following)


def parents(end: Uint64s) -> npt.NDArray[np.int64]:
    """For each range the nearest earlier one that ends later (int64, -1: none).

    Nearly all functions are disjoint, so the loop sees only the few others.
    """
    out = np.full(len(end), -1, np.int64)
    nested = np.flatnonzero(np.maximum.accumulate(end)[:-1] > end[1:]) + 1
    for row in nested.tolist():
        above = row - 1
        while end[above] <= end[row]:
            above = int(out[above])
        out[row] = above
    return out
