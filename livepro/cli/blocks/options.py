"""What the options of `livepro blocks`' commands share. Nothing is imported here that has to be installed:
manual pages are made where nothing is."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from livepro.blocks import files
from livepro.errors import LiveproError
from livepro.formats.files import check_writable, prepare_directory

TOP = 10
"""Blocks of the table, unless --top says otherwise."""

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


def share(text: str) -> float:
    """A share as people write it, 0.01 or 1%, from 0 to 1. Raises argparse.ArgumentTypeError."""
    match = _PERCENT.fullmatch(text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share (write 0.01 or 1%)")
    return value


def positive(text: str) -> int:
    """A whole number above 0. Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def add_output(parser: argparse.ArgumentParser, counted: bool) -> None:
    """The options that choose blocks and say where they go."""
    which = parser.add_argument_group("which blocks")
    if counted:
        which.add_argument(
            "--min-share",
            type=share,
            default=0.0,
            metavar="S",
            help="only blocks that are at least S of all executions or of all time (0.01 or 1%%)",
        )
    which.add_argument(
        "--loops-only",
        action="store_true",
        help="only blocks that repeat themselves or are in an innermost loop",
    )
    which.add_argument("--no-calls", action="store_true", help="only blocks that do not end in a call")
    which.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="NAME",
        help="only blocks of this file: its name or path (libc is libc.so.6; can be given several times)",
    )
    which.add_argument("--distinct", action="store_true", help="blocks of equal bytes are one")
    where = parser.add_argument_group("where they go")
    where.add_argument(
        "-o", "--output", metavar="PATH", help="the file to write; a directory for a file per block"
    )
    where.add_argument(
        "--format",
        choices=files.FORMATS,
        help="what to write (default: by the file's name, .csv .json .parquet .sqlite)",
    )
    where.add_argument(
        "--top",
        type=positive,
        default=TOP,
        metavar="N",
        help=f"blocks in the table on the terminal (default: {TOP})",
    )
    where.add_argument("-q", "--quiet", action="store_true", help="no table")


def check_output(args: argparse.Namespace, stdout: bool) -> None:
    """Raise LiveproError, before anything else is done, for an output that cannot be written. `stdout`
    says whether text may go to standard output."""
    if args.output is None:
        if args.format and not stdout:
            raise LiveproError(
                f"--format {args.format} without a file: standard output is the program's.",
                f"Say where it is to go: `-o NAME{files.FORMATS[args.format].suffix}`.",
            )
        return
    directory = args.output.endswith("/") or Path(args.output).is_dir()
    args.format = args.format or files.format_of(args.output)
    kind = files.FORMATS[args.format]
    if kind.only_each or (directory and kind.each):
        prepare_directory(args.output, "-o")
    else:
        check_writable(args.output, "-o")
