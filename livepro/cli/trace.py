"""`livepro trace`: traces of a program for simulators, and what is in one."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livepro.cli import checks
from livepro.cli.loading import load_numpy
from livepro.cli.parser import Parser, count
from livepro.errors import LiveproError

if TYPE_CHECKING:
    from livepro.traces.trace import Trace, Written

FORMATS = ("champsim", "din", "lackey", "ramulator2", "npz", "parquet")

DESCRIPTION = """\
Run PROGRAM, or watch the running process PID for a while, and write what its
threads execute and access for a simulator: a file for each thread, or for
each simulation point. x86-64; whole programs or parts of them.

`livepro trace info FILE` says what is in a trace, and checks it."""

EPILOG = """\
examples:
  livepro trace -o ls.champsim.xz -- ls -l
  livepro trace -o gzip.xz --skip 100M --count 10M -- gzip -k file
  livepro trace -o prog.din.gz -- ./prog
  livepro trace -o point.xz --simpoints results.simpoints \\
      --weights results.weights --interval-size 10M --warmup 1M -- ./prog
  livepro trace -o java.xz --pid 1234 --duration 2s
  livepro trace info gzip.xz

formats (--format; default: as FILE's name says, else champsim):
  champsim    64-byte records, for ChampSim: `-o FILE.xz`
  din         Dinero: label and address
  lackey      as Valgrind's lackey prints with --trace-mem=yes
  ramulator2  LD and ST of lines behind simulated caches (--I1, --D1, --LL)
  npz         instructions and accesses as arrays for NumPy
  parquet     the same as a table

Thread N > 1 gets .N in its file's name, point P .pointP. Names that end in
.xz, .gz or .bz2 are compressed.

exit status: the program's, or 128 + n when signal n ended it; 2 when livepro
could not write what was asked for."""

INFO_DESCRIPTION = """\
Say what is in a trace, and check it: instructions, branches by type, loads,
stores, lines; that each record leads to the next one."""


def parser() -> Parser:
    """The options of `livepro trace`."""
    from livepro.cli.parser import duration

    out = Parser("livepro trace", DESCRIPTION, EPILOG)
    out.usage = (
        "livepro trace -o FILE [options] [--] PROGRAM [ARGS...]\n"
        "       livepro trace -o FILE [options] --pid PID\n       livepro trace info FILE..."
    )
    out.add_argument("-o", "--output", metavar="FILE", help="the trace")
    out.add_argument("--format", choices=FORMATS, default="", help="what it is (see below)")
    out.add_argument("-q", "--quiet", action="store_true", help="no summary and no progress line")
    part = out.add_argument_group("which part", "Instructions of each thread; without any of these, all.")
    part.add_argument("--thread", metavar="N", default="", help="only thread N, from 1, or all")
    part.add_argument("--start-at", metavar="PLACE", default="", help="begin at PLACE, as `livepro run` does")
    part.add_argument(
        "--stop-at",
        metavar="PLACE",
        default="",
        help="end at PLACE; --skip and --count, of each thread, are from --start-at on",
    )
    part.add_argument("--skip", metavar="N", type=count, default=0, help="begin behind N instructions")
    part.add_argument("--count", metavar="N", type=count, default=0, help="end after N instructions")
    part.add_argument(
        "--simpoints",
        metavar="FILE",
        default="",
        help="a file for each of these points of thread 1 (or --thread)",
    )
    part.add_argument("--weights", metavar="FILE", default="", help="their weights")
    part.add_argument(
        "--interval-size", metavar="N", type=count, default=0, help="instructions in an interval of theirs"
    )
    part.add_argument(
        "--warmup", metavar="N", type=count, default=0, help="begin so much earlier at each point"
    )
    how = out.add_argument_group("how to run")
    how.add_argument("--pid", metavar="PID", type=int, help="watch this process instead of running one")
    how.add_argument(
        "--duration",
        metavar="TIME",
        type=duration,
        help="with --pid: for so long, as in 2s (default: its end)",
    )
    how.add_argument(
        "--engine", choices=("auto", "translate", "step"), default="auto", help="what watches it"
    )
    how.add_argument("--no-aslr", dest="aslr", action="store_false", help="no address space randomisation")
    how.add_argument(
        "--children", choices=("follow", "ignore"), default="ignore", help="trace processes it starts, too"
    )
    caches = out.add_argument_group("caches, for ramulator2", "This machine's, unless given.")
    for name, what in (("I1", "instruction cache"), ("D1", "data cache"), ("LL", "last-level cache")):
        caches.add_argument(f"--{name}", metavar="SIZE,WAYS,LINE", default="", help=f"the {what}")
    out.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return out


def parsers() -> dict[str, tuple[Parser, str]]:
    """The parser of each command of this command, and what it does."""
    return {"info": (info_parser(), "say what is in a trace, and check it")}


def info_parser() -> Parser:
    """The options of `livepro trace info`."""
    out = Parser("livepro trace info", INFO_DESCRIPTION, "example:\n  livepro trace info gzip.champsim.xz")
    out.add_argument("files", nargs="+", metavar="FILE", help="a trace")
    out.add_argument("--format", choices=FORMATS, default="", help="what it is (default: as its name says)")
    out.add_argument("--json", action="store_true", help="as JSON")
    return out


def main(argv: Sequence[str]) -> int:
    """Trace a program or a process, or look at a trace; return the exit status."""
    if argv and argv[0] == "info":
        return main_info(argv[1:])
    args = parser().parse_args(argv)
    if not args.output:
        raise LiveproError("There is no file for the trace.", "Name one: livepro trace -o FILE -- PROGRAM.")
    status = checks.process_or_program(args)
    if status is not None:
        return status
    load_numpy()
    trace = traced(args)
    return run(args, trace)


def traced(args: argparse.Namespace) -> Trace:
    """The trace that is asked for. Raises LiveproError for what is wrong with that."""
    from livepro.events.needed import compiler

    with compiler():
        from livepro.cachesim.geometry import Hierarchy, check, host, parse
        from livepro.traces.parts import ALL, FOREVER, Part, points
        from livepro.traces.trace import Trace, format_of
    path = Path(args.output)
    form = format_of(path, args.format)
    if args.thread not in ("", "all") and not (args.thread.isdecimal() and int(args.thread)):
        raise LiveproError(f"--thread {args.thread}: no such thread.", "Name all or a number from 1.")
    thread = int(args.thread) - 1 if args.thread.isdecimal() else None
    parts: tuple[Part, ...] = (ALL,)
    if args.simpoints:
        if args.skip or args.count or args.start_at or args.stop_at:
            raise LiveproError(
                "--start-at, --stop-at, --skip and --count do not go with --simpoints.", "Leave one out."
            )
        if not args.interval_size:
            raise LiveproError(
                "Simulation points are numbers of intervals.",
                "Say how long those were: --interval-size 10M (as for `livepro simpoint run`).",
            )
        parts = tuple(points(args.simpoints, args.weights, args.interval_size, args.warmup))
        thread = None if args.thread == "all" else thread or 0
    elif args.weights or args.warmup or args.interval_size:
        raise LiveproError("--weights, --warmup and --interval-size are for --simpoints.", "Give that, too.")
    elif args.skip or args.count:
        parts = (Part("", args.skip, args.skip + args.count if args.count else FOREVER),)
    hierarchy = None
    shapes = {name: getattr(args, name) for name in ("I1", "D1", "LL")}
    if form == "ramulator2":
        own = host()
        given = [parse(text, f"--{name}") if text else None for name, text in shapes.items()]
        i1, d1, ll = (check(g or o, f"--{n}") for g, o, n in zip(given, own[:3], shapes, strict=True))
        hierarchy = Hierarchy(i1, d1, ll)
    elif any(shapes.values()):
        raise LiveproError("--I1, --D1 and --LL are for ramulator2.", "Leave them out.")
    return Trace(path, form, parts, thread=thread, hierarchy=hierarchy)


def run(args: argparse.Namespace, trace: Trace) -> int:
    """Run and write; report; the exit status."""
    from livepro.api import attach
    from livepro.api import run as run_command
    from livepro.cli.run import left_to_itself

    def control(control: Any) -> None:
        trace.finished = lambda: _ignore(control.submit(lambda: control.execute("detach")))

    region: Any = {}
    if args.start_at or args.stop_at:
        region = {"start_at": args.start_at, "stop_at": args.stop_at}
    line: Any = _line(args.quiet, trace)
    began = time.monotonic()
    try:
        with line or nullcontext():
            if args.pid is not None:
                result = attach(
                    args.pid, engine=args.engine, seconds=args.duration, analyses=[trace], progress=line,
                    children=args.children == "follow", **region,
                )  # fmt: skip
            else:
                sys.stdout.flush()
                result = run_command(
                    args.command, engine=args.engine, aslr=args.aslr, children=args.children,
                    analyses=[trace], progress=line, control=control, **region,
                )  # fmt: skip
    except BaseException:
        trace.close()
        raise
    written = trace.close()
    if not args.quiet:
        report(trace, written, time.monotonic() - began)
    missing = unmet(trace, written)
    for text in (*result.warnings, *missing, *cut_short(trace, written)):
        print(f"livepro: warning: {text}", file=sys.stderr)
    if args.simpoints:
        list_points(Path(args.output), written)
    if args.pid is not None:
        return 2 if missing else 0
    status = left_to_itself(result) if result.exit is None else result.exit
    return status if written and not missing else 2


def _ignore(_: object) -> None:
    pass


def _line(quiet: bool, trace: Trace) -> Any:
    """A progress line that tells the size of the trace, too."""
    from livepro.ui.progress import ProgressLine, progress_line

    if progress_line(quiet) is None:
        return None

    class Line(ProgressLine):
        def text(self, snapshot: Any) -> str:
            return super().text(snapshot) + f", {trace.outputs.written / 1e6:,.0f} MB written"

    return Line(sys.stderr)


def unmet(trace: Trace, written: Sequence[Written]) -> list[str]:
    """Parts that are not there. (The last one may end with the run: `cut_short`.)"""
    out = []
    if not written:
        out.append("Nothing was executed of what was to be traced.")
    for part in trace.parts:
        found = [file for file in written if file.part == part]
        last = part.end == max(part.end for part in trace.parts)
        least = part.warmup + 1 if last else part.end - part.start
        if part.name and not any(file.instructions >= least for file in found):
            out.append(
                f"{part.name} is at instructions {part.start:,} to {part.end:,}: beyond the end of this run. "
                "Take points, interval size and program from the same run."
            )
    return out


def cut_short(trace: Trace, written: Sequence[Written]) -> list[str]:
    """What is to be known of a last part that ended with the run: a run's last interval is one mostly."""
    end = max(part.end for part in trace.parts)
    return [
        f"{file.part.name} ends with the run, after {file.instructions:,} instructions of "
        f"{file.part.end - file.part.start:,}: right if that is the last interval of the run clustered."
        for file in written
        if file.part.name
        and file.part.end == end
        and file.part.warmup < file.instructions < file.part.end - file.part.start
    ]


def report(trace: Trace, written: Sequence[Written], seconds: float) -> None:
    """A table of the files."""
    out = sys.stderr
    total = sum(file.instructions for file in written)
    rate = total / seconds / 1e6 if seconds else 0
    print(f"trace  {trace.form}, {seconds:.1f} s, {rate:,.1f} million instructions a second\n", file=out)
    weights = any(file.part.name for file in written)
    head = f"{'instructions':>16}{'loads':>15}{'stores':>15}{'bytes':>15}"
    print(head + ("  weight" if weights else "") + "  file", file=out)
    for file in written:
        size = os.path.getsize(file.path) if file.path.is_file() else 0
        row = f"{file.instructions:>16,}{file.loads:>15,}{file.stores:>15,}{size:>15,}"
        print(row + (f"  {file.part.weight:6.4f}" if weights else "") + f"  {file.path}", file=out)


def list_points(path: Path, written: Sequence[Written]) -> None:
    """Write which file is which point, with its weight, as a table beside the traces."""
    with open(f"{path}.points", "w", encoding="utf-8") as out:
        out.write("# file point interval weight warmup instructions\n")
        for file in written:
            part = file.part
            out.write(
                f"{file.path.name} {part.name.removeprefix('point')} {part.interval} {part.weight!r} "
                f"{part.warmup} {file.instructions}\n"
            )


def main_info(argv: Sequence[str]) -> int:
    """`livepro trace info`: 0, or 1 if a trace is not as its format demands."""
    args = info_parser().parse_args(argv)
    load_numpy()
    from livepro.events.needed import compiler

    with compiler():
        from livepro.traces.info import look
        from livepro.traces.trace import format_of
    import json

    status, found = 0, {}
    for name in args.files:
        told = found[name] = look(Path(name), format_of(Path(name), args.format))
        status |= bool(told["faults"])
    if args.json:
        print(json.dumps(found, indent=1))
        return status
    for name, told in found.items():
        print(name)
        for key, value in told.items():
            if key == "branches":
                print(f"  {'branches':<26}{sum(value.values()):>16,}")
                for kind, n in value.items():
                    if n:
                        print(f"    {kind:<24}{n:>16,}   {told['taken'][kind] / n:7.2%} taken")
            elif key == "faults":
                print(f"  {'faults':<26}{len(value) or 'none':>16}")
                for text in value:
                    print(f"    {text}")
            elif key != "taken":
                shown = value if isinstance(value, str) else f"{value:#x}" if "pc" in key else f"{value:,}"
                print(f"  {key:<26}{shown:>16}")
    return status
