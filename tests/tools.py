"""Programs that some tests need and not every machine has."""

from __future__ import annotations

import os
import shutil

import pytest


def needed(program: str, package: str, *, in_ci: bool = True) -> str:
    """The path of a program; skips the test where it is missing, naming the Debian package. In CI it must
    be there, unless `in_ci` is False."""
    path = shutil.which(program)
    if path is not None:
        return path
    reason = f"{program} is not installed (Debian package {package})"
    if in_ci and os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
