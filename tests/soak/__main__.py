"""Put livepro to work on busy programs, round after round: each program must go on to its right result.

    python -m tests.soak [--times N | --minutes M] [--seed S] [--engines LIST] [PROGRAM ...]
    python -m tests.soak --results rounds.jsonl --times 400 --ledger docs/trust.md
    python -m tests.soak --seed S --round N

A round begins by turns with nothing kept of earlier ones and with what they kept. What is done in it is
drawn from the seed: an attachment from a millisecond to some seconds long, several by different engines in
a row, windows (--every), a signal to livepro at any moment, commands of `livepro ctl` and metrics, the
live view, files; or `livepro run` with Ctrl-C, SIGTERM or `ctl detach`. Every death is told with livepro's
standard error, the program's exit status, and what makes the same round again. With --results what has
been done is kept, and the same command goes on behind it. Ends with status 1 after a death, a wrong result
or an error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from soak import ledger, ways  # noqa: E402
from soak.programs import PROGRAMS, RUNTIMES  # noqa: E402
from soak.rounds import ENGINES, Outcome, Rounds, draw  # noqa: E402


def _list(text: str) -> list[str]:
    return text.split(",")


def options() -> argparse.ArgumentParser:
    """The command line."""
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--times", type=int, default=100, help="so many rounds (default: %(default)s)")
    out.add_argument("--minutes", type=float, default=0, help="at most so long")
    out.add_argument("--seed", type=int, default=0, help="what rounds are drawn by (default: the time)")
    out.add_argument("--round", type=int, default=-1, help="round N of the seed, and no other")
    out.add_argument("--engines", type=_list, default=list(ENGINES), help="in turn (default: %(default)s)")
    out.add_argument("--ways", type=_list, default=[], help=f"of {', '.join([*ways.ATTACHED, 'run'])}")
    out.add_argument("--results", type=Path, help="keep the rounds here, and go on behind those kept there")
    out.add_argument("--ledger", type=Path, help="append a line on all of them to this file")
    out.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}")
    return out


def wanted(named: list[str]) -> list[str]:
    """The programs for the rounds: those named, else all that this machine has what they need for."""
    unknown = [name for name in named if name not in PROGRAMS]
    if unknown:
        raise SystemExit(f"There is no program {', '.join(unknown)}.")
    missing = [name for name in named or PROGRAMS if name in RUNTIMES and not RUNTIMES[name].present]
    if missing:
        packages = sorted({RUNTIMES[name].package for name in missing})
        print(f"without {', '.join(missing)} (Debian: {' '.join(packages)})", flush=True)
    return [name for name in named or PROGRAMS if name not in missing]


def earlier(file: Path | None, given: argparse.Namespace) -> list[Outcome]:
    """The rounds that a file of results has; sets the seed to theirs."""
    if file is None or not file.exists():
        return []
    head, *lines = file.read_text().splitlines()
    kept = json.loads(head)
    for name in ("seed", "engines", "ways", "programs"):
        setattr(given, name, kept[name])
    return [Outcome(**json.loads(line)) for line in lines]


def main() -> int:
    """Returns the exit status."""
    given = options().parse_args()
    # Started by nohup, or in the background of a shell, it would hand on that these are ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    given.seed = given.seed or int(time.time())
    outcomes = earlier(given.results, given)
    given.programs = wanted(given.programs)
    print(f"seed {given.seed}, {len(given.programs)} programs", flush=True)
    if given.results is not None and not outcomes:
        kept = {name: getattr(given, name) for name in ("seed", "engines", "ways", "programs")}
        given.results.write_text(json.dumps(kept) + "\n")
    numbers = range(len(outcomes), given.times) if given.round < 0 else [given.round]
    until = time.monotonic() + (given.minutes * 60 or 1e9)
    directory = Path(tempfile.mkdtemp(prefix="livepro-soak-"))
    try:
        rounds = Rounds(directory)
        for number in numbers:
            if time.monotonic() > until:
                break
            drawn, generator = draw(given.seed, number, given.programs, given.engines, given.ways)
            outcome = rounds.make(drawn, generator)
            outcomes.append(outcome)
            if given.results is not None:
                with given.results.open("a") as file:
                    file.write(json.dumps(outcome.document()) + "\n")
            if outcome.kind != "right":
                again = f"python -m tests.soak --seed {given.seed} --round {number}"
                again += f" --engines {','.join(given.engines)}" * (given.engines != list(ENGINES))
                again += f" --ways {','.join(given.ways)}" * bool(given.ways)
                print(
                    f"\n{outcome.kind}: {drawn}\n{again} {' '.join(given.programs)}\n{outcome.told}",
                    flush=True,
                )
            elif sys.stderr.isatty():
                print(f"\r{number + 1}/{given.times} {drawn}\x1b[K", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(table(outcomes))
    if given.ledger is not None:
        ledger.append(given.ledger, outcomes)
    return int(any(outcome.kind != "right" for outcome in outcomes))


def table(outcomes: list[Outcome]) -> str:
    """Rounds by program and by way."""
    lines = []
    for title, key in (("program", "program"), ("way", "way")):
        lines.append(f"{title:<18}{'rounds':>7}{'deaths':>8}{'wrong':>7}{'errors':>8}")
        for name in sorted({getattr(outcome, key) for outcome in outcomes}):
            kinds = Counter(outcome.kind for outcome in outcomes if getattr(outcome, key) == name)
            lines.append(f"{name:<18}{kinds.total():7}{kinds['death']:8}{kinds['wrong']:7}{kinds['error']:8}")
    kinds = Counter(outcome.kind for outcome in outcomes)
    attached = sum(outcome.attachments for outcome in outcomes)
    fresh = sum(outcome.fresh for outcome in outcomes)
    lines.append(
        f"{len(outcomes)} rounds, {fresh} of them with nothing kept, {attached} attachments: "
        f"{kinds['death']} deaths, {kinds['wrong']} wrong results, "
        f"{kinds['error']} errors of livepro's beside unharmed programs"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
