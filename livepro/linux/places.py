"""Places in code as people name them: a function, a module's function, an offset in a module.

    SYMBOL   MODULE!SYMBOL   MODULE+0xOFFSET

MODULE is a file's name (`libz.so.1`, `libz` or its path), OFFSET an address as the file's own
headers number it, as reports, `nm` and `objdump` show them. A symbol without a module
is the program's own if it has such a function, else that of any library.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from livepro.errors import LiveproError
from livepro.linux import elf, proc
from livepro.linux.elf import ElfImage, SymbolEntries
from livepro.linux.functions import usable
from livepro.linux.symbols import Symbolizer, open_module

_OFFSET = re.compile(r"(?P<module>.+)\+(?P<offset>0x[0-9a-fA-F]+|[0-9]+)")
_TYPES = (elf.STT_NOTYPE, elf.STT_FUNC)  # the address of an IFUNC is its resolver's
_LOADED = re.compile(r"(?:=>\s+)?(/\S+)\s+\(0x")
_PATIENCE = 10.0  # seconds that the dynamic loader may take to say what it would load


class CodePlace(NamedTuple):
    """`symbol` or, where that is empty, `offset` in the file named `module` (empty: any)."""

    module: str
    symbol: str
    offset: int = 0

    @classmethod
    def parse(cls, text: str) -> CodePlace:
        """The place that `text` names. Raises LiveproError when it names none."""
        module, mark, symbol = text.partition("!")
        if mark and module and symbol:
            return cls(module, symbol)
        match = _OFFSET.fullmatch(text)
        if match and not mark:
            return cls(match["module"], "", int(match["offset"], 0))
        if not text or mark:
            raise LiveproError(
                f"'{text}' names no place in a program.",
                "Write a function's name, MODULE!NAME or MODULE+0xOFFSET.",
            )
        return cls("", text)

    def __str__(self) -> str:
        if not self.symbol:
            return f"{self.module}+{self.offset:#x}"
        return f"{self.module}!{self.symbol}" if self.module else self.symbol

    def may_be_in(self, path: str) -> bool:
        """Whether a file is of the module named."""
        name = PurePath(path).name
        return not self.module or self.module in (path, name) or name.startswith(f"{self.module}.")


class PlaceFinder:
    """Where a place is in files; each is read once."""

    def __init__(self, place: CodePlace) -> None:
        self.place = place
        self._symbolizer = Symbolizer()
        self._known: dict[str, dict[int, int]] = {}

    def in_file(self, path: str) -> dict[int, int]:
        """The place's virtual addresses in a file, each with its offset in the file; none
        where the file has no such place, or cannot be read."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = self._search(path) if self.place.may_be_in(path) else {}
        return found

    def in_mapping(self, mapping: proc.Mapping) -> frozenset[int]:
        """The addresses of the place in an executable mapping of a file."""
        shift = mapping.start - mapping.offset
        addresses = (offset + shift for offset in self.in_file(mapping.path).values())
        return frozenset(a for a in addresses if mapping.start <= a < mapping.end)

    def near(self, paths: Sequence[str]) -> list[str]:
        """Names of functions in files that are like the one looked for."""
        symbol = self.place.symbol
        names: set[str] = set()
        for path in paths:
            for _, source in _sources(self._symbolizer, path):
                texts = (source.name(int(at)) for at in source.entries["name"])
                names.update(t for t in texts if t[:1] == symbol[:1] and abs(len(t) - len(symbol)) < 4)
        return difflib.get_close_matches(symbol, names, n=3)

    def _search(self, path: str) -> dict[int, int]:
        addresses: set[int] = set()
        segments: tuple[elf.Segment, ...] = ()
        for image, source in _sources(self._symbolizer, path):
            segments = image.segments
            if self.place.symbol:
                addresses |= _named(source, self.place.symbol)
            else:
                addresses.add(self.place.offset)
        found = {}
        for address in addresses:
            for segment in segments:
                if segment.executable and 0 <= address - segment.address < segment.file_size:
                    found[address] = address - segment.address + segment.offset
        return found


def lowest_address(path: str) -> int:
    """The lowest address at which a file's segments are loaded, as its own headers number them: 0 for one
    that may be loaded anywhere, and where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return min((segment.address for segment in ElfImage(stream).segments), default=0)
    except Exception:  # a damaged one raises whatever pyelftools does
        return 0


def _sources(symbolizer: Symbolizer, path: str) -> Iterator[tuple[ElfImage, SymbolEntries]]:
    """The symbols that name code in a file; nothing where it is no ELF file."""
    try:
        stream = open_module(path)
        if stream is None:
            return
        with stream:
            image = ElfImage(stream)
            code = image.code_ranges()
            empty = SymbolEntries(np.zeros(0, elf.SYMBOL), b"")
            for source in (empty, *symbolizer.symbol_sources(image)):
                yield image, SymbolEntries(usable(source, *code, _TYPES)[0], source.strings)
    except Exception:  # as `Symbolizer` does: any file may be mapped, also a damaged one
        return


def _named(source: SymbolEntries, symbol: str) -> set[int]:
    """The addresses of the functions of that name, with or without a version."""
    name = os.fsencode(symbol)
    strings = source.strings
    begins = []
    at = strings.find(name)
    while at >= 0:
        if strings[at + len(name) : at + len(name) + 1] in (b"\0", b"@", b""):
            begins.append(at)
        at = strings.find(name, at + 1)
    entries = source.entries[np.isin(source.entries["name"], begins)]
    return set(entries["value"].tolist())


# -- asked before anything is started


def check_command(place: CodePlace, executable: str, environment: Mapping[bytes, bytes]) -> None:
    """Raise LiveproError for a place that a program about to be started cannot have."""
    finder = PlaceFinder(place)
    own = os.path.realpath(executable)
    if not _is_elf(own) or finder.in_file(own):
        return
    libraries = _libraries(own, environment)
    _check(finder, own, libraries)


def check_process(place: CodePlace, pid: int) -> None:
    """Raise LiveproError for a place that a process which runs does not have."""
    finder = PlaceFinder(place)
    own = os.path.realpath(f"/proc/{pid}/exe")
    mapped = {m.path for m in proc.address_space(pid).mappings if m.executable and m.path != own}
    if not finder.in_file(own):
        _check(finder, own, sorted(mapped))


def _check(finder: PlaceFinder, own: str, libraries: Sequence[str]) -> None:
    place = finder.place
    files = [path for path in (own, *libraries) if place.may_be_in(path)]
    if any(finder.in_file(path) for path in files) or (place.module and not files):
        return  # a module that is not there may be loaded later
    if not place.symbol:
        raise LiveproError(
            f"There is no code at {place.offset:#x} in {files[0]}.",
            "Offsets are addresses as `objdump -d` shows them.",
        )
    near = finder.near(files)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    where = files[0] if place.module or len(files) == 1 else f"{own} or the libraries it is linked with"
    raise LiveproError(
        f"There is no function '{place.symbol}' in {where}.",
        f"{hint}One in a library that is loaded later, or in a program that this one starts, is "
        f"named with it: MODULE!{place.symbol}. `nm -DC` and `nm -C` list a file's functions.",
    )


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read(len(elf.MAGIC)) == elf.MAGIC
    except OSError:
        return False


def _libraries(executable: str, environment: Mapping[bytes, bytes]) -> list[str]:
    """The libraries that the dynamic loader would load for a program, as it says itself (ld.so(8),
    --list: nothing of the program is executed)."""
    try:
        with open(executable, "rb") as stream:
            loader = elf.interpreter(stream)
        if not loader:
            return []
        done = subprocess.run(
            [loader, "--list", executable],
            env=dict(environment),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return [os.path.realpath(path) for path in _LOADED.findall(os.fsdecode(done.stdout))]
