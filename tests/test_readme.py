"""What the README and the pages in docs/ say to type works, and their links lead somewhere."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from livepro.cli.main import SUBCOMMANDS
from livepro.doctor.packages import TOOLS

REPOSITORY = Path(__file__).resolve().parent.parent
README = REPOSITORY / "README.md"
DOCS = sorted((REPOSITORY / "docs").glob("*.md"))
PAGES = [README, *DOCS]
CI = (REPOSITORY / ".ci/run").read_text()
EXITS = {"--help", "-h", "--version", "-V"}
"""Options that end the command where it is parsed."""


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of `page` marked with `language`, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def typed(page: Path) -> list[str]:
    """The shell commands that `page` shows with what they print, continued lines joined."""
    lines = "".join(blocks(page, "console")).replace("\\\n", " ").splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


def with_python() -> list[Path]:
    return [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", with_python(), ids=lambda page: page.name)
def test_the_examples_in_python_run(page: Path) -> None:
    script = "".join(blocks(page, "python"))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    if page.name == "python.md":
        assert re.match(r"\d{5,} instructions, exit status 0\ntrue \d{5,} \{'\w+': \d+", done.stdout)
        assert "wc" in done.stdout


def test_there_are_examples_in_python() -> None:
    assert {"python.md", "control.md"} <= {page.name for page in with_python()}


def test_ci_types_the_same_commands() -> None:
    commands = [
        line.partition("#")[0].strip()
        for page in PAGES
        for block in blocks(page, "sh")
        for line in block.splitlines()
    ]
    assert len(blocks(README, "sh")) == 3
    assert len(commands) >= 4
    for part in " && ".join(commands).split(" && "):
        assert re.search(rf"^{re.escape(part)}$", CI.replace(" --quiet", ""), re.MULTILINE), part


def test_the_readme_names_the_packages_that_ci_installs() -> None:
    match = re.search(r"^packages=\(\n(.*?)^\)$", CI, re.MULTILINE | re.DOTALL)
    assert match
    installed = [word for line in match[1].splitlines() for word in line.partition("#")[0].split()]
    listed = README.read_text().partition("\n## Tests\n")[2]
    assert re.findall(r"`([a-z0-9+.-]+)`[,.]", listed.partition("skipped):")[2]) == installed
    # npm comes with Node.js, unless that is Debian's.
    assert [tool.package for tool in TOOLS] == [*installed, "npm"], "what `livepro doctor --tests` looks for"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_it_shows_have_the_options_that_they_are_given(page: Path) -> None:
    """What a page types is parsed as livepro would: a page cannot tell of what does not exist."""
    for command in typed(page):
        words = shlex.split(re.sub(r"\$\([^()]*\)", "1", command), comments=True)
        names = [word.rpartition("/")[2] for word in words]
        if "livepro" not in names:
            continue
        arguments = words[names.index("livepro") + 1 :]
        for stop in (">", "2>", "2>&1", "|", "&", "&&", ";"):  # the shell's, not livepro's
            if stop in arguments:
                arguments = arguments[: arguments.index(stop)]
        if not arguments or arguments[0].startswith("-"):
            continue
        assert arguments[0] in SUBCOMMANDS, command
        module = importlib.import_module(f"livepro.cli.{arguments[0]}")
        own = module.parsers() if hasattr(module, "parsers") else {}
        if arguments[1:2] and arguments[1] in own:
            own[arguments[1]][0].parse_args(arguments[2:])
        elif hasattr(module, "parser") and not EXITS & set(arguments):
            module.parser().parse_args(arguments[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_it_names_exist(page: Path) -> None:
    text = page.read_text()
    linked = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    named = re.findall(r"`((?:livepro|benchmarks|tests|fixtures|docs)/[\w./-]+\.\w+)`", text)
    assert [name for name in linked if not (page.parent / name).exists()] == []
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


def test_every_page_is_one_step_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)\)", README.read_text()))
    assert linked == {page.name for page in DOCS}


def test_every_page_is_in_the_navigation() -> None:
    entries = re.findall(r"^ +- .+: ([\w-]+\.md)$", (REPOSITORY / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(entries) == [page.name for page in DOCS]


def test_the_readme_is_a_page() -> None:
    assert len(README.read_text()) < 16_000, "a page: what is longer belongs in docs/"
