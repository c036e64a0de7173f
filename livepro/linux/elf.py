"""One ELF file: its header, its load segments, and its symbols and relocations as arrays.

Headers come from pyelftools. Tables with an entry per symbol are read with
NumPy, from the layouts of the System V ABI ("ELF-64 Object File Format"):
a library has a hundred thousand of them, and is looked at while a program waits.
"""

from __future__ import annotations

import io
import lzma
import mmap
import os
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

Uint64s = npt.NDArray[np.uint64]

MAGIC = b"\x7fELF"
HEADER_SIZE = 64

ELFCLASS32, ELFCLASS64 = 1, 2
ELFDATA2LSB, ELFDATA2MSB = 1, 2
ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
PF_X = 1
PT_INTERP = 3
SHF_EXECINSTR = 4
SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHN_XINDEX = 0xFFFF
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC = 0, 1, 2, 10
NT_GNU_BUILD_ID = 3
DT_STRTAB, DT_SYMTAB, DT_STRSZ = 5, 6, 10
DT_TLSDESC_PLT = 0x6FFFFEF6

SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
"""Elf64_Sym."""

RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
"""Elf64_Rela."""

MACHINE_NAMES = {
    2: "SPARC",
    3: "x86",
    8: "MIPS",
    20: "32-bit PowerPC",
    21: "PowerPC",
    22: "S/390",
    40: "32-bit ARM",
    43: "SPARC",
    50: "Itanium",
    62: "x86-64",
    183: "AArch64",
    243: "RISC-V",
    247: "BPF",
    258: "LoongArch",
}
"""EM_* of include/uapi/linux/elf-em.h, in words."""

VARIANT_NAMES = {
    (62, 32, True): "x32",
    (183, 32, True): "AArch64 ILP32",
    (183, 64, False): "big-endian AArch64",
    (21, 64, True): "little-endian PowerPC",
    (8, 32, True): "little-endian MIPS",
    (8, 64, True): "little-endian MIPS",
}
"""Names of (machine, bits, little-endian) where the machine's own does not say enough."""

MACHINE_CODES = {"x86_64": 62, "aarch64": 183}
"""EM_* by the name that `uname -m` gives."""

UNPACKED_LIMIT = 1 << 28
"""Most bytes that a compressed symbol table may unpack to."""


class ElfError(ValueError):
    """Not an ELF file, or not one that this module reads."""


class ElfHeader(NamedTuple):
    """The fields that tell what an ELF file is for: `bits` 32 or 64, `type` an ET_* and
    `machine` an EM_* code."""

    bits: int
    little_endian: bool
    type: int
    machine: int

    @property
    def machine_name(self) -> str:
        """The architecture in words."""
        unknown = f"an unknown architecture (ELF machine {self.machine})"
        variant = VARIANT_NAMES.get((self.machine, self.bits, self.little_endian))
        return variant or MACHINE_NAMES.get(self.machine, unknown)


class Segment(NamedTuple):
    """A PT_LOAD program header (addresses, offsets and sizes in bytes)."""

    offset: int
    address: int
    file_size: int
    executable: bool


class Section(NamedTuple):
    """A section header. `link` is the index of the section it refers to."""

    name: str
    kind: str
    executable: bool
    address: int
    offset: int
    size: int
    entry_size: int
    link: int


class SymbolEntries(NamedTuple):
    """A symbol table (`SYMBOL` records) and the string table that holds its names."""

    entries: npt.NDArray[Any]
    strings: bytes

    def name(self, at: int) -> str:
        """The name at offset `at` of the string table, without its version."""
        return symbol_name(self.strings, at)


def symbol_name(strings: bytes, at: int) -> str:
    """The name that begins at `at` in a string table.

    Without ``@VERSION`` or ``@@VERSION``, which linkers append; the ``@plt`` of
    an entry that jumps to the function stays.
    """
    text = strings[at : strings.find(b"\0", at)].decode(errors="backslashreplace")
    return text if text.endswith("@plt") or text.startswith("@") else text.partition("@")[0]


def parse_header(data: bytes) -> ElfHeader | None:
    """The header at the beginning of a file; None when it is no ELF file or cut short.

    `e_ident`, `e_type` and `e_machine` lie alike in 32- and 64-bit files.
    """
    if data[:4] != MAGIC or len(data) < 20:
        return None
    little = data[5] != ELFDATA2MSB
    kind, machine = struct.unpack_from("<HH" if little else ">HH", data, 16)
    return ElfHeader(
        bits=32 if data[4] == ELFCLASS32 else 64, little_endian=little, type=kind, machine=machine
    )


def interpreter(stream: BinaryIO) -> str:
    """The dynamic linker that a 64-bit little-endian file names (PT_INTERP), empty if none.

    Read by hand, from the layouts of the System V ABI: every run asks, and
    pyelftools takes 40 ms to load. Raises struct.error for a file that is cut short.
    """
    header = stream.read(HEADER_SIZE)
    (table,) = struct.unpack_from("<Q", header, 32)  # e_phoff
    size, count = struct.unpack_from("<HH", header, 54)  # e_phentsize, e_phnum
    stream.seek(table)
    headers = stream.read(size * count)
    for at in range(0, size * count, max(size, 1)):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", headers, at)
        if kind == PT_INTERP:
            stream.seek(offset)
            return os.fsdecode(stream.read(length).partition(b"\0")[0])
    return ""


class ElfImage:
    """A 64-bit little-endian ELF file, read from `stream` as it is asked for.

    `segments` are its PT_LOAD headers, `sections` its section headers.
    Raises ElfError when the file is of another kind; a damaged one may raise
    whatever pyelftools does.
    """

    def __init__(self, stream: BinaryIO) -> None:
        from elftools.elf.elffile import ELFFile  # costs 40 ms: only runs that need symbols pay

        self._stream = stream
        self._size = stream.seek(0, io.SEEK_END)
        header = parse_header(self.read(0, HEADER_SIZE))
        if header is None or header.bits != 64 or not header.little_endian:
            raise ElfError("not a 64-bit little-endian ELF file")
        self.header = header
        elf = ELFFile(stream)
        segments = []
        self._dynamic = 0, 0
        for segment in elf.iter_segments():
            kind = segment["p_type"]
            if kind == "PT_DYNAMIC":
                self._dynamic = segment["p_offset"], segment["p_filesz"]
            elif kind == "PT_LOAD":
                segments.append(
                    Segment(
                        segment["p_offset"],
                        segment["p_vaddr"],
                        segment["p_filesz"],
                        bool(segment["p_flags"] & PF_X),
                    )
                )
        self.segments = tuple(segments)
        self.sections = tuple(
            Section(
                name=section.name,
                kind=str(section["sh_type"]),
                executable=bool(section["sh_flags"] & SHF_EXECINSTR),
                address=section["sh_addr"],
                offset=section["sh_offset"],
                size=section["sh_size"],
                entry_size=section["sh_entsize"],
                link=section["sh_link"],
            )
            for section in elf.iter_sections()
        )

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes of the file from `offset`; shorter at its end."""
        self._stream.seek(offset)
        return self._stream.read(max(min(size, self._size - offset), 0))

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((s for s in self.sections if s.name == name), None)

    def contents(self, section: Section) -> bytes:
        """The bytes of a section; empty when the file holds none (as in a file of debug symbols)."""
        return b"" if section.kind == "SHT_NOBITS" else self.read(section.offset, section.size)

    def symbols(self, name: str) -> SymbolEntries | None:
        """The symbol table `.symtab` or `.dynsym` with its names; None when there is none."""
        if name == ".dynsym" and not self.sections:
            return self._dynamic_symbols()
        section = self.section(name)
        if section is None or section.kind == "SHT_NOBITS" or section.link >= len(self.sections):
            return None
        return SymbolEntries(
            records(self.contents(section), SYMBOL), self.contents(self.sections[section.link])
        )

    def _dynamic_symbols(self) -> SymbolEntries | None:
        """The dynamic symbols of a file without section headers.

        Nothing there says how many they are: as glibc's dladdr does, take all
        up to the string table, which linkers put behind them.
        """
        symbols, strings, size = (self.dynamic_entry(tag) for tag in (DT_SYMTAB, DT_STRTAB, DT_STRSZ))
        if symbols is None or strings is None or size is None or strings < symbols:
            return None
        return SymbolEntries(
            records(self.memory(symbols, strings - symbols), SYMBOL), self.memory(strings, size)
        )

    def memory(self, address: int, size: int) -> bytes:
        """Up to `size` bytes that the file holds for virtual `address`."""
        for segment in self.segments:
            skip = address - segment.address
            if 0 <= skip < segment.file_size:
                return self.read(segment.offset + skip, min(size, segment.file_size - skip))
        return b""

    def relocations(self, name: str) -> npt.NDArray[Any]:
        """`RELOCATION` records of the section called `name`; none when there is no such section."""
        section = self.section(name)
        return records(b"" if section is None else self.contents(section), RELOCATION)

    def dynamic_entry(self, tag: int) -> int | None:
        """The value of the first entry of the dynamic section with that tag."""
        entries = records(self.read(*self._dynamic), np.dtype([("tag", "<i8"), ("value", "<u8")]))
        found = np.flatnonzero(entries["tag"] == tag)
        return int(entries["value"][found[0]]) if len(found) else None

    def build_id(self) -> str:
        """The build-id in hexadecimal, empty when the file has none."""
        section = self.section(".note.gnu.build-id")
        note = b"" if section is None else self.contents(section)
        if len(note) < 16:
            return ""
        name_size, size, kind = struct.unpack_from("<III", note)
        if kind != NT_GNU_BUILD_ID or note[12 : 12 + name_size] != b"GNU\0":
            return ""
        return note[12 + name_size : 12 + name_size + size].hex()

    def call_frames(self) -> list[Any]:
        """pyelftools' entries of `.eh_frame`; none when there is no such section."""
        information = self.debug_information()
        return list(information.EH_CFI_entries()) if information.has_EH_CFI() else []

    def debug_information(self) -> Any:
        """pyelftools' view of the DWARF sections."""
        from elftools.elf.elffile import ELFFile

        return ELFFile(self._stream).get_dwarf_info(relocate_dwarf_sections=False)

    def mini_debug_info(self) -> ElfImage | None:
        """The small ELF file inside `.gnu_debugdata`: symbols of the functions that `.dynsym` leaves out.

        Format: "MiniDebugInfo" in the manual of GDB, an ELF file in an xz stream.
        """
        section = self.section(".gnu_debugdata")
        if section is None:
            return None
        try:
            unpacked = lzma.LZMADecompressor().decompress(self.contents(section), UNPACKED_LIMIT)
        except lzma.LZMAError:
            return None
        return ElfImage(io.BytesIO(unpacked))

    def code_ranges(self) -> tuple[Uint64s, Uint64s]:
        """Virtual addresses [start, end) that hold instructions, ascending (uint64).

        Executable sections; executable segments in a file without section headers.
        """
        ranges = [(s.address, s.address + s.size) for s in self.sections if s.executable and s.size]
        if not ranges:
            ranges = [(s.address, s.address + s.file_size) for s in self.segments if s.executable]
        bounds = np.array(sorted(ranges), np.uint64).reshape(-1, 2)
        return bounds[:, 0].copy(), bounds[:, 1].copy()


def virtual_addresses(segments: Sequence[Segment], offsets: Uint64s) -> tuple[Uint64s, npt.NDArray[np.bool_]]:
    """The virtual addresses that file offsets are mapped at (uint64), and whether they are (bool).

    A byte may be mapped twice, as code and as data, where segments share a
    page: executable segments come first. Bytes that no segment claims but
    that are mapped with one, since mappings are whole pages, get the
    address they have there; all others keep their offset.
    """
    out = offsets.copy()
    mapped = np.zeros(len(offsets), bool)
    for page in (1, mmap.PAGESIZE):
        for segment in sorted(segments, key=lambda s: not s.executable):
            first = segment.offset // page * page
            last = -(-(segment.offset + segment.file_size) // page) * page
            found = ~mapped & (offsets >= first) & (offsets < last)
            # Modulo 2**64, for a segment whose address is below its offset.
            out[found] += np.uint64((segment.address - segment.offset) % (1 << 64))
            mapped |= found
    return out, mapped


def records(data: bytes, layout: np.dtype[Any]) -> npt.NDArray[Any]:
    """`data` as an array of records, without a last one that is cut short."""
    return np.frombuffer(data, layout, count=len(data) // layout.itemsize)
