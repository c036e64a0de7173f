"""Where the sockets of a user's runs are."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def directory() -> Path:
    """Where a user's sockets are: $XDG_RUNTIME_DIR/livepro, or livepro-UID where temporary files are."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "livepro"
    return Path(tempfile.gettempdir()) / f"livepro-{os.getuid()}"


def private_directory() -> Path:
    """`directory`, made if need be. Raises OSError unless it is the user's own and nobody else's."""
    path = directory()
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{path} is not a directory that only you can enter")
    return path
