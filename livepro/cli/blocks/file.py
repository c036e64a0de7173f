"""`livepro blocks FILE`: the basic blocks of a program or library, without running it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from livepro.cli.blocks import COMMANDS, options
from livepro.cli.parser import Parser, suggest
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.blocks.code import CodeFile

DESCRIPTION = """\
Cut the functions of FILE (a program or a library, x86-64 or AArch64, on either
machine) into basic blocks: behind every instruction that changes control flow,
and at every target of a direct jump within the function."""

EPILOG = """\
commands, each with a --help of its own:
{commands}

examples:
  livepro blocks /bin/gzip
  livepro blocks ./prog --symbol main --symbol kernel
  livepro blocks /lib/x86_64-linux-gnu/libc.so.6 --loops-only -o loops.csv
  livepro blocks ./prog --symbol kernel --format llvm-mca | llvm-mca
  livepro blocks ./prog --loops-only --no-calls --format osaca -o kernels/

Functions are symbols (of the file, of its MiniDebugInfo, of a separate debug file),
entries of the PLT and, where there are no symbols, the ranges of .eh_frame, which
are called sub_ADDRESS. Several names of one place are one function, shown by its
public name; --symbol takes all of them. Where a jump table leads is not known
without a run."""


def parser() -> Parser:
    """The options of `livepro blocks FILE`."""
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  livepro blocks {name:<{width}}  {text}" for name, text in COMMANDS.items())
    out = Parser("livepro blocks", DESCRIPTION, EPILOG.format(commands=listed))
    out.usage = "livepro blocks FILE [options]  |  livepro blocks COMMAND ..."
    out.add_argument("file", metavar="FILE", nargs="?")
    out.add_argument(
        "--symbol",
        action="append",
        default=[],
        metavar="NAME",
        help="only this function (several times: each)",
    )
    options.add_output(out, counted=False)
    return out


def main(argv: Sequence[str]) -> int:
    """Split, write, print; 0 if all went well."""
    args = parser().parse_args(argv)
    if args.file is None:
        raise LiveproError(
            "There is no file to cut into blocks.",
            f"Name one, `livepro blocks /bin/ls`, or a command: {', '.join(COMMANDS)}.",
        )
    options.check_output(args, stdout=True)
    from livepro.blocks.code import open_code
    from livepro.blocks.static import chosen, file_rows
    from livepro.cli.blocks.output import report

    try:
        file = open_code(args.file)
    except LiveproError as error:
        hint = "" if "/" in args.file else suggest(args.file, COMMANDS)
        if not hint and (program := shutil.which(args.file)) is not None:
            hint = f"The program of that name is {program}. "
        raise LiveproError(error.cause, f"{hint}{error.remedy}", error.status) from error
    try:
        functions = chosen(file, args.symbol)
        rows = list(file_rows(file, functions))
        what = f"{args.file}, {file.isa.name}, {len(functions):,} function{'s' * (len(functions) != 1)}"
        report(args, rows, sys.stdout, what)
        if not args.quiet and (args.output is not None or not args.format):
            astray = sum(file.split(f).astray for f in functions)
            undecodable = sum(file.split(f).undecodable for f in functions)
            for line in remarks(file, astray, undecodable, whole=not args.symbol):
                print(f"note: {line}", file=sys.stderr)
    finally:
        file.close()
    return 0


def remarks(file: CodeFile, astray: int, undecodable: int, whole: bool) -> Iterator[str]:
    """What a reader of the blocks should know of the file."""
    if undecodable:
        yield f"{undecodable:,} bytes are no instructions, or cut off by a function's end, and in no block."
    if astray:
        yield f"{astray:,} jumps lead to the middle of an instruction (over a prefix): nothing is cut there."
    if not whole:
        return
    notes = file.notes()
    if notes.unnamed:
        yield f"{notes.unnamed:,} functions have no symbol: .eh_frame tells where they are (sub_ADDRESS)."
    if notes.aliases:
        yield f"{notes.aliases:,} further names of functions: each function is shown by one."
    if notes.overlapping:
        yield f"{notes.overlapping:,} functions begin within another one: blocks of both are shown once."
    if notes.data:
        yield f"{notes.data:,} bytes of data stand in the code, and are in no block."
    if notes.unclaimed:
        yield f"{notes.unclaimed:,} bytes of code are of no function (padding, mostly), and in no block."
