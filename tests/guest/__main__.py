"""python -m tests.guest: run a command of this checkout on an emulated AArch64 machine."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from ..tools import todays
from .image import image
from .machine import CPUS, GuestError, run
from .packages import packages
from .parts import PARTS, Part

LIMIT = 1800.0  # seconds that a part may take


def main() -> int:
    """Run; return the command's exit status, 1 when there is none."""
    parser = argparse.ArgumentParser(
        "python -m tests.guest",
        description=__doc__,
        epilog="For example: python -m tests.guest pytest tests/engines/test_step.py -x -q",
    )
    parser.add_argument(
        "--cpu", choices=CPUS, default="cortex-a57", help="the processor (default: cortex-a57)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="give up after this (default: 900; for each part of the tests 1800)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="all tests, also the longest (without: in CI a sixth of the others)",
    )
    parser.add_argument(
        "--part", choices=[part.name for part in PARTS], action="append", help="of the tests only these"
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="COMMAND ...",
        help="what to run there (default: the tests)",
    )
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # not without ending the machine
    if args.command:
        return _command(args.command, args.cpu, args.timeout or 900.0)
    chosen = [part for part in PARTS if not args.part or part.name in args.part]
    share = todays() if os.environ.get("CI") and not args.all else (0, 1)
    return _tests(chosen, args.all, share, args.timeout or LIMIT)


def _command(command: list[str], cpu: str, timeout: float) -> int:
    began = time.monotonic()
    try:
        status = run(command, cpu=cpu, timeout=timeout)
    except GuestError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"guest: exit status {status} after {time.monotonic() - began:.0f} s", file=sys.stderr)
    return status


def _tests(parts: list[Part], everything: bool, share: tuple[int, int], timeout: float) -> int:
    """Each part on a machine of its own, as many at a time as there are processors."""
    image()
    packages()  # once, before there are several that want them
    writing = threading.Lock()
    over = threading.Event()

    def carry_out(part: Part) -> tuple[int, float]:
        began = time.monotonic()
        lines = _Lines(f"{part.name}: ", writing)
        try:
            command = part.command(everything, share)
            status = run(command, cpu=part.cpu, timeout=timeout, write=lines.write, over=over)
        except GuestError as error:
            lines.write(f"\n{error}\n".encode())
            status = 1
        lines.write(b"\n")
        return status, time.monotonic() - began

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        try:
            done = list(pool.map(carry_out, parts))
        except BaseException:
            over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for part, (status, seconds) in zip(parts, done, strict=True):
        print(f"guest: {part.name}: exit status {status} after {seconds:.0f} s", file=sys.stderr)
    return max(status for status, _ in done)


class _Lines:
    """What one of several machines prints: line by line, with its name before each."""

    def __init__(self, prefix: str, writing: threading.Lock) -> None:
        self._prefix = prefix.encode()
        self._writing = writing
        self._rest = b""

    def write(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        with self._writing:
            for line in lines:
                if line.strip():
                    sys.stdout.buffer.write(self._prefix + line.rstrip() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
