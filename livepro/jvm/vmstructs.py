"""The layout of HotSpot's data structures, as libjvm itself describes it.

libjvm exports tables of its types, fields and constants for the serviceability agent
(src/hotspot/share/runtime/vmStructs.hpp: VMStructEntry, VMTypeEntry): the names are the
same from version to version where offsets are not.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from livepro.linux.elf import SYMBOL, ElfImage

LIBRARY = "libjvm.so"

Read = Callable[[int, int], bytes]
"""Up to so many bytes of the process's memory from an address, fewer where a mapping ends."""

_PREFIX = "gHotSpotVM"
_LONGEST = 128  # bytes of a type's or field's name


class NotReadable(Exception):
    """Memory that was to be read is not there, or holds what it cannot hold."""


class Values:
    """Numbers and texts in a process's memory. Raises NotReadable where there is none."""

    def __init__(self, read: Read) -> None:
        self.bytes = read

    def exactly(self, address: int, size: int) -> bytes:
        """So many bytes from an address."""
        data = self.bytes(address, size) if address else b""
        if len(data) != size:
            raise NotReadable(hex(address))
        return data

    def unsigned(self, address: int, size: int = 8) -> int:
        """An unsigned number of `size` bytes."""
        return int.from_bytes(self.exactly(address, size), "little")

    def signed(self, address: int, size: int = 4) -> int:
        """A signed number of `size` bytes."""
        return int.from_bytes(self.exactly(address, size), "little", signed=True)

    def text(self, address: int, longest: int = _LONGEST) -> str:
        """The text that ends with a zero byte; empty for a null pointer."""
        if not address:
            return ""
        return self.bytes(address, longest).partition(b"\0")[0].decode("utf-8", "replace")


class VmStructs:
    """Offsets of fields, addresses of static fields, sizes of types, of one process's libjvm.

    Raises NotReadable when the tables are not (or not yet) there, KeyError where one
    does not have what is asked for.
    """

    def __init__(self, path: str, base: int, read: Read) -> None:
        self.values = values = Values(read)
        tables = {name: values.unsigned(base + at) for name, at in _tables(path).items()}
        self._fields: dict[tuple[str, str], tuple[int, int, str]] = {}
        self._sizes: dict[str, int] = {}
        try:
            at = {name: tables[f"StructEntry{name}Offset"] for name in _STRUCT_COLUMNS}
            for row in self._rows(tables["Structs"], tables["StructEntryArrayStride"], at["TypeName"]):
                word = {name: struct.unpack_from("<Q", row, where)[0] for name, where in at.items()}
                key = values.text(word["TypeName"]), values.text(word["FieldName"])
                self._fields[key] = word["Offset"], word["Address"], values.text(word["TypeString"])
            names, sizes = tables["TypeEntryTypeNameOffset"], tables["TypeEntrySizeOffset"]
            for row in self._rows(tables["Types"], tables["TypeEntryArrayStride"], names):
                name, size = (struct.unpack_from("<Q", row, where)[0] for where in (names, sizes))
                self._sizes[values.text(name)] = size
        except struct.error:
            raise NotReadable("the tables of libjvm") from None

    def _rows(self, table: int, stride: int, name_at: int) -> list[bytes]:
        """The rows of a table, up to the one without a name."""
        rows: list[bytes] = []
        if not 0 < stride < 1024:
            raise NotReadable("the tables of libjvm are not set up yet")
        while True:
            row = self.values.exactly(table, stride)
            if not int.from_bytes(row[name_at : name_at + 8], "little"):
                return rows
            rows.append(row)
            table += stride

    def offset(self, *places: str) -> int:
        """The offset of the first field ("Type.field") of those named that there is: they move
        from class to class between versions."""
        return self._field(places)[0]

    def type_of(self, *places: str) -> str:
        """The declared type of that field."""
        return self._field(places)[2]

    def static(self, place: str) -> int:
        """The address of a static field."""
        return self._field((place,))[1]

    def size(self, name: str) -> int:
        """The size of a type in bytes."""
        return self._sizes[name]

    def _field(self, places: tuple[str, ...]) -> tuple[int, int, str]:
        for place in places:
            kind, _, name = place.rpartition(".")
            found = self._fields.get((kind, name))
            if found is not None:
                return found
        raise KeyError(" or ".join(places))


_STRUCT_COLUMNS = ("TypeName", "FieldName", "TypeString", "Offset", "Address")


@lru_cache(maxsize=8)
def _tables(path: str) -> dict[str, int]:
    """Where libjvm has the variables that describe its tables, from its load address."""
    try:
        with Path(path).open("rb") as stream:
            image = ElfImage(stream)
            symbols = image.symbols(".dynsym")
            lowest = min(segment.address & -mmap.PAGESIZE for segment in image.segments)
    except Exception:  # whatever pyelftools makes of a file that is damaged, or gone
        raise NotReadable(path) from None
    if symbols is None:
        raise NotReadable(path)
    assert symbols.entries.dtype == SYMBOL
    found = {}
    for entry in symbols.entries:
        name = symbols.name(int(entry["name"]))
        if name.startswith(_PREFIX):
            found[name.removeprefix(_PREFIX)] = int(entry["value"]) - lowest
    if "Structs" not in found or "Types" not in found:
        raise NotReadable(path)
    return found
