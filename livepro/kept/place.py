"""The directory in which livepro keeps things from run to run."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def default_directory() -> Path:
    """Where things are kept: LIVEPRO_CACHE_DIR, else `livepro` in the XDG cache directory."""
    own = os.environ.get("LIVEPRO_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "livepro"


def only_ours(status: os.stat_result) -> bool:
    """Whether a file or directory is the user's own and nobody else's to write."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
