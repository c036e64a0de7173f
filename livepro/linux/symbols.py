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
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.kept.artifacts import ArtifactStore
from livepro.linux import elf
from livepro.linux.debugfiles import DEBUG_ROOT, DebugFiles
from livepro.linux.elf import ElfImage, Segment, SymbolEntries, Uint64s, virtual_addresses
from livepro.linux.functions import FunctionTable
from livepro.linux.plt import plt_entries
from livepro.linux.proc import address_space

VDSO = "[vdso]"


class Symbolizer:
    """Finds functions in mapped files; each file is read once and remembered.

    `debug_root` is where separate files of debug symbols are looked for, and `environment` (None: this
    process's) says which servers to ask for them (see `debugfiles`). With a
    `kept` directory what was read is kept there from run to run. `spelled` makes of a symbol
    the name that is given for it.
    """

    def __init__(
        self,
        debug_root: Path = DEBUG_ROOT,
        kept: Path | None = None,
        spelled: Callable[[str], str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._spelled = spelled
        self._debug = DebugFiles(debug_root, environment)
        here = Path(__file__).parent
        self._artifacts = (
            None
            if kept is None
            else ArtifactStore(kept, " ".join(("symbols", str(debug_root), *self._debug.urls)), here)
        )
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
        addresses, mapped = virtual_addresses(module.segments, offsets)
        names = np.full(len(offsets), "", object)
        names[mapped] = module.names(addresses[mapped])
        return [self.spelled(name) for name in names.tolist()], addresses

    def spelled(self, symbol: str) -> str:
        """The name that is given for a symbol."""
        return symbol if self._spelled is None else self._spelled(symbol)

    def _load(self, path: str) -> _Module | None:
        key = None if self._artifacts is None else _identity(path)
        if key is None or self._artifacts is None:
            return self._read(path)
        name = self._artifacts.key(*key)
        arrays = self._artifacts.read(name)
        module = None if arrays is None else _Module.from_arrays(arrays)
        if module is None or module.separate != _separate_version(module.separate):
            module = self._read(path)
            if module is not None:
                self._artifacts.write(name, module.arrays())
        return module

    def _read(self, path: str) -> _Module | None:
        try:
            stream = open_module(path)
            if stream is None:
                return None
            with stream:
                image = ElfImage(stream)
                sources = list(self.symbol_sources(image))
                functions = FunctionTable.build(image, sources)

                def resolved(addresses: Uint64s) -> list[str]:
                    # A resolver has a name of its own too; here, what it resolves is asked for.
                    public = FunctionTable.build(image, sources, (elf.STT_GNU_IFUNC,)).names(addresses)
                    return [a or b for a, b in zip(public, functions.names(addresses), strict=True)]

                stubs = FunctionTable.of_plt(plt_entries(image, resolved))
                separate = _separate_version((str(self._debug.place(image.build_id())), 0, 0))
            return _Module(tuple(image.segments), functions, stubs, separate)
        except Exception:
            # Any file may be mapped, also one that is damaged in ways that pyelftools
            # answers with exceptions of all sorts. It then has no symbols.
            return None

    def symbol_sources(self, image: ElfImage) -> Iterator[SymbolEntries]:
        """The symbol tables that a file has, here and elsewhere."""
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
        path = self._debug.place(build_id)
        if not build_id or not path.is_file():
            return None
        with path.open("rb") as stream:
            image = ElfImage(stream)
            return image.symbols(".symtab") if image.build_id() == build_id else None


class _Module(NamedTuple):
    """A file's segments, its functions and its PLT entries, and which version of a separate
    file of debug symbols was asked (its path, size in bytes and modification time in ns)."""

    segments: tuple[Segment, ...]
    functions: FunctionTable
    stubs: FunctionTable
    separate: tuple[str, int, int]

    def names(self, addresses: Uint64s) -> list[str]:
        names = self.functions.names(addresses)
        return [stub or name for stub, name in zip(self.stubs.names(addresses), names, strict=True)]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """It as arrays, to be kept."""
        path, *version = self.separate
        segments = [(s.offset, s.address, s.file_size, s.executable) for s in self.segments]
        return {
            "segments": np.array(segments, np.uint64).reshape(-1),
            "separate": np.array(version, np.int64),
            "path": np.frombuffer(os.fsencode(path), np.uint8),
            **{f"functions.{name}": array for name, array in self.functions.arrays().items()},
            **{f"stubs.{name}": array for name, array in self.stubs.arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> _Module:
        """What `arrays` gave."""
        segments = arrays["segments"].reshape(-1, 4).tolist()
        size, changed = arrays["separate"].tolist()
        functions, stubs = (
            FunctionTable.from_arrays({n: arrays[f"{table}.{n}"] for n in FunctionTable.COLUMNS})
            for table in ("functions", "stubs")
        )
        return cls(
            tuple(Segment(offset, address, length, bool(x)) for offset, address, length, x in segments),
            functions,
            stubs,
            (os.fsdecode(arrays["path"].tobytes()), size, changed),
        )


def _identity(path: str) -> tuple[object, ...] | None:
    """What tells a file from all others and from its own other versions."""
    if path == VDSO:
        image = own_vdso()
        return None if image is None else (path, zlib.crc32(image.getbuffer()), os.uname().version)
    if not path.startswith("/"):
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _separate_version(separate: tuple[str, int, int]) -> tuple[str, int, int]:
    """The version that is there now; zeros where there is none."""
    path = separate[0]
    try:
        status = os.stat(path)
    except OSError:
        return path, 0, 0
    return path, status.st_size, status.st_mtime_ns


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
