"""Small programs whose blocks are known, and the tools that make and judge them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

CROSS = "aarch64-linux-gnu-"


def tool(name: str, package: str) -> str:
    """The program `name`; the test is skipped without it (and fails in CI)."""
    found = shutil.which(name)
    if found is None:
        message = f"{name} is missing: install Debian's {package}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def cross_gcc() -> str:
    return tool(f"{CROSS}gcc", "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross")


def build(into: Path, source: str, *flags: str, compiler: str = "gcc", suffix: str = ".S") -> Path:
    """A program or library from source text."""
    path = into / f"source{suffix}"
    path.write_text(source)
    out = into / "built"
    subprocess.run([compiler, "-o", out, path, *flags], check=True)
    return out


FREESTANDING: Sequence[str] = ("-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none")
