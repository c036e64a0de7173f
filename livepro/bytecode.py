"""livepro's own modules, compiled, where Python may not keep them beside their sources.

PYTHONDONTWRITEBYTECODE, usual in containers, spares the sources `__pycache__` directories. pip compiles
what it installs all the same, but not what stays in a checkout (`pip install -e`): livepro would be compiled
at every start, which takes as long as loading all the rest. It is then kept with what else is
kept from run to run.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from types import CodeType

DIRECTORY = "bytecode"
"""Within that in which livepro keeps things."""

_PACKAGE = os.path.dirname(__file__)


def keep() -> None:
    """Keep livepro's modules that are imported from now on if Python would not. What cannot be kept
    is compiled anew, as Python does."""
    if not sys.dont_write_bytecode or sys.pycache_prefix is not None or _compiled():
        return
    from livepro.kept.place import default_directory, only_ours

    directory = default_directory() / DIRECTORY
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        if not (only_ours(directory.parent.stat()) and only_ours(directory.lstat())):
            return
    except OSError:
        return
    prefix = str(directory)

    class Loader(SourceFileLoader):
        """Looks for compiled modules in that directory, and keeps them there."""

        def get_code(self, fullname: str) -> CodeType | None:
            sys.pycache_prefix, sys.dont_write_bytecode = prefix, False
            try:
                return super().get_code(fullname)
            finally:
                sys.pycache_prefix, sys.dont_write_bytecode = None, True

    def finder(path: str) -> FileFinder:
        if path != _PACKAGE and not path.startswith(_PACKAGE + os.sep):
            raise ImportError
        return FileFinder(path, (Loader, [".py"]))

    sys.path_hooks.insert(0, finder)
    for path in [path for path in sys.path_importer_cache if path.startswith(_PACKAGE)]:
        del sys.path_importer_cache[path]


def _compiled() -> bool:
    """Whether this module is compiled beside its source, as pip does, and so all others."""
    return __spec__ is not None and __spec__.cached is not None and os.path.exists(__spec__.cached)
