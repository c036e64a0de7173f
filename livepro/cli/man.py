"""`livepro man`: the commands' help as manual pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from livepro import __version__
from livepro.cli.parser import Parser
from livepro.errors import LiveproError

DESCRIPTION = """\
Write a manual page for each command into DIR/man1, made from what `livepro COMMAND --help` says. A package
of livepro that pip installs brings them: `man livepro-run` finds them where `livepro` is on PATH."""

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
    into = Path(args.directory) / "man1"
    try:
        made = write(into)
    except OSError as error:
        raise LiveproError(
            f"{into} cannot be written: {error.strerror}.", "Name a directory that you may write to."
        ) from error
    print(f"{into}: {len(made)} pages")
    return 0


def write(into: Path) -> list[Path]:
    """Writes the pages into directory `into`, which is made where there is none; their paths. Raises
    OSError, and LiveproError as `pages` does."""
    made = {into / f"{name}.1": text for name, text in pages().items()}
    into.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return list(made)


def pages() -> dict[str, str]:
    """Name (``livepro``, ``livepro-run``) to manual page, in the man macros of man(7). Raises LiveproError
    where argparse-manpage is not installed."""
    try:
        from argparse_manpage.manpage import Manpage
    except ImportError:
        raise LiveproError(
            "Manual pages are made by argparse-manpage, which is not installed.",
            "Run `pip install 'livepro[man]'`.",
        ) from None
    from livepro.cli.main import SUBCOMMANDS
    from livepro.cli.whole import parsers

    top = Parser("livepro", "Exact per-thread instruction counts of live Linux processes.")
    top.usage = "livepro [--version] [--help] COMMAND ..."
    top.add_argument("-V", "--version", action="version", help="print livepro's version and exit")
    listed = "\n".join(f"  {f'livepro-{command}(1)':<24}{text}" for command, text in SUBCOMMANDS.items())
    out = {
        "livepro": _page(
            Manpage(top), "livepro", "count every instruction that programs execute", f"commands:\n{listed}"
        )
    }
    for command, parser, own in parsers():
        for name, one, what in (
            (f"livepro-{command}", parser, SUBCOMMANDS[command]),
            *((f"livepro-{command}-{inner}", one, what) for inner, (one, what) in own.items()),
        ):
            examples, one.epilog = one.epilog, None
            out[name] = _page(Manpage(one), name, what, examples or "")
    return out


def _page(manpage: object, name: str, summary: str, notes: str) -> str:
    """What argparse-manpage made of a parser, as the page called `name`; `notes` as they stand at its end."""
    lines = str(manpage).splitlines()
    lines[0] = f'.TH {name.upper()} 1 "" "livepro {__version__}" "livepro"'
    lines[lines.index(".SH NAME") + 1] = f"{_escaped(name)} \\- {_escaped(summary)}"
    if notes:
        lines += [".SH NOTES", ".nf", *map(_escaped, notes.splitlines()), ".fi"]
    return "\n".join(lines) + "\n"


def _escaped(line: str) -> str:
    """A line as roff shows it: hyphens to be typed, nothing taken for a request."""
    text = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
