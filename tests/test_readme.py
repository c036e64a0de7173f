"""What the README says to type works."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TEXT = (REPOSITORY / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The code blocks marked with `language`, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_examples_in_python_run() -> None:
    script = "".join(blocks("python"))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"\d{5,} instructions, exit status 0\ntrue \d{5,} \{'\w+': \d+", done.stdout)
    assert "wc" in done.stdout


def test_ci_types_the_same_commands() -> None:
    commands = [line.partition("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 4
    script = (REPOSITORY / ".ci/run").read_text()
    for part in " && ".join(commands).split(" && "):
        assert re.search(rf"^{re.escape(part)}$", script.replace(" --quiet", ""), re.MULTILINE), part


def test_files_that_it_names_exist() -> None:
    named = re.findall(r"\]\(([\w./]+)\)|`((?:livepro|benchmarks|tests|fixtures)/[\w./]+\.\w+)`", TEXT)
    assert named
    assert [name for pair in named for name in pair if name and not (REPOSITORY / name).exists()] == []
