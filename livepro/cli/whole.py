"""All commands' parsers as one, for what is made of them: completion for shells, man pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from importlib import import_module

from livepro import __version__
from livepro.cli.main import SUBCOMMANDS
from livepro.cli.parser import Parser

Commands = Mapping[str, tuple[Parser, str]]
"""Parsers, and what their commands do, by name."""


def parsers() -> Iterator[tuple[str, Parser, Commands]]:
    """(command, its parser, its own commands) of each command."""
    for name in SUBCOMMANDS:
        module = import_module(f"livepro.cli.{name}")
        make = getattr(module, "parser", lambda name=name: Parser(f"livepro {name}", SUBCOMMANDS[name]))
        yield name, make(), module.parsers() if hasattr(module, "parsers") else {}


def whole() -> tuple[argparse.ArgumentParser, list[argparse.ArgumentParser]]:
    """A parser that has each command as a subparser, and these with the subparsers of theirs."""
    top = argparse.ArgumentParser(
        "livepro", description="Exact per-thread instruction counts of live Linux processes."
    )
    top.add_argument("-V", "--version", action="version", version=f"livepro {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", title="commands")
    every = []
    for name, parser, own in parsers():
        # Of a command of several, which also takes a file, shells complete the commands.
        parents = [] if len(own) > 1 else [parser]
        every.append(commands.add_parser(name, parents=parents, add_help=not parents, help=SUBCOMMANDS[name]))
        if len(own) > 1:
            nested = every[-1].add_subparsers(metavar="COMMAND", title="commands")
            every += [
                nested.add_parser(inner, parents=[one], add_help=False, help=what)
                for inner, (one, what) in own.items()
            ]
    return top, every
