"""The functions of an ELF file, whatever tells of them, and their blocks.

A function is, in this order: a symbol with a size; a symbol without one, which reaches to
the next symbol or the end of its section; an entry of the PLT; the range of an FDE where
no symbol is (a stripped file), which is called ``sub_ADDRESS``. Of several names for one
range there is one (the rules are those of `linux.symbols`). A function within another
one, or overlapping it, is a function all the same. Data in the text (AArch64's mapping
symbols ``$d``, symbols of objects) is no code.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro import isa as registry
from livepro.blocks.fde import fde_ranges
from livepro.blocks.split import Split, StaticBlock, split
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.linux import elf
from livepro.linux.elf import ElfImage, SymbolEntries, symbol_name
from livepro.linux.functions import CODE_TYPES, FunctionTable, inside, usable
from livepro.linux.plt import plt_entries
from livepro.linux.symbols import VDSO, Symbolizer, own_vdso
from livepro.names.demangle import Demangler

Ranges = npt.NDArray[np.uint64]

SYMBOL, PLT, FDE = "symbol", "plt", "fde"
"""What told of a function."""

_ISAS = {code: name for name, code in elf.MACHINE_CODES.items()}


class Function(NamedTuple):
    """The code in [start, end) (virtual addresses of the file), and what told of it."""

    name: str
    start: int
    end: int
    source: str


@dataclass(frozen=True)
class Notes:
    """What is worth knowing of a file: bytes of code that belong to no function, bytes of data
    within the text, other names of functions, functions within or across others, and those
    that only unwind information tells of."""

    unclaimed: int
    data: int
    aliases: int
    overlapping: int
    unnamed: int


class CodeFile:
    """One ELF file's functions and blocks. Each function is split once."""

    def __init__(self, path: str, stream: BinaryIO, image: ElfImage, isa: Isa) -> None:
        self.path = path
        self.isa = isa
        self.image = image
        self._stream = stream
        self._splits: dict[Function, Split] = {}
        self._pieces: dict[Function, list[tuple[int, bytes]]] = {}
        sources = list(Symbolizer().symbol_sources(image))
        table = FunctionTable.build(image, sources)
        self.data = data_ranges(image, sources)
        self.functions = tuple(sorted(_functions(image, sources, table), key=lambda f: (f.start, -f.end)))
        self._starts = [f.start for f in self.functions]
        self._longest = _reach([f.end for f in self.functions])
        self._aliases = _aliases(image, sources)

    def close(self) -> None:
        """Give the file back."""
        self._stream.close()

    def named(self, name: str) -> list[Function]:
        """The functions of that name."""
        return [f for f in self.functions if f.name == name]

    def named_otherwise(self, name: str) -> list[Function]:
        """The functions that have this name besides the one that they are shown by."""
        places = self._aliases.get(name, set())
        return [f for f in self.functions if (f.start, f.end) in places]

    def find(self, address: int) -> Function | None:
        """The innermost function that holds a virtual address: the one that begins last."""
        at = bisect_right(self._starts, address) - 1
        while at >= 0 and self._longest[at] > address:
            if address < self.functions[at].end:
                return self.functions[at]
            at -= 1
        return None

    def split(self, function: Function) -> Split:
        """A function's blocks."""
        known = self._splits.get(function)
        if known is None:
            known = self._splits[function] = self.split_at(function, ())
        return known

    def split_at(self, function: Function, entries: Sequence[int]) -> Split:
        """A function's blocks, cut also at `entries` (see `split.split`)."""
        return split(self.isa, self.pieces(function), function[1:3], entries)

    def block_at(self, address: int) -> tuple[Function, StaticBlock] | None:
        """The block that holds a virtual address, and its function; None where no function's does."""
        function = self.find(address)
        block = None if function is None else self.split(function).find(address)
        return None if function is None or block is None else (function, block)

    def pieces(self, function: Function) -> list[tuple[int, bytes]]:
        """A function's code, (address, bytes) each, without the data in it."""
        known = self._pieces.get(function)
        if known is None:
            known = self._pieces[function] = list(self._read_pieces(function))
        return known

    def _read_pieces(self, function: Function) -> Iterator[tuple[int, bytes]]:
        at = function.start
        first = int(np.searchsorted(self.data[:, 1], at, "right")) if len(self.data) else 0
        for start, end in self.data[first:].tolist():
            if start >= function.end:
                break
            if start > at:
                yield at, self.image.memory(at, start - at)
            at = max(at, end)
        if at < function.end:
            yield at, self.image.memory(at, function.end - at)

    def read(self, start: int, end: int) -> bytes:
        """The bytes that the file holds for [start, end)."""
        return self.image.memory(start, end - start)

    def notes(self) -> Notes:
        """What was met in the file."""
        code = _union(np.stack(self.image.code_ranges(), 1))
        claimed = [(f.start, f.end) for f in self.functions]
        total = _size(code)
        joined = _union(np.array([*claimed, *self.data.tolist()], np.uint64).reshape(-1, 2))
        overlapping = sum(
            self.functions[i].start < self._longest[i - 1] for i in range(1, len(self.functions))
        )
        return Notes(
            unclaimed=max(total - _size(joined), 0),
            data=_size(_union(self.data)),
            aliases=sum(map(len, self._aliases.values())) - len(set().union(*self._aliases.values())),
            overlapping=overlapping,
            unnamed=sum(f.source == FDE for f in self.functions),
        )


def open_code(path: str) -> CodeFile:
    """The functions of the ELF file at `path` (``[vdso]``: livepro's own vDSO).

    Raises LiveproError for what is no file, no ELF file, one of an instruction set that
    livepro does not know, or a relocatable object (whose sections have no addresses yet).
    """
    stream = _open(path)
    try:
        try:
            image = ElfImage(stream)
        except elf.ElfError as error:
            raise _not_elf(path, stream) from error
        except Exception as error:  # pyelftools meets a damaged file in many ways
            raise LiveproError(
                f"{path} is a damaged ELF file: {error}.", "Build or fetch it anew."
            ) from error
        name = _ISAS.get(image.header.machine)
        if name is None:
            raise LiveproError(
                f"{path} is for {image.header.machine_name}.",
                f"livepro knows the code of {' and '.join(registry.MACHINES)}.",
            )
        if image.header.type == elf.ET_REL:
            raise LiveproError(
                f"{path} is a relocatable object: its code has no addresses yet, nor its calls targets.",
                "Link it: `gcc -shared -o FILE.so FILE.o` will do.",
            )
        isa = registry.for_machine(name)
        _check_decoder(isa)
        return CodeFile(path, stream, image, isa)
    except BaseException:
        stream.close()
        raise


def _check_decoder(isa: Isa) -> None:
    """Raise LiveproError where the package is missing that decodes the file's instructions: livepro is
    installed with that of its own machine."""
    from importlib.util import find_spec

    for package, module in isa.libraries.items():
        if find_spec(module) is None:
            raise LiveproError(
                f"To read {isa.name} code on this machine takes the Python package {package}.",
                "Install it: `pip install 'livepro[blocks]'`.",
            )


def _open(path: str) -> BinaryIO:
    if path == VDSO:
        image = own_vdso()
        if image is not None:
            return image
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise LiveproError(f"{path} is no regular file.", "Name a program or a library.")
        return Path(path).open("rb")
    except OSError as error:
        raise LiveproError(
            f"{path} cannot be read: {os.strerror(error.errno or 0).lower()}.",
            "Check its name and permissions.",
        ) from error


def _not_elf(path: str, stream: BinaryIO) -> LiveproError:
    stream.seek(0)
    begin = stream.read(elf.HEADER_SIZE)
    header = elf.parse_header(begin)
    if header is not None:
        return LiveproError(
            f"{path} is for {header.machine_name}, {header.bits} bits.",
            f"livepro knows the code of {' and '.join(registry.MACHINES)}, 64 bits, little-endian.",
        )
    if begin.startswith(b"#!"):
        program = begin[2:].split(b"\n")[0].decode(errors="replace").strip()
        return LiveproError(f"{path} is a script for {program}, no ELF file.", "Name that program instead.")
    return LiveproError(f"{path} is no ELF file.", "Name a program or a library: `file` tells what it is.")


def _functions(image: ElfImage, sources: list[SymbolEntries], table: FunctionTable) -> Iterator[Function]:
    """Everything that is known to be a function."""
    spelled = Demangler()
    stubs = plt_entries(image, table.names)
    taken = [(address, address + size) for address, size, _ in stubs]
    for address, size, name in stubs:
        yield Function(spelled(name), address, address + size, PLT)
    plt = [(s.address, s.address + s.size) for s in image.sections if s.executable and s.name == ".plt"]
    stub_starts = {start for start, _ in taken}
    for start, end, name in zip(table.start.tolist(), table.end.tolist(), table.name.tolist(), strict=True):
        if start not in stub_starts and end > start:
            taken.append((start, end))
            yield Function(spelled(symbol_name(table.strings, name)), start, end, SYMBOL)
    ranges = fde_ranges(image)
    if not len(ranges):
        return
    known = np.array(sorted(set(taken) | set(plt)), np.uint64).reshape(-1, 2)
    code_start, code_end = image.code_ranges()
    free = ~inside(ranges[:, 0], known[:, 0], known[:, 1]) & inside(ranges[:, 0], code_start, code_end)
    following = np.append(known[:, 0], np.iinfo(np.uint64).max)
    behind = following[np.searchsorted(known[:, 0], ranges[:, 0], "right")]
    for (start, end), limit in zip(ranges[free].tolist(), behind[free].tolist(), strict=True):
        if min(end, limit) > start:
            yield Function(f"sub_{start:x}", start, min(end, limit), FDE)


def _aliases(image: ElfImage, sources: list[SymbolEntries]) -> dict[str, set[tuple[int, int]]]:
    """The ranges that every name of a function with a size stands for."""
    bounds = image.code_ranges()
    out: dict[str, set[tuple[int, int]]] = {}
    for source in sources:
        entries, _ = usable(source, *bounds, CODE_TYPES)
        for name, value, size in entries[entries["size"] > 0][["name", "value", "size"]].tolist():
            out.setdefault(symbol_name(source.strings, name), set()).add((value, value + size))
    return out


def data_ranges(image: ElfImage, sources: Sequence[SymbolEntries]) -> Ranges:
    """The [start, end) of data within the code (uint64, N x 2), ascending and disjoint: what symbols
    of objects cover, and what stands behind a mapping symbol ``$d`` up to the next ``$x``
    (ELF for the Arm 64-bit Architecture, "Mapping symbols")."""
    code_start, code_end = image.code_ranges()
    found: list[tuple[int, int]] = []
    marks: dict[int, bool] = {}
    for source in sources:
        entries = source.entries
        defined = (entries["section"] != elf.SHN_UNDEF) & inside(entries["value"], code_start, code_end)
        kind = entries["info"] & 15
        for value, size in entries[defined & (kind == elf.STT_OBJECT)][["value", "size"]].tolist():
            if size:
                found.append((value, value + size))
        for name, value in entries[defined & (kind == elf.STT_NOTYPE)][["name", "value"]].tolist():
            mark = source.strings[name : name + 3]
            if mark[:2] in (b"$d", b"$x") and mark[2:] in (b"\0", b"."):
                # Several may stand at one address, where a piece is empty: code then follows.
                marks[value] = marks.get(value, True) and mark[1:2] == b"d"
    order = sorted(marks)
    for at, value in enumerate(order):
        if marks[value]:
            section = int(code_end[np.searchsorted(code_start, value, "right") - 1])
            following = order[at + 1] if at + 1 < len(order) else section
            found.append((value, min(following, section)))
    return _union(np.array(found, np.uint64).reshape(-1, 2))


def _union(ranges: Ranges) -> Ranges:
    """The same addresses as ascending, disjoint ranges."""
    out: list[list[int]] = []
    for start, end in sorted(ranges.tolist()):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end])
    return np.array(out, np.uint64).reshape(-1, 2)


def _size(ranges: Ranges) -> int:
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def _reach(ends: Sequence[int]) -> list[int]:
    """How far the ranges up to each one reach."""
    out: list[int] = []
    for end in ends:
        out.append(max(end, out[-1]) if out else end)
    return out
