"""Attach to busy programs and let them go, many times: their results must be right, nothing may remain.

    python -m tests.soak [--times N] [--seconds S] [--engine NAME] [PROGRAM ...]

Programs: waits (threads in every kind of system call), frames (in signal handlers and the vDSO), actions
(handlers changed all the time), python, server (asked all the time), shell (bash at its prompt),
java, java-serial, java-parallel, java-shenandoah, java-z (by collector).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from attach.observe_attach import observe  # noqa: E402
from attach.targets import Target, eventually, segment_bases  # noqa: E402

from tests.soak.programs import PROGRAMS, Program  # noqa: E402


def remains(target: Target) -> list[str]:
    """What livepro has left in a process."""
    left = [f"thread {tid} is traced by {tracer}" for tid, tracer in target.tracers().items() if tracer]
    left += [f"thread {tid} has gs base {base:#x}" for tid, base in segment_bases(target.pid).items() if base]
    left += [line for line in target.shape()["maps"] if "memfd:livepro" in line]
    for entry in os.scandir(f"/proc/{target.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if "memfd:livepro" in os.readlink(entry.path):
                left.append(f"descriptor {entry.name} is livepro's")
    return left


def shape(program: Program) -> dict[str, Any]:
    """What attaching must leave as it was: mappings of code and its bytes, signal handlers and, where the
    program itself opens no files meanwhile, descriptors."""
    found = program.target.shape()
    if program.opens_files:
        del found["descriptors"]
    return found


def check_unchanged(program: Program, before: dict[str, Any]) -> None:
    """Raises AssertionError, which says what it is, if something stays other than before.

    A program may need a moment to close what it opens now and then, as a Java virtual machine
    does the control group's files.
    """
    after: dict[str, Any] = {}

    def unchanged() -> bool:
        after.update(shape(program))
        return after == before

    try:
        eventually(unchanged)
    except AssertionError:
        left = {part: (before[part], after[part]) for part in before if after[part] != before[part]}
        raise AssertionError(f"before and after: {left}") from None


def soak(name: str, times: int, seconds: float, engine: str) -> None:
    """Raises AssertionError when something has gone wrong."""
    with tempfile.TemporaryDirectory() as place:
        program = PROGRAMS[name](Path(place))
        with program.target as target:
            program.check()
            before = shape(program)
            for number in range(1, times + 1):
                seen = observe(target.pid, engine=engine, seconds=seconds)
                assert "error" not in seen, seen
                assert seen["warnings"] == [], seen["warnings"]
                program.check()
                assert remains(target) == []
                check_unchanged(program, before)
                print(f"\r{name} {number}/{times}", end="", file=sys.stderr, flush=True)
            program.finish()
        print(file=sys.stderr)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=100)
    options.add_argument("--seconds", type=float, default=0.3)
    options.add_argument("--engine", default="translate")
    options.add_argument("programs", nargs="*", choices=[*PROGRAMS, []], default=[])
    given = options.parse_args()
    for name in given.programs or PROGRAMS:
        if name.startswith("java") and not shutil.which("javac"):
            raise SystemExit("there is no Java compiler")
        soak(name, given.times, given.seconds, given.engine)


if __name__ == "__main__":
    main()
