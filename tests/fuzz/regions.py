"""Regions of random size over all assembly fixtures whose totals are proved.

    PYTHONPATH=tests:. python -m fuzz.regions [--engine NAME] [--seed SEED] [--rounds N] [FIXTURE...]

Each is run with some instructions to be skipped, and some or all of the rest to be counted;
whatever is counted otherwise, warned of, or hangs, is printed. (Where several threads run at once a
region may begin or end late, if it is said so: such are printed, too, and to be judged.)
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from engines.region_contract import Case, run_cases

from fixtures import Builder, Fixture, assembly

_CASES = 6
"""Regions of one fixture."""

_LONGEST = 300_000
"""Instructions of the longest fixture that is run."""

_NOT = ("commands", "mov_ss")
"""Fixtures that begin to count anew by themselves, and whose total depends on the engine's stops."""


def suitable(fixture: Fixture) -> bool:
    """Whether a fixture's total is exact, and this machine can run it."""
    if fixture.name in _NOT or fixture.heavy or fixture.fuzzy or fixture.missing or fixture.varies:
        return False
    return 1 < fixture.instructions <= _LONGEST


def cases(rng: random.Random, total: int) -> list[Case]:
    """Regions within a run of `total` instructions."""
    out: list[Case] = []
    for _ in range(_CASES):
        skip = rng.randrange(1, total if total < 400 or rng.random() < 0.6 else 200)
        count = rng.choice((0, 0, rng.randrange(1, total - skip + 1)))
        out.append({"skip": skip, "count": count, "interval_size": rng.choice((0, 0, 13))})
    return out


def failures(engine: str, fixture: Fixture, builder: Builder, rng: random.Random) -> list[str]:
    """What is wrong with regions of a fixture."""
    program, total = builder.assembly(fixture), fixture.instructions
    asked = cases(rng, total)
    try:
        seen = run_cases(engine, program, asked, builder.directory, *fixture.args)
    except subprocess.TimeoutExpired:
        return [f"{fixture.name}: one of {asked} hangs"]
    except AssertionError as error:
        return [f"{fixture.name}: {asked}: {error}"]
    out = []
    for case, answer in zip(asked, seen, strict=True):
        want = case["count"] or total - case["skip"]
        intervals = want if case["interval_size"] else 0
        expected = {"instructions": want, "intervals": intervals, "faults": [], "warnings": []}
        if answer != answer | expected:
            out.append(f"{fixture.name}: {case}: {want} expected, but {answer}")
    return out


def main() -> int:
    """Run; return 1 when something was wrong."""
    parser = argparse.ArgumentParser("python -m fuzz.regions", description=__doc__)
    parser.add_argument("--engine", default="translate")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(1 << 32)))
    parser.add_argument("--rounds", type=int, default=1, help="how often to go through all fixtures")
    parser.add_argument("fixture", nargs="*", help="names of fixtures (default: all)")
    args = parser.parse_args()
    print(f"seed {args.seed}, engine {args.engine}", flush=True)
    rng, found = random.Random(args.seed), 0
    with tempfile.TemporaryDirectory() as directory:
        builder = Builder(Path(directory))
        for _ in range(args.rounds):
            for fixture in assembly():
                if suitable(fixture) and (not args.fixture or fixture.name in args.fixture):
                    for failure in failures(args.engine, fixture, builder, rng):
                        print(failure, flush=True)
                        found += 1
    print(f"{found} failures")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
