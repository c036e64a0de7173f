"""Where livepro keeps from run to run what it found out about files: arrays, by key.

Some of it is code that will run inside other processes: the directory and its
files must be the user's own and nobody else's to write.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import mmap
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.kept.place import only_ours

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]

_MAGIC = b"livepro arrays 2\n"
_BEGIN = len(_MAGIC) + 9  # behind the checksum, which is of all that follows
_ALIGN = 64
SIZE_LIMIT = 1 << 30
"""Bytes that the kept files may have together; the longest unused go first."""


def contents(directory: Path) -> list[tuple[float, int, str]]:
    """What is kept: when each file was last used (seconds since the epoch), its bytes and path."""
    found = []
    for folder, _, names in os.walk(directory):
        for path in (os.path.join(folder, name) for name in names):
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                found.append((status.st_mtime, status.st_size, path))
    return found


def clear(directory: Path) -> tuple[int, int]:
    """Remove all that is kept; returns how many files and bytes that was. Raises OSError."""
    found = contents(directory)
    for _, _, path in found:
        os.unlink(path)
    for folder, _, _ in os.walk(directory, topdown=False):
        if folder != str(directory):
            os.rmdir(folder)
    return len(found), sum(size for _, size, _ in found)


@functools.cache
def _digest(*places: Path) -> bytes:
    """What tells a version of livepro's own code in some files and folders from others."""
    digest = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(path.read_bytes())
    return digest.digest()


class ArtifactStore:
    """What is kept under `directory` of one `kind`, made by livepro's own code in `makers`
    (files and folders): what another version made is not used.

    Reading and writing never fail loudly: what is not kept is found out anew.
    """

    def __init__(self, directory: Path, kind: str, *makers: Path) -> None:
        self._directory = directory
        self._kind = kind
        self._makers = makers

    def key(self, *identity: object) -> str:
        """The name for what `identity` tells from all else."""
        text = repr((self._kind, identity)).encode()
        return hashlib.sha256(_digest(*self._makers) + text).hexdigest()[:40]

    def read(self, key: str) -> Arrays | None:
        """What is kept under a key, None if there is nothing that can be trusted."""
        path = self._directory / key
        try:
            if not only_ours(self._directory.stat()):
                return None  # somebody else could give a file another name
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not only_ours(status):
                return None
            data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
            os.utime(descriptor)  # used just now
        except (OSError, ValueError):
            return None
        finally:
            os.close(descriptor)
        return _parse(data, key)

    def write(self, key: str, arrays: Arrays) -> None:
        """Keep some arrays. Nothing happens where it cannot be written."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room()
            handle, name = tempfile.mkstemp(dir=self._directory, prefix=".")
        except OSError:
            return
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(_serialise(arrays, key))
            os.replace(name, self._directory / key)
        except OSError:  # a full disk
            with contextlib.suppress(OSError):
                os.unlink(name)

    def _make_room(self) -> None:
        """Remove the longest unused files if there are too many bytes."""
        found = contents(self._directory)
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= SIZE_LIMIT:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= size


def _serialise(arrays: Arrays, key: str) -> list[bytes]:
    """Magic, checksum, and key and index on lines of their own, then the arrays, each aligned."""
    index: list[tuple[str, str, int, int]] = []
    body: list[bytes] = []
    at = 0
    for name, array in arrays.items():
        text = array.tobytes()
        index.append((name, array.dtype.str, len(array), at))
        padding = -len(text) % _ALIGN
        body += [text, bytes(padding)]
        at += len(text) + padding
    head = json.dumps([key, index]).encode() + b"\n"
    head += b" " * (-(_BEGIN + len(head)) % _ALIGN)
    check = zlib.crc32(head)
    for part in body:
        check = zlib.crc32(part, check)
    return [_MAGIC + b"%08x\n" % check + head, *body]


def _parse(data: Any, key: str) -> Arrays | None:
    """The arrays in the bytes of a file kept under `key`, None if they are not what was written under it."""
    if data[: len(_MAGIC)] != _MAGIC:
        return None
    if data[len(_MAGIC) : _BEGIN] != b"%08x\n" % zlib.crc32(memoryview(data)[_BEGIN:]):
        return None
    end = data.find(b"\n", _BEGIN) + 1
    start = end + -end % _ALIGN
    found, index = json.loads(data[_BEGIN:end])
    if found != key:
        return None
    return {name: np.frombuffer(data, kind, count, start + offset) for name, kind, count, offset in index}
