"""`livepro api`: where the files are with which a program gives commands itself."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from livepro import inprocess
from livepro.cli.parser import Parser
from livepro.errors import LiveproError

DESCRIPTION = """\
Programs can say from inside what livepro is to count: reset, snapshot, pause,
resume, and reading a counter back. Without options, print where the C header and
the Java class for that are. (In Python: from livepro import inprocess.)

--jmh copies a profiler for JMH, Java's benchmark harness, 1.35 and newer, with
the Java class that it uses: `-prof livepro` then reports exact instructions per
operation, over the measured iterations only. Both belong among the benchmarks'
sources, in the unnamed package."""

EPILOG = """\
examples:
  livepro api
  livepro api --java src/main/java
  livepro api --jmh src/main/java      # then: java -jar benchmarks.jar -prof livepro
  cc -I "$(dirname "$(livepro api --c)")" prog.c"""


def parser() -> Parser:
    """The options of `livepro api`."""
    out = Parser("livepro api", DESCRIPTION, EPILOG)
    out.usage = "livepro api [--c [DIR]] [--java [DIR]] [--jmh [DIR]]"
    help_ = "print the path of {}, or copy it into DIR"
    out.add_argument("--c", metavar="DIR", nargs="?", const="", help=help_.format(inprocess.HEADER.name))
    out.add_argument("--java", metavar="DIR", nargs="?", const="", help=help_.format(inprocess.JAVA.name))
    out.add_argument(
        "--jmh",
        metavar="DIR",
        nargs="?",
        const="",
        help=f"print the paths of {inprocess.JMH.name} and {inprocess.JAVA.name}, or copy them into DIR",
    )
    return out


def main(argv: Sequence[str]) -> int:
    """Print or copy what was asked for; returns the exit status."""
    args = parser().parse_args(argv)
    chosen = [(args.c, inprocess.HEADER), (args.java, inprocess.JAVA)]
    if args.c is None and args.java is None and args.jmh is None:
        chosen = [("", file) for _, file in chosen]
    chosen += [(args.jmh, inprocess.JMH), (args.jmh, inprocess.JAVA)]
    for directory, file in chosen:
        if directory is not None:
            print(_copy(file, Path(directory)) if directory else file)
    return 0


def _copy(file: Path, directory: Path) -> Path:
    try:
        return Path(shutil.copy(file, directory / file.name))
    except OSError as error:
        raise LiveproError(
            f"Cannot write {directory / file.name}: {error.strerror}.",
            "Name a directory that can be written to.",
        ) from error
