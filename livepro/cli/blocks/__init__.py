"""`livepro blocks`: basic blocks for throughput models, one module for each of its commands."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from livepro.cli.parser import Parser

COMMANDS = {
    "run": "run a program and count every execution of every block",
    "sample": "run a program, or watch one, and take samples of its blocks",
    "perf": "the blocks of samples that perf has taken",
    "suite": "build and run a suite of benchmarks, and make a data set of their blocks",
    "verify": "make a data set again, and say what differs",
    "predict": "what llvm-mca and OSACA say of blocks, weighted by how often they ran",
    "compare": "what sampling sees of a program, and what it misses",
}
"""Names that are commands; anything else is a file. A file of such a name is written ./run."""


def parser() -> Parser:
    """The options of `livepro blocks FILE`."""
    found: Parser = importlib.import_module("livepro.cli.blocks.file").parser()
    return found


def parsers() -> dict[str, tuple[Parser, str]]:
    """The parser of each command, and what it does."""
    modules = {name: importlib.import_module(f"livepro.cli.blocks.{name}") for name in COMMANDS}
    return {name: (module.parser(), COMMANDS[name]) for name, module in modules.items()}


def main(argv: Sequence[str]) -> int:
    """Hand the arguments to the command that they begin with, or to that for files."""
    name = argv[0] if argv and argv[0] in COMMANDS else "file"
    module = importlib.import_module(f"livepro.cli.blocks.{name}")
    status: int = module.main(argv[1:] if argv and argv[0] in COMMANDS else argv)
    return status
