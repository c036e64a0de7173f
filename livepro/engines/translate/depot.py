"""Where translations are kept between runs: one file for each module and kind of counting.

What is kept is code that will run inside other processes: the directory and its
files must be the user's own and nobody else's to write.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import mmap
import os
import stat
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from livepro.engines.translate.unit import Array, Unit

_MAGIC = b"livepro translation 1\n"
_ALIGN = 64
SIZE_LIMIT = 1 << 30
"""Bytes that the kept files may have together; the longest unused go first."""


def default_directory() -> Path:
    """Where translations are kept: LIVEPRO_CACHE_DIR, else `livepro` in the XDG cache directory."""
    own = os.environ.get("LIVEPRO_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "livepro"


@functools.cache
def _translator() -> bytes:
    """What the translations depend on besides the program: livepro's own code and its decoder."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted([*here.rglob("*.py")]):
        digest.update(path.read_bytes())
    return digest.digest()


class Depot:
    """The kept translations under `directory`, for one way to emit (`kind`).

    Reading and writing never fail loudly: without a kept translation code is translated anew.
    """

    def __init__(self, directory: Path, kind: str) -> None:
        self._directory = directory
        self._kind = kind
        self._known: dict[str, int] = {}

    def key(self, *identity: object) -> str:
        """The name for a module that `identity` tells from all others."""
        text = repr((self._kind, identity)).encode()
        return hashlib.sha256(_translator() + text).hexdigest()[:40]

    def read(self, key: str) -> Unit | None:
        """The unit kept under a key, None if there is none that can be trusted."""
        path = self._directory / key
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
            os.utime(descriptor)  # used just now
        except (OSError, ValueError):
            return None
        finally:
            os.close(descriptor)
        unit = _parse(data)
        if unit is not None:
            self._known[key] = len(unit)
        return unit

    def wants(self, key: str, blocks: int) -> bool:
        """Whether a unit of so many blocks is worth writing over what is kept."""
        kept = self._known.get(key, 0)
        return blocks - kept > max(16, kept // 64)

    def write(self, key: str, unit: Unit) -> None:
        """Keep a unit. Nothing happens where it cannot be written."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room()
            handle, name = tempfile.mkstemp(dir=self._directory, prefix=".")
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(_serialise(unit))
            os.replace(name, self._directory / key)
            self._known[key] = len(unit)
        except OSError:  # a full disk
            with contextlib.suppress(OSError):
                os.unlink(name)

    def _make_room(self) -> None:
        """Remove the longest unused files if there are too many bytes."""
        found = []
        for entry in os.scandir(self._directory):
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= SIZE_LIMIT:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size


def _serialise(unit: Unit) -> list[bytes]:
    """Magic, checksum and index on lines of their own, then the arrays, each aligned."""
    index: list[tuple[str, str, int, int]] = []
    body: list[bytes] = []
    at = 0
    for name, array in unit.arrays().items():
        text = array.tobytes()
        index.append((name, array.dtype.str, len(array), at))
        padding = -len(text) % _ALIGN
        body += [text, bytes(padding)]
        at += len(text) + padding
    head = json.dumps(index).encode() + b"\n"
    check = zlib.crc32(head)
    for part in body:
        check = zlib.crc32(part, check)
    begin = _MAGIC + b"%08x\n" % check + head
    return [begin, b" " * (-len(begin) % _ALIGN), *body]


def _parse(data: Any) -> Unit | None:
    """The unit in a kept file's bytes, None if they are not what was written."""
    if data[: len(_MAGIC)] != _MAGIC:
        return None
    at = len(_MAGIC) + 9
    end = data.find(b"\n", at) + 1
    start = end + -end % _ALIGN
    view = memoryview(data)
    if zlib.crc32(view[start:], zlib.crc32(view[at:end])) != int(data[len(_MAGIC) : at], 16):
        return None
    arrays: dict[str, Array] = {
        name: np.frombuffer(data, kind, count, start + offset)
        for name, kind, count, offset in json.loads(data[at:end])
    }
    try:
        return Unit(**arrays)
    except TypeError:
        return None
