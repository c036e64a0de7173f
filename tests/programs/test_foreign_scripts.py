"""Shell scripts that put other people's programs through their paces, each process of them measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools import needed

SCRIPTS = Path(__file__).parent / "scripts"
PACKAGES = {"git": ("git", "git"), "sqlite": ("sqlite3", "sqlite3")}
"""The program that a script needs, and the Debian package that has it."""


def carried_out(command: list[str], name: str, directory: Path) -> tuple[int, list[str]]:
    """A script's exit status and all that it prints."""
    directory.mkdir()
    done = subprocess.run(
        [*command, "sh", str(SCRIPTS / f"{name}.sh")],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("name", PACKAGES)
def test_prints_what_it_prints_natively(name: str, tmp_path: Path) -> None:
    """Hashes of all objects, contents of all tables, messages and the order in which they come."""
    needed(*PACKAGES[name])
    natively = carried_out([], name, tmp_path / "natively")
    assert natively[0] == 0, "\n".join(natively[1])
    livepro = [sys.executable, "-m", "livepro", "run", "-q", "--engine", "translate", "--"]
    assert carried_out(livepro, name, tmp_path / "measured") == natively
