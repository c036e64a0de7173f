"""`livepro mica`: MICA's characterisation of a program, its files, and tables that explain themselves."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livepro.cli import checks
from livepro.cli.loading import load_numpy
from livepro.cli.options import add_region
from livepro.cli.parser import Parser, count, duration, names
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.mica.settings import Settings

DESCRIPTION = """\
Run PROGRAM, or watch the running process PID for a while, and characterise it
as MICA does, independently of any microarchitecture: instruction-level
parallelism, instruction types, branch predictability, register traffic,
strides, memory footprints and LRU stack distances; exact, for each thread.
A table appears on standard error; MICA's files go to the directory -d.

A mica.conf in the working directory is read as MICA reads it; options hold
over what it says."""

EPILOG = """\
examples:
  livepro mica -- gzip -k file
  livepro mica --analyses ilp,ppm --interval-size 1M -d results -- ./prog arg
  livepro mica --conf mica.conf --mica-dialect mica -- ./prog
  livepro mica --no-files --csv intervals.csv --interval-size 10M -- ./prog
  livepro mica --pid 1234 --duration 2s --no-files

files: <analysis>_{full,phases}_int[_<pid>]_pin.out, of thread 1; thread N > 1
gets .N behind that. Columns are MICA's; with --mica-dialect mica so are the
blanks, and the few definitions in which MICA can be improved on (docs/mica.md).

exit status: the program's, or 128 + n when signal n ended it; 2 when livepro
could not write what was asked for."""


def interval(text: str) -> int:
    """An interval's instructions, 0 for `full`. Raises argparse.ArgumentTypeError."""
    return 0 if text == "full" else count(text)


def parser() -> Parser:
    """The options of `livepro mica`."""
    out = Parser("livepro mica", DESCRIPTION, EPILOG)
    out.usage = "livepro mica [options] [--] PROGRAM [ARGS...]\n       livepro mica [options] --pid PID"
    what = out.add_argument_group("what to measure")
    what.add_argument(
        "--conf", metavar="FILE", default="", help="MICA's configuration (default: mica.conf if it is there)"
    )
    what.add_argument(
        "--analyses",
        metavar="LIST",
        type=names,
        help="all (default), or of these, comma-separated: ilp, ilp_one, itypes, ppm, reg, stride, "
        "memfootprint, memstackdist, fullmemstackdist",
    )
    what.add_argument(
        "--interval-size", metavar="N", type=interval, help="instructions in an interval, or full (default)"
    )
    what.add_argument("--block-size", metavar="N", type=int, help="log2 of a block's bytes (default: 6)")
    what.add_argument("--page-size", metavar="N", type=int, help="log2 of a page's bytes (default: 12)")
    what.add_argument("--ilp-size", metavar="N", type=count, help="instructions in ilp_one's window")
    what.add_argument(
        "--itypes-spec", metavar="FILE", help="groups of instruction types: gid, sgid, TYPE, name"
    )
    what.add_argument(
        "--mica-dialect",
        choices=("exact", "mica"),
        default="exact",
        help="mica: files to the blank as MICA writes them, its definitions (default: exact)",
    )
    add_region(out)
    how = out.add_argument_group("how to run")
    how.add_argument("--pid", metavar="PID", type=int, help="watch this process instead of running one")
    how.add_argument(
        "--duration", metavar="TIME", type=duration, help="with --pid: for so long (default: its end)"
    )
    how.add_argument(
        "--engine",
        choices=("auto", "translate", "block", "step"),
        default="auto",
        help="what watches it",
    )
    how.add_argument("--no-aslr", dest="aslr", action="store_false", help="no address space randomisation")
    how.add_argument(
        "--children",
        choices=("follow", "ignore"),
        default="ignore",
        help="processes that it starts, too (default: ignore)",
    )
    files = out.add_argument_group("what to write")
    files.add_argument("-q", "--quiet", action="store_true", help="no table and no progress line")
    files.add_argument(
        "-d", "--directory", metavar="DIR", default=".", help="where MICA's files go (default: here)"
    )
    files.add_argument("--no-files", dest="files", action="store_false", help="none of MICA's files")
    files.add_argument(
        "--append-pid", action="store_true", default=None, help="the process id in the files' names"
    )
    files.add_argument("--json", metavar="FILE", default="", help="everything, as JSON")
    files.add_argument(
        "--csv", metavar="FILE", default="", help="named metrics, a row for each interval (or thread)"
    )
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def main(argv: Sequence[str]) -> int:
    """Check everything, characterise, write; return the program's status."""
    args = parser().parse_args(argv)
    status = checks.process_or_program(args)
    if status is not None:
        return status
    load_numpy()
    settings, append_pid = asked(args)
    if args.children == "follow" and args.files and not append_pid:
        raise LiveproError(
            "The files of several processes would have the same names.", "Give --append-pid, too."
        )
    _check_outputs(args)
    return _measure(args, settings, append_pid)


def asked(args: argparse.Namespace) -> tuple[Settings, bool]:
    """What to measure, by the options and the mica.conf that holds, and whether files are named with the
    process id. Raises LiveproError for what is wrong with either."""
    from livepro.events.needed import compiler

    with compiler():
        from livepro.formats import itypes_spec, mica_conf
        from livepro.isa.vocabulary import vocabulary
        from livepro.mica.builtin import BUILT_IN
        from livepro.mica.settings import ALL, ANALYSES, MicaDialect, Settings
    path = args.conf or (mica_conf.NAME if os.path.exists(mica_conf.NAME) else "")
    conf = mica_conf.read(path, ANALYSES) if path else mica_conf.MicaConf(("all",))
    spec = args.itypes_spec or conf.itypes_spec_file

    def chosen(option: str) -> Any:
        given = getattr(args, option)
        return getattr(conf, option) if given is None else given

    wanted = [name for asked in chosen("analyses") for name in (ALL if asked == "all" else (asked,))]
    settings = Settings(
        analyses=tuple(name for name in ANALYSES if name in wanted) or tuple(wanted),
        interval_size=chosen("interval_size"),
        block_size=chosen("block_size"),
        page_size=chosen("page_size"),
        ilp_size=chosen("ilp_size"),
        dialect=MicaDialect(args.mica_dialect),
        spec=itypes_spec.read(spec, vocabulary(platform.machine())) if spec else BUILT_IN,
    )
    unknown = [name for name in wanted if name not in ANALYSES]
    if unknown:
        raise LiveproError(f"MICA has no analysis '{unknown[0]}'.", f"There are all, {', '.join(ANALYSES)}.")
    return settings, chosen("append_pid")


def _check_outputs(args: argparse.Namespace) -> None:
    """Raises LiveproError for what cannot be written, before anything runs."""
    from livepro.formats import files

    if args.files:
        files.prepare_directory(args.directory, "--directory")
    for option in ("json", "csv"):
        if getattr(args, option):
            files.check_writable(getattr(args, option), f"--{option}")


def _measure(args: argparse.Namespace, settings: Settings, append_pid: bool) -> int:
    from livepro.api import attach, run
    from livepro.cli.run import left_to_itself
    from livepro.mica.model import Mica
    from livepro.ui.progress import progress_line

    line = progress_line(args.quiet)
    shared: dict[str, Any] = {"engine": args.engine, "analyses": [Mica(settings)], "progress": line}
    shared |= {name: getattr(args, name) for name in ("start_at", "stop_at", "skip", "count")}
    with line or nullcontext():
        if args.pid is not None:
            result = attach(args.pid, seconds=args.duration, children=args.children == "follow", **shared)
        else:
            sys.stdout.flush()
            result = run(args.command, aslr=args.aslr, children=args.children, **shared)
    told = result.analyses["mica"]
    _write(args, settings, told, append_pid)
    if not args.quiet:
        for process in told:
            if len(told) > 1:
                print(f"\nprocess {process['pid']}  {' '.join(process['command'])}", file=sys.stderr)
            print("", *process["report"], sep="\n", file=sys.stderr)
    for text in result.warnings:
        print(f"livepro: warning: {text}", file=sys.stderr)
    if not told:
        print("livepro: Nothing was executed of what was to be characterised.", file=sys.stderr)
    if args.pid is not None:
        return 0 if told else 2
    status = left_to_itself(result) if result.exit is None else result.exit
    return status if told else 2


def _write(args: argparse.Namespace, settings: Settings, told: Sequence[Any], append_pid: bool) -> None:
    """Write all files that are asked for."""
    from livepro.formats.files import open_text
    from livepro.mica.outputs import csv_rows, document, files

    if args.files:
        for process in told:
            pid = process["pid"] if append_pid else None
            for name, text in files(process["result"], settings, pid):
                with open_text(str(Path(args.directory) / name)) as out:
                    out.writelines(text)
    if args.json:
        import json

        with open_text(args.json) as out:
            json.dump(document(told), out, indent=1)
            out.write("\n")
    if args.csv:
        import csv

        with open_text(args.csv) as out:
            csv.writer(out, lineterminator="\n").writerows(csv_rows(told))
