"""`docs/architecture.md` tells of what is there: its paths and names are those of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PATHS = sorted(set(re.findall(r"[\w/]+\.py\b", PAGE)))
FOLDERS = sorted(set(re.findall(r"`([\w/]+/)`", PAGE)))
NAMES = sorted(set(re.findall(r"\b[A-Z][a-z]+[A-Z]\w*(?:\.\w+)?|\b[A-Z][a-z]+\.[a-z_]+\b(?!\.py)", PAGE)))
TRANSLATE = ROOT / "livepro/engines/translate"
BASES = (ROOT / "livepro", TRANSLATE, TRANSLATE / "translator", ROOT / "livepro/engines", ROOT)


def defined() -> set[str]:
    """All classes, and their methods and attributes as CLASS.NAME."""
    names = set()
    for path in (ROOT / "livepro").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names.add(node.name)
                for part in ast.walk(node):
                    if isinstance(part, ast.FunctionDef):
                        names.add(f"{node.name}.{part.name}")
                    elif isinstance(part, ast.Attribute):
                        names.add(f"{node.name}.{part.attr}")
                    elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                        names.add(f"{node.name}.{part.target.id}")
    return names


def test_there_is_something_to_look_at() -> None:
    assert len(PATHS) > 30
    assert len(NAMES) > 50
    assert "threads/" in FOLDERS


@pytest.mark.parametrize("path", [*PATHS, *FOLDERS])
def test_its_paths_exist(path: str) -> None:
    assert any((base / path).exists() for base in BASES)


def test_its_names_exist() -> None:
    there = defined()
    assert [name for name in NAMES if name not in there] == []


def test_each_part_is_told_of_where_it_is() -> None:
    """A class named beside a file is defined in that file."""
    for name, path in re.findall(r"`(\w+)(?:\.\w+)?` \(`([\w/]+\.py)`\)", PAGE):
        file = next(base / path for base in BASES if (base / path).exists())
        assert f"class {name}" in file.read_text() or f"def {name}" in file.read_text(), (name, path)
