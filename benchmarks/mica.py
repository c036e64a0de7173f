"""What each of MICA's analyses costs: python -m benchmarks.mica [MB].

gzip of so many MB (10 by default) of hexadecimal text, with kernels compiled and translations kept by a run
before. One run each: compare the rows of one table. Seconds are the whole command's, livepro's start and its
table included.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ANALYSES = ("itypes", "stride", "memfootprint", "ppm", "reg", "ilp", "memstackdist", "all")
PROGRAM = ("gzip", "-kfc", "input")


def seconds(directory: Path, *prefix: str) -> tuple[float, str]:
    """Wall time of the program behind a prefix, and what was written to standard error."""
    began = time.monotonic()
    done = subprocess.run(
        [*prefix, *PROGRAM],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return time.monotonic() - began, done.stderr


def main(megabytes: float) -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "input").write_text(random.Random(1).randbytes(int(megabytes * 500_000)).hex())
        native = min(seconds(directory)[0] for _ in range(3))
        print(f"{'analyses':<16}{'seconds':>9}{'x native':>10}{'ns/instr.':>11}")
        print(f"{'(native)':<16}{native:>9.2f}{1:>10.1f}")
        for analysis in ANALYSES:
            command = [sys.executable, "-m", "livepro", "mica", "--no-files", "--analyses", analysis, "--"]
            seconds(directory, *command)
            taken, told = seconds(directory, *command)
            found = re.search(r"^([0-9,]+) instructions", told, re.MULTILINE)
            assert found, told
            instructions = int(found[1].replace(",", ""))
            print(f"{analysis:<16}{taken:>9.2f}{taken / native:>10.1f}{taken / instructions * 1e9:>11.2f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
