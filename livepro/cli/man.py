"""`livepro man`: the commands' help as manual pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from livepro import __version__
from livepro.cli.parser import Parser
from livepro.errors import LiveproError

DESCRIPTION = """\
Write a manual page for each command into DIR/man1, made from what `livepro COMMAND --help` says."""

EPILOG = """\
examples:
  livepro man ~/.local/share/man
  man livepro-run

needs the extra `man`: pip install 'livepro[man]'"""


def parser() -> Parser:
    """The arguments of `livepro man`."""
    out = Parser("livepro man", DESCRIPTION, EPILOG)
    out.usage = "livepro man DIR"
    out.add_argument("directory", metavar="DIR", help="a directory where `man` looks; see manpath(1)")
    return out


def main(argv: Sequence[str]) -> int:
    """Write the pages and say where they are; 0."""
    args = parser().parse_args(argv)
    made = pages()
    into = Path(args.directory) / "man1"
    try:
        into.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (into / f"{name}.1").write_text(text)
    except OSError as error:
        raise LiveproError(
            f"{into} cannot be written: {error.strerror}.", "Name a directory that you may write to."
        ) from error
    print(f"{into}: {len(made)} pages")
    return 0


def pages() -> dict[str, str]:
    """Name (``livepro-run``) to manual page, in the man macros of man(7). Raises LiveproError where
    argparse-manpage is not installed."""
    try:
        from argparse_manpage.manpage import Manpage
    except ImportError:
        raise LiveproError(
            "Manual pages are made by argparse-manpage, which is not installed.",
            "Run `pip install 'livepro[man]'`.",
        ) from None
    from livepro.cli.main import SUBCOMMANDS
    from livepro.cli.whole import parsers

    out = {}
    for command, own in parsers():
        name = f"livepro-{command}"
        examples, own.epilog = own.epilog, None
        lines = str(Manpage(own)).splitlines()
        lines[0] = f'.TH {name.upper()} 1 "" "livepro {__version__}" "livepro"'
        at = lines.index(".SH NAME") + 1
        lines[at] = f"{_escaped(name)} \\- {_escaped(SUBCOMMANDS[command])}"
        if examples:
            lines += [".SH NOTES", ".nf", *map(_escaped, examples.splitlines()), ".fi"]
        out[name] = "\n".join(lines) + "\n"
    return out


def _escaped(line: str) -> str:
    """A line as roff shows it: hyphens to be typed, nothing taken for a request."""
    text = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
