"""Make livepro fail while it is attached, one thing in each attachment: the program must go on.

    python -m tests.injection [--target NAME] [--engine NAME] [--times N --seed S]
    python -m tests.injection --only detaching:Detacher.part --phase detach --kinds RuntimeError,KILL
    python -m tests.injection --again deaths.json
    python -m tests.injection --part 2/3

Without --times, every function that runs while attached fails at its first, second and last call in each
phase; with it, so many faults are drawn. Prints the table of survivors; ends with status 1 if a program
did not survive.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fixtures import Builder  # noqa: E402
from injection.campaign import Campaign, Outcome, exhaustive, sampled  # noqa: E402
from injection.faults import ERRORS, KINDS, MOMENTS, PHASES, Fault  # noqa: E402
from injection.table import table  # noqa: E402
from injection.targets import TARGETS  # noqa: E402
from injection.tracer import Tracers  # noqa: E402


def _list(text: str) -> list[str]:
    return text.split(",")


def _part(text: str) -> tuple[int, int]:
    """Which part of how many. Raises ValueError for others than 1/N to N/N."""
    part, of = map(int, text.split("/"))
    if not 1 <= part <= of:
        raise ValueError(text)
    return part, of


def options() -> argparse.ArgumentParser:
    """The command line."""
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--target", choices=TARGETS, default="threads", help="what is attached to")
    out.add_argument("--engine", default="translate", choices=("translate", "block", "step"))
    out.add_argument("--duration", default="", help="how long each attachment is")
    out.add_argument("--times", type=int, default=0, help="draw so many faults instead of making all")
    out.add_argument(
        "--seed", type=int, default=0, help="what is drawn, or begun with, by (default: the time)"
    )
    out.add_argument("--kept", action="store_true", help="begin with what the last attachment kept")
    out.add_argument("--only", default="", help="points whose name contains this")
    out.add_argument("--phase", choices=PHASES, help="faults of this phase only")
    out.add_argument(
        "--kinds",
        type=_list,
        default=list(ERRORS),
        help=f"of {', '.join(KINDS)}, in turn (default: %(default)s)",
    )
    out.add_argument("--every-kind", action="store_true", help="all of them at each point, not in turn")
    out.add_argument(
        "--moments",
        type=_list,
        default=[*MOMENTS[:1]],
        help=f"of {', '.join(MOMENTS)} (default: {MOMENTS[0]})",
    )
    out.add_argument("--number", type=int, default=0, help="this call only")
    out.add_argument(
        "--part", type=_part, default=(1, 1), metavar="K/N", help="every Nth of the faults, from the Kth on"
    )
    out.add_argument("--results", type=Path, help="write what became of each here, as JSON lines")
    out.add_argument(
        "--again", type=Path, help="make those faults again that were not survived, of such a file"
    )
    out.add_argument("--seconds", type=float, default=0, help="stop after so long")
    out.add_argument("--all", action="store_true", help="list what failed without harm, too")
    return out


def faults(given: argparse.Namespace, campaign: Campaign) -> list[Fault]:
    """What is asked for."""
    if given.again is not None:
        outcomes = map(Outcome.read, map(json.loads, given.again.read_text().splitlines()))
        return [outcome.fault for outcome in outcomes if not outcome.survived]
    points = campaign.record()
    for point in [*points]:
        if given.only not in point.name or given.phase not in (None, point.phase):
            del points[point]
    found: Iterable[Fault]
    seed = given.seed or int(time.time())
    print(f"seed {seed}", flush=True)
    if given.times:
        found = sampled(points, given.times, seed, given.kinds)
    else:
        found = exhaustive(points, given.kinds, given.moments, seed, given.every_kind)
    part, of = given.part
    return [fault for fault in found if given.number in (0, fault.number)][part - 1 :: of]


def prepare() -> None:
    """Have compiled what translates new code. A run that finds nothing has it done by a process that is
    nobody's child: here it would be adopted, and waited for as if it were livepro."""
    if platform.machine() != "x86_64":
        return
    from livepro.engines.translate.translator.x86_64.compiler import Compiler

    if Compiler().prepared is False:
        subprocess.run([sys.executable, "-m", "livepro", "doctor", "--prepare"], cwd=ROOT, check=True)


def main() -> int:
    """Returns the exit status."""
    given = options().parse_args()
    prepare()
    outcomes: list[Outcome] = []
    until = time.monotonic() + (given.seconds or 1e9)
    with tempfile.TemporaryDirectory(prefix="livepro-injection-") as name:
        place = Path(name)
        tracers = Tracers(place)
        duration = given.duration or ("0.03s" if given.target == "threads" else "0.3s")
        campaign = Campaign(tracers, Builder(place), given.target, given.engine, duration, not given.kept)
        for fault in (todo := faults(given, campaign)):
            outcome = campaign.make(fault)
            outcomes.append(outcome)
            if given.results is not None:
                with given.results.open("a") as file:
                    file.write(json.dumps(outcome.document()) + "\n")
            if not outcome.survived:
                print(f"{fault}{'' if outcome.made else ' (not made)'}: {outcome.verdict}", flush=True)
            if time.monotonic() > until:
                print(f"stopped after {len(outcomes)} of {len(todo)}")
                break
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)}/{len(todo)}", end="", file=sys.stderr, flush=True)
    print(table(outcomes, given.all))
    return 0 if all(outcome.survived for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
