"""Files of debug information that are kept apart, found by build-id.

They are looked for below `/usr/lib/debug` (GDB manual, "Separate Debug Files") and, only if the user has
set DEBUGINFOD_URLS, asked for at these servers, as elfutils' client does (debuginfod-find(1)): what they
answer is kept in that client's own cache.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

DEBUG_ROOT = Path("/usr/lib/debug")
TIMEOUT = 90.0
"""Seconds to wait for a server (DEBUGINFOD_TIMEOUT's default)."""


_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_NOTE = ".note.gnu.build-id"


class DebugFiles:
    """Finds files of debug information below `root`, or at the servers that `environment` names. A server
    that cannot be reached is not asked again."""

    def __init__(self, root: Path = DEBUG_ROOT, environment: Mapping[str, str] | None = None) -> None:
        known = os.environ if environment is None else environment
        self.root = root
        self.urls = tuple(url.rstrip("/") for url in known.get("DEBUGINFOD_URLS", "").split())
        home = Path(known.get("XDG_CACHE_HOME") or Path(known.get("HOME") or "/") / ".cache")
        self._cache = Path(known.get("DEBUGINFOD_CACHE_PATH") or home / "debuginfod_client")
        try:
            self._timeout = float(known.get("DEBUGINFOD_TIMEOUT") or TIMEOUT)
        except ValueError:
            self._timeout = TIMEOUT
        self._silent: set[str] = set()

    def place(self, build_id: str) -> Path:
        """Where the file of that build-id (hexadecimal) is, whether it exists or not."""
        local = self.root / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        if not build_id or not self.urls or local.is_file():
            return local
        kept = self._cache / build_id / "debuginfo"
        if not kept.is_file() and not self._fetch(build_id, kept):
            return local
        return kept

    def described(self, module: str) -> str:
        """The file with the debug information of a mapped file (its path): itself, or one that is kept apart;
        empty where there is none. Those of the system's libraries that are kept apart are left alone: they
        take a second to read, and are in the way of nobody's own code."""
        found = _sections(module)
        if ".debug_info" in found:
            return module
        if _NOTE not in found or module.startswith(("/lib/", "/usr/lib/")):
            return ""
        with open(module, "rb") as stream:
            stream.seek(found[_NOTE][0])
            note = stream.read(found[_NOTE][1])
        build_id = note[16:].hex()  # behind the note's header and its name, GNU
        path = self.place(build_id)
        return str(path) if build_id and path.is_file() else ""

    def _fetch(self, build_id: str, into: Path) -> bool:
        """Ask the servers, one after the other; whether one had the file."""
        from urllib.error import HTTPError
        from urllib.request import urlopen  # costs 60 ms: only who asks for it pays

        for url in self.urls:
            if url in self._silent:
                continue
            try:
                with urlopen(f"{url}/buildid/{build_id}/debuginfo", timeout=self._timeout) as answer:
                    data = answer.read()
            except HTTPError:  # it has not got it
                continue
            except (OSError, ValueError):
                self._silent.add(url)
                continue
            with suppress(OSError):
                into.parent.mkdir(parents=True, exist_ok=True)
                fresh = into.with_name(f"{into.name}.{os.getpid()}")
                fresh.write_bytes(data)
                fresh.replace(into)
                return True
        return False


def _sections(path: str) -> dict[str, tuple[int, int]]:
    """The sections of a 64-bit little-endian ELF file: name -> (offset, size). Read by hand, from the layouts
    of the System V ABI: every summary asks, and pyelftools takes 40 ms to load."""
    with open(path, "rb") as stream:
        header = stream.read(64)
        if header[:6] != b"\x7fELF\x02\x01" or len(header) < 64:
            return {}
        (table,) = struct.unpack_from("<Q", header, 40)  # e_shoff
        size, count, names = struct.unpack_from("<HHH", header, 58)  # e_shentsize, e_shnum, e_shstrndx
        if size != _SECTION.size or names >= count:
            return {}
        stream.seek(table)
        data = stream.read(size * count)
        rows = list(_SECTION.iter_unpack(data[: len(data) // size * size]))
        if names >= len(rows):
            return {}
        stream.seek(rows[names][4])
        strings = stream.read(rows[names][5])
    return {
        strings[name : strings.find(b"\0", name)].decode(errors="replace"): (offset, length)
        for name, _, _, _, offset, length, _, _, _, _ in rows
    }
