"""How fast `livepro trace` writes each format, and how large that is: python -m benchmarks.trace [MB].

gzip of so many MB (1 by default) of hexadecimal text. One run each: compare the rows of one table.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FILES = (
    "/dev/null",
    "t.champsim",
    "t.champsim.gz",
    "t.champsim.xz",
    "t.din",
    "t.lackey",
    "t.ramulator2",
    "t.npz",
)
_LINE = re.compile(r"trace  .*, ([0-9.]+) s, ")


def main(megabytes: float) -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "input").write_text(random.Random(1).randbytes(int(megabytes * 500_000)).hex())
        print(f"{'file':<16}{'seconds':>9}{'Minstr./s':>11}{'bytes/instr.':>14}")
        for file in FILES:
            done = subprocess.run(
                [sys.executable, "-m", "livepro", "trace", "-o", file, "--", "gzip", "-kfc", "input"],
                cwd=directory,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=True,
            )
            found = _LINE.search(done.stderr)
            assert found, done.stderr
            seconds = float(found[1])
            instructions = int(done.stderr.splitlines()[-1].split()[0].replace(",", ""))
            path = directory / file
            size = path.stat().st_size if path.is_file() else 0
            print(
                f"{file:<16}{seconds:>9.1f}{instructions / seconds / 1e6:>11.1f}{size / instructions:>14.2f}"
            )
            if path.is_file():
                path.unlink()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1)
