"""Jitdump files: what a JIT compiler says of its code in records, for `perf inject`.

Format: tools/perf/Documentation/jitdump-specification.txt of Linux. A compiler maps the file's
first page executable, as a sign for perf; by that mapping it is found.
"""

from __future__ import annotations

import struct

from livepro.names.perfmap import GrowingFile, NamedCode

_MAGIC = 0x4A695444
_HEADER = 40  # magic, version, total_size, elf_mach, pad, pid: u32; timestamp, flags: u64
_RECORD = 16  # id, total_size: u32; timestamp: u64
_LOAD, _MOVE = 0, 1
_LOADED = 40  # pid, tid: u32; vma, code_addr, code_size, code_index: u64
_MOVED = 48  # pid, tid: u32; vma, old_code_addr, new_code_addr, code_size, code_index: u64


class JitDump:
    """A jitdump file that grows."""

    def __init__(self, file: GrowingFile) -> None:
        self._file = file
        self._begin()

    def _begin(self) -> None:
        self._rest = b""
        self._order = ""
        self._names: dict[int, str] = {}

    def news(self) -> list[NamedCode]:
        """What has been added since the last time, in the order of the file."""
        anew, data = self._file.more()
        if anew:
            self._begin()
        if not data:
            return []
        self._rest += data
        if not self._order and not self._header():
            return []
        out = []
        at = 0
        while at + _RECORD <= len(self._rest):
            kind, size = struct.unpack_from(f"{self._order}II", self._rest, at)
            if size < _RECORD:  # damaged: nothing behind it can be found
                at = len(self._rest)
                break
            if at + size > len(self._rest):
                break
            code = self._record(kind, self._rest[at + _RECORD : at + size])
            if code is not None:
                out.append(code)
            at += size
        self._rest = self._rest[at:]
        return out

    def _header(self) -> bool:
        """Read the header once it is there: whether records may be read."""
        if len(self._rest) < _HEADER:
            return False
        for order in "<>":
            magic, _, size = struct.unpack_from(f"{order}III", self._rest)
            if magic == _MAGIC:
                if len(self._rest) < size:
                    return False
                self._order, self._rest = order, self._rest[size:]
                return True
        self._rest = b""
        return False

    def _record(self, kind: int, body: bytes) -> NamedCode | None:
        """The code that a record tells of."""
        if kind == _LOAD and len(body) > _LOADED:
            _, address, size, index = struct.unpack_from(f"{self._order}QQQQ", body, 8)
            name = body[_LOADED : body.find(b"\0", _LOADED)].decode(errors="backslashreplace")
            self._names[index] = name
        elif kind == _MOVE and len(body) >= _MOVED:
            _, _, address, size, index = struct.unpack_from(f"{self._order}QQQQQ", body, 8)
            name = self._names.get(index, "")
        else:
            return None
        return NamedCode(address, address + size, name) if size and name else None
