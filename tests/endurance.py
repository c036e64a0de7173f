"""python -m tests.endurance: thousands of processes, code that comes and goes for hours.

For example: python -m tests.endurance --processes 10000 --rounds 15000 --ledger docs/endurance.md
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from engines.test_translate_evicting import churn, resident  # noqa: E402
from ledgers import append, row  # noqa: E402

from fixtures import Builder  # noqa: E402

HEAD = (
    "| date | commit | processor | engine | what | seconds | livepro's memory half-way, at the end "
    "| descriptors at most |\n|---|---|---|---|---|---|---|---|\n"
)
LOOP = "i=0; while [ $i -lt {} ]; do /bin/true; i=$((i+1)); done; exit 3"
LOOK = 0.5
"""Seconds between two looks at livepro."""
ENDING = 60
"""Seconds that a process may take to end whose memory is gone."""
GROWTH = 30_000
"""Bytes that livepro may grow by with each process: it tells of both its images in the end."""
SHORT, BEGINNING = 5000, 200 << 20
"""Processes of a run that can still be beginning half-way, and bytes that livepro takes to begin with."""


def main() -> int:
    """Run; return 1 when something was not as it has to be."""
    parser = argparse.ArgumentParser("python -m tests.endurance", description=__doc__)
    parser.add_argument("--engine", default="translate", choices=("step", "block", "translate"))
    parser.add_argument("--processes", type=int, default=0, help="that a shell starts, one after the other")
    parser.add_argument("--rounds", type=int, default=0, help="in which a program generates its code anew")
    parser.add_argument("--ledger", type=Path, help="add lines to the table that this document ends with")
    args = parser.parse_args()
    rows = []
    if args.processes:
        rows.append(processes(args.engine, args.processes))
    if args.rounds:
        rows.append(rounds(args.rounds))
    for cells in rows:
        print(", ".join(cells))
        if args.ledger:
            append(args.ledger, HEAD, row(*cells))
    return 0


def processes(engine: str, number: int) -> tuple[str, ...]:
    """A shell starts so many processes. Raises AssertionError when it ends otherwise than natively, one is
    not measured, or livepro grows by more than it has to tell of them."""
    began, held, most = time.monotonic(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "images"
        script = (
            "import livepro, pathlib, sys\n"
            "result = livepro.run(['/bin/sh', '-c', sys.argv[1]], engine=sys.argv[2])\n"
            "counted = sum(process.instructions > 0 for process in result.processes)\n"
            "pathlib.Path(sys.argv[3]).write_text(f'{counted} {len(result.warnings)}')\n"
            "sys.exit(result.exit)\n"
        )
        command = [sys.executable, "-c", script, LOOP.format(number), engine, str(out)]
        with subprocess.Popen(command) as run:
            while run.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    run.wait(LOOK)
                    break
                try:
                    held.append(resident(run.pid))
                    most = max(most, len(os.listdir(f"/proc/{run.pid}/fd")))
                except (AssertionError, OSError):
                    run.wait(ENDING)  # its memory goes before it can be waited for
        assert run.returncode == 3, run.returncode
        images, warnings = map(int, out.read_text().split())
    # The shell, and of each child the image that it was born with and the one that it began.
    assert (images, warnings) == (1 + 2 * number, 0)
    middle, end = held[len(held) // 2], held[-1]
    beginning = BEGINNING if number < SHORT else 0
    assert end - middle < GROWTH * number // 2 + beginning, (middle, end)
    return (engine, f"{number:,} processes", *_figures(began, middle, end), str(most))


def rounds(number: int) -> tuple[str, ...]:
    """Three threads generate code, patch it and run it in so many rounds, in a code cache that each
    round fills twice. Raises AssertionError when a count is not the proved one or memory grows."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        flushes, middle, end = churn(number, Builder(Path(folder)), Path(folder))
    what = f"code generated anew in {number:,} rounds, the code cache full {flushes:,} times"
    return ("translate", what, *_figures(began, middle, end), "-")


def _figures(began: float, middle: int, end: int) -> tuple[str, str]:
    return f"{time.monotonic() - began:.0f}", f"{middle / 1e6:.0f} MB, {end / 1e6:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
