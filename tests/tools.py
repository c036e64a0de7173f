"""What tests share that run for long, or need programs that not every machine has."""

from __future__ import annotations

import datetime
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


def turn(parts: int) -> int:
    """Which of so many parts is today's, from 0 on: what takes too long for a day is spread over so many."""
    return datetime.date.today().toordinal() % parts
