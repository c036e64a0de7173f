"""From places in mapped files to function names.

Where symbols come from: `.symtab`; in a stripped file `.dynsym` together with
MiniDebugInfo (`.gnu_debugdata`) and a separate file of debug symbols, found by
build-id under /usr/lib/debug; and the PLT, whose entries are called ``NAME@plt``.

Which name an address gets:

- the function whose range [start, start + size) holds it; of several, the one
  that begins last, and of those the shortest (the innermost);
- a symbol without a size (a label in assembly) reaches to the next symbol or
  the end of its section. Inside a function that has a size it is not a
  function of its own, and the function's name stands;
- behind a function's end (padding, code without a symbol): no name.

Of several names for the same range: one with a size before a bare label, a
function before an IFUNC (whose code is the resolver's) before a label of no type,
an exported name before a local one, then the fewest leading underscores, then
strong before weak. Weak comes last because C libraries make the public names
weak: `write` reads better than its strong alias `__write`.
"""

from __future__ import annotations

import ctypes
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from livepro.linux import elf
from livepro.linux.elf import ElfImage, SymbolEntries, Uint64s
from livepro.linux.plt import plt_entries
from livepro.linux.proc import address_space

DEBUG_ROOT = Path("/usr/lib/debug")
VDSO = "[vdso]"
MOST_UNDERSCORES = 7
CODE_TYPES = (elf.STT_NOTYPE, elf.STT_FUNC, elf.STT_GNU_IFUNC)


class Symbolizer:
    """Finds functions in mapped files; each file is read once and remembered.

    `debug_root` is where separate files of debug symbols are looked for.
    """

    def __init__(self, debug_root: Path = DEBUG_ROOT) -> None:
        self._debug_root = debug_root
        self._modules: dict[str, _Module | None] = {}

    def lookup(self, path: str, file_offsets: npt.NDArray[np.uint64]) -> tuple[list[str], Uint64s]:
        """Function names and module-relative virtual addresses of places in a mapped file.

        `path` is what /proc/PID/maps shows, `file_offsets` (uint64) offsets
        into that file (for ``[vdso]``, into the vDSO, which is livepro's own: it is the
        same for every process of the kernel). Returns one name per offset,
        empty where no symbol holds it, and the addresses (uint64) as the
        file's own headers number them, as `nm` and `objdump` show. A path
        that is no readable ELF file (deleted, ``[heap]``, empty ...) gives
        empty names and the offsets themselves; nothing is raised.
        """
        offsets = np.asarray(file_offsets, np.uint64)
        if path not in self._modules:
            self._modules[path] = self._load(path)
        module = self._modules[path]
        if module is None:
            return [""] * len(offsets), offsets.copy()
        addresses, mapped = module.image.virtual_addresses(offsets)
        names = np.full(len(offsets), "", object)
        names[mapped] = module.names(addresses[mapped])
        return names.tolist(), addresses

    def _load(self, path: str) -> _Module | None:
        try:
            stream = open_module(path)
            if stream is None:
                return None
            with stream:
                image = ElfImage(stream)
                sources = list(self._symbol_sources(image))
                functions = FunctionTable.build(image, sources)

                def resolved(addresses: Uint64s) -> list[str]:
                    # A resolver has a name of its own too; here, what it resolves is asked for.
                    public = FunctionTable.build(image, sources, (elf.STT_GNU_IFUNC,)).names(addresses)
                    return [a or b for a, b in zip(public, functions.names(addresses), strict=True)]

                stubs = FunctionTable.of_plt(plt_entries(image, resolved))
            return _Module(image, functions, stubs)
        except Exception:
            # Any file may be mapped, also one that is damaged in ways that pyelftools
            # answers with exceptions of all sorts. It then has no symbols.
            return None

    def _symbol_sources(self, image: ElfImage) -> Iterator[SymbolEntries]:
        full = image.symbols(".symtab")
        if full is not None and len(full.entries):
            yield full
            return
        dynamic = image.symbols(".dynsym")
        if dynamic is not None:
            yield dynamic
        mini = image.mini_debug_info()
        if mini is not None and (hidden := mini.symbols(".symtab")) is not None:
            yield hidden
        separate = self._separate_symbols(image.build_id())
        if separate is not None:
            yield separate

    def _separate_symbols(self, build_id: str) -> SymbolEntries | None:
        """The symbols of the debug file of that build-id (GDB manual, "Separate Debug Files")."""
        path = self._debug_root / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        if not build_id or not path.is_file():
            return None
        with path.open("rb") as stream:
            image = ElfImage(stream)
            return image.symbols(".symtab") if image.build_id() == build_id else None


@dataclass(frozen=True, slots=True)
class _Module:
    """A file's segments (its stream is closed), its functions and its PLT entries."""

    image: ElfImage
    functions: FunctionTable
    stubs: FunctionTable

    def names(self, addresses: Uint64s) -> list[str]:
        names = self.functions.names(addresses)
        return [stub or name for stub, name in zip(self.stubs.names(addresses), names, strict=True)]


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
        end[bare] = reach(start[bare], np.unique(start[kept]), code_start, code_end)
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


def open_module(path: str) -> BinaryIO | None:
    """The file behind a mapping; None where there is none that may be opened.

    Only regular files: to open a device that a program maps could do something.
    """
    if path == VDSO:
        return own_vdso()
    if not path.startswith("/") or not stat.S_ISREG(os.stat(path).st_mode):
        return None
    return open(path, "rb")


def own_vdso() -> io.BytesIO | None:
    """livepro's own vDSO: the kernel maps the whole ELF image, headers and symbols included."""
    for mapping in address_space(os.getpid()).mappings:
        if mapping.path == VDSO:
            return io.BytesIO(ctypes.string_at(mapping.start, mapping.end - mapping.start))
    return None
