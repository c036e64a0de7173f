"""Completion scripts, tried in the shells themselves where these are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from livepro.cli.blocks import COMMANDS
from livepro.cli.completion import SHELLS, script
from livepro.cli.main import SUBCOMMANDS, main
from livepro.cli.whole import whole

SYNTAX = {"bash": "-n", "zsh": "-n", "fish": "--no-execute"}


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_have_every_command_and_the_shell_can_read_them(shell: str, tmp_path: Path) -> None:
    text = script(shell)
    assert [name for name in SUBCOMMANDS if name not in text] == []
    assert "save-baseline" in text
    if shutil.which(shell) is None:
        if "CI" in os.environ:
            pytest.fail(f"{shell} is missing")
        pytest.skip(f"needs Debian's package {shell}")
    (tmp_path / "script").write_text(text)
    done = subprocess.run(
        [shell, SYNTAX[shell], str(tmp_path / "script")], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script("bash"))

    def complete(*words: str) -> set[str]:
        listed = " ".join(f"'{word}'" for word in words)
        code = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _shtab_livepro; echo ${{COMPREPLY[@]}}"
        command = ["bash", "-c", f"source {tmp_path / 'script'}; {code}"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
        return set(done.stdout.split())

    assert complete("livepro", "ga") == {"gate"}
    assert complete("livepro", "gate", "--sa") == {"--save-baseline"}
    assert complete("livepro", "export", "--to", "spee") == {"speedscope"}
    assert complete("livepro", "blocks", "sa") == {"sample"}
    assert complete("livepro", "blocks", "sample", "--freq") == {"--frequency"}


def test_every_command_is_in_the_whole() -> None:
    _, commands = whole()
    named = [command.prog for command in commands]
    assert [name for name in named if name.count(" ") == 1] == [f"livepro {name}" for name in SUBCOMMANDS]
    assert [name for name in named if name.startswith("livepro blocks ")] == [
        f"livepro blocks {name}" for name in COMMANDS
    ]


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert "_shtab_livepro" in capsys.readouterr().out
    assert main(["completion", "tcsh"]) == 2
    assert "tcsh" in capsys.readouterr().err
