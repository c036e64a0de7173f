"""python -m tests.fuzz: as many random programs as fit into the time given."""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from ..ledgers import append, row
from .build import placement
from .campaign import Campaign
from .generator import sequence
from .runner import UnderEngine, available_engines
from .table import coverage

_FEWEST, _MOST = 60, 4000  # sequences in a program: a run of livepro costs as much as hundreds of them
HEAD = (
    "| date | commit | processor | seed | engines | sequences | instructions | encodings | failures |\n"
    "|---|---|---|---|---|---|---|---|---|\n"
)


def main() -> int:
    """Run; return 1 when something differed."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on (default: 60)")
    parser.add_argument("--seed", help="start from this seed (default: a random one, printed)")
    parser.add_argument(
        "--engine", action="append", nargs="+", choices=available_engines(), help="engines (default: all)"
    )
    parser.add_argument("--sequence", help="only the sequence of this seed, as a failure names it")
    parser.add_argument("--count", type=int, help="sequences in a program (default: by the time)")
    parser.add_argument("--keep-going", action="store_true", help="do not end with the first failure")
    parser.add_argument("--directory", type=Path, help="where to keep files (default: a new one)")
    parser.add_argument(
        "--strict", action="store_true", help="after a fault, compare dead flags, too (see deadflags.py)"
    )
    parser.add_argument("--ledger", type=Path, help="add a line to the table that this document ends with")
    args = parser.parse_args()
    names = [name for group in args.engine or [available_engines()] for name in group]
    directory = args.directory or Path(tempfile.mkdtemp(prefix="livepro-fuzz."))
    directory.mkdir(parents=True, exist_ok=True)
    engines = {name: UnderEngine(name) for name in names}
    campaign = Campaign(engines, directory, strict=args.strict)
    if args.sequence:
        place = placement(args.sequence.rpartition(":")[0])
        reports = campaign.run([sequence(args.sequence, place.options())], place, "one")
        print("\n\n".join(reports) or "no difference")
        return bool(reports)
    seed = args.seed or str(random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}, engines {', '.join(names)}, files in {directory}", flush=True)
    end = time.monotonic() + args.seconds
    failed = number = 0
    count = args.count or max(_FEWEST, min(_MOST, int(2 * args.seconds)))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):  # what has been run until then is told all the same
        while time.monotonic() < end:
            reports = campaign.program(f"{seed}.{number}", count)
            number += 1
            for report in reports:
                print(report, end="\n\n", flush=True)
            failed += len(reports)
            if failed and not args.keep_going:
                break
    ran = campaign.sequences_run
    executed = sum(campaign.instructions.values())
    covered = coverage(campaign.codes)
    print(f"{number} programs, {ran} sequences, {failed} failures. Encodings executed, of those there are:")
    for family, (met, of) in covered.items():
        print(f"  {family:<8} {met:>6,} of {of:>6,}")
    if args.ledger:
        met, of = (sum(column) for column in zip(*covered.values(), strict=True))
        cells = (f"`{seed}`", " ".join(names), f"{ran:,}", f"{executed:,}", f"{met:,} of {of:,}", failed)
        append(args.ledger, HEAD, row(*cells))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
