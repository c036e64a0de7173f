"""All commands' parsers as one, for what is made of them: completion for shells, man pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from livepro import __version__
from livepro.cli.main import SUBCOMMANDS
from livepro.cli.parser import Parser


def parsers() -> Iterator[tuple[str, Parser]]:
    """(command, its parser) of each command."""
    for name in SUBCOMMANDS:
        make = getattr(import_module(f"livepro.cli.{name}"), "parser", None)
        # A command of commands has no options of its own.
        yield name, Parser(f"livepro {name}", SUBCOMMANDS[name]) if make is None else make()


def whole() -> tuple[argparse.ArgumentParser, list[argparse.ArgumentParser]]:
    """A parser that has each command as a subparser, and these."""
    top = argparse.ArgumentParser(
        "livepro", description="Exact per-thread instruction counts of live Linux processes."
    )
    top.add_argument("-V", "--version", action="version", version=f"livepro {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", title="commands")
    return top, [
        commands.add_parser(name, parents=[parser], add_help=False, help=SUBCOMMANDS[name])
        for name, parser in parsers()
    ]
