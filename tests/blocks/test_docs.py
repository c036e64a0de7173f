"""What the documentation types can be typed."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

from livepro.cli.blocks import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def test_commands_have_the_options_that_they_are_given() -> None:
    seen = set()
    for page in (ROOT / "docs" / "blocks.md", ROOT / "README.md"):
        text = page.read_text().replace("\\\n", " ")
        for command in re.findall(r"^\$ .*?livepro blocks (.*)$", text, re.MULTILINE):
            words = shlex.split(re.split(r" (?:\||>|2>|&&) ?", command)[0])
            name = words[0] if words[0] in COMMANDS else "file"
            seen.add(name)
            parser = importlib.import_module(f"livepro.cli.blocks.{name}").parser()
            parser.parse_args(words[1:] if name == words[0] else words)
    assert seen >= {"file", "run"}
