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


DAYS = 6
"""In CI a test that takes long runs each so many days, and so does each on the emulated machine: all of them
together take three hours on a slow machine with two processors."""


def turn(parts: int) -> int:
    """Which of so many parts a test that takes long runs today, from 0 on: other ones than the last time."""
    return datetime.date.today().toordinal() // DAYS % parts


def todays(days: int = DAYS) -> tuple[int, int]:
    """Which part of the tests that take long runs in CI today: a number from 0 on, of how many."""
    return datetime.date.today().toordinal() % days, days
