"""What the README and the pages in docs/ show is typed into a shell, one command after another: each has the
status and begins its output as the page says, figures aside."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from examples import scenes
from examples.scenes import REPOSITORY, Substitutes

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Scene = Callable[[Path], AbstractContextManager[Substitutes]]


def examples(page: Path) -> list[tuple[str, list[str]]]:
    """(command, lines that it is said to print, as far as the page has them) in order."""
    text = "".join(CONSOLE.findall(page.read_text())).replace("\\\n", " ")
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
    return [(command, [line for line in shown.splitlines() if line.strip()]) for command, shown in found]


def shape(line: str) -> str:
    """`line` without figures and spacing."""
    return " ".join(re.sub(r"[-+]?\d[\d,.]*", "N", line).split())


def typed(page: Path, scene: Scene, directory: Path) -> None:
    scenes.files(directory)
    with scene(directory) as substitutes:
        status = 0
        shown = examples(page)
        for number, (command, expected) in enumerate(shown):
            if command == "echo $?":
                assert expected == [str(status)]
                continue
            for old, new in {**substitutes, ".venv/bin/": ""}.items():
                command = command.replace(old, new)
            done = scenes.shell(command, directory)
            status = done.returncode
            told = number + 1 < len(shown) and shown[number + 1][0] == "echo $?"
            printed = (done.stdout + done.stderr).splitlines()
            shapes = [shape(line) for line in printed]
            refused = any(line.startswith("livepro: ") and shape(line) in shapes for line in expected)
            assert status == 0 or told or refused, f"{command}: {printed}"
            first = expected[0] if expected and expected[0] != "..." else ""
            assert not first or shape(first) in shapes, f"{command}: {printed}"


def test_every_page_with_examples_is_typed() -> None:
    pages = {page.name for page in PAGES if examples(page)}
    assert pages == set(scenes.QUICK) | set(scenes.SLOW) | scenes.ELSEWHERE


@pytest.mark.parametrize("name", scenes.QUICK)
def test_what_a_page_types_works(name: str, tmp_path: Path) -> None:
    typed(REPOSITORY / "docs" / name, scenes.QUICK[name], tmp_path)


SECONDS = {"README.md": 290, "blocks.md": 270, "simpoint.md": 120, "trace.md": 50}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long(seconds=SECONDS.get(name, 30))) for name in scenes.SLOW],
)
def test_what_a_longer_page_types_works(name: str, tmp_path: Path) -> None:
    page = next(page for page in PAGES if page.name == name)
    typed(page, scenes.SLOW[name], tmp_path)
