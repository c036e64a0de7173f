"""Manual pages: what a package brings, shown by man(1) itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import needed

from livepro.cli.blocks import COMMANDS
from livepro.cli.main import SUBCOMMANDS, main

REPOSITORY = Path(__file__).resolve().parents[2]
NESTED = {*(f"blocks-{name}" for name in COMMANDS), "simpoint-run", "trace-info"}
NAMES = {"livepro", *(f"livepro-{name}" for name in {*SUBCOMMANDS, *NESTED})}


def show(manual: Path, name: str) -> str:
    """What man(1) prints of a page, its warnings included."""
    environment = {**os.environ, "MANPAGER": "cat", "MANWIDTH": "100", "LC_ALL": "C"}
    done = subprocess.run(
        [needed("man", "man-db"), "--warnings", "-M", str(manual), name],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_each_command_has_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["man", str(tmp_path)]) == 0
    assert f"{len(NAMES)} pages" in capsys.readouterr().out
    assert {path.stem for path in (tmp_path / "man1").iterdir()} == NAMES
    text = (tmp_path / "man1/livepro-gate.1").read_text()
    assert text.startswith('.TH LIVEPRO-GATE 1 "" "livepro ')
    assert "livepro\\-gate \\- fail where" in text
    assert "\n.nf\nexamples:\n  livepro gate \\-\\-save\\-baseline base.json \\-\\- ./prog\n" in text
    for name in sorted(NAMES):
        shown = show(tmp_path, name)
        assert "warning" not in shown.partition("\nNAME\n")[0], name
        assert re.search(rf"NAME\n {{7}}{name} +- ", shown)
    for name in SUBCOMMANDS:
        assert f"livepro-{name}(1)" in show(tmp_path, "livepro")


def test_a_wheel_brings_them(tmp_path: Path) -> None:
    """Built from the sources and installed as a stranger would, into an environment with nothing else."""
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(REPOSITORY / name, sources)
    shutil.copytree(REPOSITORY / "livepro", sources / "livepro", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", str(tmp_path), str(sources)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = tmp_path.glob("livepro-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    there = [*pip, "--python", str(tmp_path / "venv/bin/python")]
    subprocess.run([*there, "install", "--no-deps", "--no-index", str(wheel)], check=True, timeout=300)
    manual = tmp_path / "venv/share/man"
    assert {path.stem for path in (manual / "man1").iterdir()} == NAMES
    assert "--save-baseline" in show(manual, "livepro-gate")


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["man", str(tmp_path / "file")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_they_are_made_without_what_livepro_needs() -> None:
    """A package is built where there is only what pyproject.toml says that building needs."""
    missing = ("numpy", "capstone", "iced_x86", "elftools", "ptrace", "rich", "shtab", "pycxxfilt", "numba")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({missing})); from livepro.cli import man; man.pages()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=True, timeout=60)
