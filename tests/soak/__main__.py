"""Attach to busy programs and let them go, many times: their results must be right, nothing may remain.

    python -m tests.soak [--times N] [--seconds S] [--engine NAME] [PROGRAM ...]

Programs: waits (threads in every kind of system call), frames (in signal handlers and the vDSO), actions
(handlers changed all the time), python, server (asked all the time), shell (bash at its prompt),
java, java-serial, java-parallel, java-z (by collector).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from attach.observe_attach import observe  # noqa: E402
from attach.targets import Target, segment_bases  # noqa: E402

from tests.soak.programs import PROGRAMS  # noqa: E402


def remains(target: Target) -> list[str]:
    """What livepro has left in a process."""
    shape = target.shape()
    left = [line for line in shape["maps"] if "memfd:livepro" in line]
    left += [f"thread {tid} is traced by {tracer}" for tid, tracer in target.tracers().items() if tracer]
    left += [f"thread {tid} has gs base {base:#x}" for tid, base in segment_bases(target.pid).items() if base]
    return left


def soak(name: str, times: int, seconds: float, engine: str) -> None:
    """Raises AssertionError when something has gone wrong."""
    with tempfile.TemporaryDirectory() as place:
        program = PROGRAMS[name](Path(place))
        with program.target as target:
            descriptors = target.shape()["descriptors"] if name == "waits" else None
            for number in range(1, times + 1):
                seen = observe(target.pid, engine=engine, seconds=seconds)
                assert "error" not in seen, seen
                assert seen["warnings"] == [], seen["warnings"]
                program.check()
                assert remains(target) == []
                if descriptors is not None:
                    assert target.shape()["descriptors"] == descriptors
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
