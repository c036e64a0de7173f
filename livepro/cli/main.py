"""The top of the command line: picks the subcommand, prints what went wrong."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from livepro import __version__
from livepro.cli.loading import ended_at_once
from livepro.cli.parser import Parser, suggest
from livepro.errors import LiveproError

SUBCOMMANDS = {
    "run": "run a command and report exact counts of everything it executes",
    "attach": "measure a running process for a while, and let it go unharmed",
    "report": "make a page for the browser of a JSON report, or of two",
    "export": "write a report for speedscope, pprof, Perfetto, KCachegrind",
    "diff": "say what differs between two reports: functions, types, SIMD sets",
    "gate": "fail where a run executes more than a baseline allows, for CI",
    "simpoint": "choose the intervals worth simulating, and prove the choice",
    "blocks": "basic blocks of files and of runs, for throughput models",
    "mica": "characterise a program as MICA does: ILP, branches, strides ...",
    "trace": "write traces for simulators: ChampSim, Dinero, Ramulator 2 ...",
    "cache": "say what is kept so that runs start at once, or clear it",
    "ctl": "reset, snapshot, pause, resume or leave a run in progress",
    "api": "the C header and Java class for commands from inside a program",
    "annotate": "show a cache profile: functions, and source lines with counts",
    "analyses": "list the analyses of memory accesses and branches for --analysis",
    "completion": "make a shell complete commands and options",
    "man": "write the help of each command as a manual page",
    "doctor": "say what works on this machine, and what to do about what does not",
}

INTERNAL_ERROR = 70
"""Exit status of a bug in livepro itself (EX_SOFTWARE of <sysexits.h>)."""

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""


def main(argv: Sequence[str]) -> int:
    """Run one livepro command line; return its exit status, never a traceback."""
    try:
        return dispatch(argv)
    except LiveproError as error:
        complain(str(error))
        return error.status
    except SystemExit as done:  # argparse after --help
        return done.code if isinstance(done.code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; keep the interpreter from complaining about the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except Exception as error:
        if os.environ.get("LIVEPRO_DEBUG") == "1":
            import traceback

            traceback.print_exc()
        complain(
            f"Internal error ({type(error).__name__}: {error}). This is a bug in livepro: please report it "
            "with the command line and the output of `livepro doctor`; LIVEPRO_DEBUG=1 shows the traceback."
        )
        return INTERNAL_ERROR


def complain(message: str) -> None:
    """One paragraph on standard error."""
    print("livepro: " + " ".join(message.split()), file=sys.stderr, flush=True)


def dispatch(argv: Sequence[str]) -> int:
    """Hand the arguments behind the subcommand's name to its module's `main`."""
    if not argv or argv[0].startswith("-"):
        return top_level(argv)
    if argv[0] not in SUBCOMMANDS:
        raise LiveproError(
            f"There is no command '{argv[0]}'.",
            suggest(argv[0], SUBCOMMANDS)
            + f"The commands are {', '.join(SUBCOMMANDS)}; "
            + "to count a program, `livepro run -- PROGRAM`.",
        )
    with ended_at_once():
        module = importlib.import_module(f"livepro.cli.{argv[0]}")
    status: int = module.main(argv[1:])
    return status


def top_level(argv: Sequence[str]) -> int:
    """`livepro` with options only: --version, --help, or nothing (help, status 2)."""
    parser = Parser(
        prog="livepro",
        description="Exact per-thread instruction counts of live Linux processes.",
        epilog="commands:\n"
        + "\n".join(f"  {name:<11}{text}" for name, text in SUBCOMMANDS.items())
        + "\n\n`livepro COMMAND --help` tells more, with examples.",
    )
    parser.usage = "livepro [--version] [--help] COMMAND ..."
    parser.add_argument("-V", "--version", action="version", version=f"livepro {__version__}")
    parser.parse_args(argv)
    print(parser.format_help(), end="", file=sys.stderr)
    return 2
