"""livepro's own modules are compiled once, even where Python is told to write nothing beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "livepro"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """livepro as in a fresh checkout: nothing of it has been compiled."""
    shutil.copytree(ROOT, tmp_path / "checkout" / "livepro", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "checkout"


def start(checkout: Path, kept: Path, *arguments: str, **more: str) -> str:
    """Standard output of `livepro cache` of that checkout (or another command), run with such variables."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(checkout),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LIVEPRO_CACHE_DIR": str(kept),
        **more,
    }
    command = [sys.executable, *(arguments or ("-m", "livepro", "cache"))]
    return subprocess.run(
        command, env=environment, cwd=checkout, check=True, timeout=60, capture_output=True, text=True
    ).stdout


def compiled(directory: Path) -> dict[str, int]:
    """The modules that were compiled there, by name, and when (nanoseconds)."""
    return {path.name.partition(".")[0]: path.stat().st_mtime_ns for path in directory.rglob("*.pyc")}


def test_they_are_kept_with_all_else_and_only_they(checkout: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert start(checkout, kept).startswith(f"{kept}: ")
    first = compiled(kept)
    assert {"main", "cache", "artifacts"} <= set(first)
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not {path.stem for path in kept.rglob("*.pyc") if str(checkout) not in str(path)}
    assert compiled(checkout) == {}
    start(checkout, kept)
    assert compiled(kept) == first  # none of them once more
    start(checkout, kept, "-m", "livepro", "cache", "--clear")
    assert list(kept.iterdir()) == []


def test_a_changed_module_is_compiled_anew(checkout: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    start(checkout, kept)
    with (checkout / "livepro" / "errors.py").open("a") as file:
        file.write("\nprint('changed')\n")
    assert start(checkout, kept).startswith("changed\n")


def test_python_is_as_it_was_told(checkout: Path, tmp_path: Path) -> None:
    (checkout / "other.py").write_text("")
    text = "from livepro import bytecode; bytecode.keep(); import livepro.errors, other, sys; "
    text += "print(sys.dont_write_bytecode, sys.pycache_prefix)"
    assert start(checkout, tmp_path / "kept", "-c", text) == "True None\n"
    assert set(compiled(tmp_path)) == {"errors"}


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_nothing_is_taken_from_where_others_may_write(checkout: Path, tmp_path: Path, mode: int) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    kept.chmod(mode)
    assert start(checkout, kept).startswith(f"{kept}: 0 files")
    assert compiled(kept) == {}


def test_what_is_compiled_already_is_taken_from_there(checkout: Path, tmp_path: Path) -> None:
    start(checkout, tmp_path / "kept", PYTHONDONTWRITEBYTECODE="")
    beside = compiled(checkout)
    assert beside
    start(checkout, tmp_path / "kept")
    assert compiled(checkout) == beside
    assert not (tmp_path / "kept").exists()
