"""python -m tests.guest: run a command of this checkout on an emulated AArch64 machine."""

from __future__ import annotations

import argparse
import signal
import sys
import time

from .machine import CPUS, GuestError, run

ENGINES = sorted(f"tests/engines/test_{name}.py" for name in ("step", "block"))
TESTS = [*ENGINES, "tests/aarch64"]
EXTENSIONS = "test_proved_counts and (lse or pauth or sve)"
"""Fixtures for what a Cortex-A57 has not."""


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
        "--timeout", type=float, default=900.0, metavar="SECONDS", help="give up after this (default: 900)"
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
        return _run(args.command, args.cpu, args.timeout)
    # One boot for everything, and one on a processor that has the extensions.
    everywhere = _run(["pytest", "-q", *TESTS], "cortex-a57", args.timeout)
    return everywhere or _run(["pytest", "-q", "-k", EXTENSIONS, *ENGINES], "max", args.timeout)


def _run(command: list[str], cpu: str, timeout: float) -> int:
    began = time.monotonic()
    try:
        status = run(command, cpu=cpu, timeout=timeout)
    except GuestError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"guest: exit status {status} after {time.monotonic() - began:.0f} s", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
