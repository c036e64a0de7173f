"""The guest's Python packages: AArch64 wheels, unpacked on the host."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from .image import cache, keep

_PYTHON = "3.11"  # the guest's
_EXTRA = ("pytest", "numba>=0.60", "llvmlite>=0.43")
_NAMED = "numba"
"""Of this there is the version, and no more: kernels have been compiled on the host (`kernels`), and what the
guest would compile itself takes minutes."""
_PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_28_aarch64", "manylinux_2_34_aarch64")


def requirements() -> tuple[str, ...]:
    """What livepro needs on AArch64, and its tests."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    wanted = tomllib.loads(project.read_text())["project"]["dependencies"]
    here = [text for text in wanted if not re.search(r";\s*platform_machine\s*==\s*'x86_64'", text)]
    return (*(text.partition(";")[0].strip() for text in here), *_EXTRA)


def packages() -> Path:
    """The directory with the packages: from the cache, or downloaded and unpacked."""
    wanted = requirements()
    key = hashlib.sha256("\0".join((*wanted, _NAMED, *_PLATFORMS, _PYTHON)).encode()).hexdigest()[:16]
    kept = cache() / f"packages-{key}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="building.") as directory:
            made = Path(directory) / "packages"
            print("Downloading the guest's Python packages ...", flush=True)
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made)]
            only = ["--only-binary=:all:", f"--python-version={_PYTHON}", "--implementation=cp"]
            platforms = [f"--platform={name}" for name in _PLATFORMS]
            subprocess.run([*install, *only, *platforms, *wanted], check=True)
            shutil.rmtree(made / _NAMED)
            keep(made, kept)
    return kept
