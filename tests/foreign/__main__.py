"""CPython's own regression tests, natively and under livepro: each must end the same.

    python -m tests.foreign [--python PYTHON] [--engine ENGINE] [--results FILE] [TEST...]

A test file that ends otherwise under livepro is run once more, natively and under livepro, since some depend
on time; what differs twice is told, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path

TESTS = (
    *("test_signal", "test_threadsignals", "test_threading", "test_thread", "test_subprocess", "test_popen"),
    *(
        "test_fork1",
        "test_wait3",
        "test_wait4",
        "test_posix",
        "test_os",
        "test_pty",
        "test_eintr",
        "test_mmap",
    ),
    *(
        "test_faulthandler",
        "test_select",
        "test_selectors",
        "test_poll",
        "test_epoll",
        "test_socket",
        "test_ssl",
    ),
    *("test_asyncio", "test_concurrent_futures", "test_multiprocessing_fork", "test_multiprocessing_spawn"),
    *(
        "test_ctypes",
        "test_io",
        "test_gc",
        "test_sys",
        "test_sys_settrace",
        "test_generators",
        "test_exceptions",
    ),
    *("test_zlib", "test_bz2", "test_lzma", "test_hashlib", "test_sqlite3", "test_decimal", "test_float"),
)
LIMIT = 1800  # seconds for a test file under livepro


def outcomes(command: list[str], test: str, directory: Path) -> tuple[dict[str, str], float]:
    """How each case of a test file ended, by name, and the seconds that took."""
    report = directory / "report.xml"
    report.unlink(missing_ok=True)
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "-m", "test", "-q", "--junit-xml", str(report), test],
            cwd=directory,
            capture_output=True,
            timeout=LIMIT,
        )
        status = str(done.returncode)
    except subprocess.TimeoutExpired:
        status = "not ended"
    seconds = time.monotonic() - began
    found = {"(exit status)": status}
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            found[case.get("name", "?")] = kinds[0] if kinds else case.get("result", "completed")
    return found, seconds


def different(first: dict[str, str], second: dict[str, str]) -> list[str]:
    return [
        f"{name}: natively {first.get(name, '-')}, under livepro {second.get(name, '-')}"
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.add_argument("tests", nargs="*", default=TESTS)
    parser.add_argument("--python", default=sys.executable, help="the interpreter, with its test package")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--results", type=Path, help="append a line of JSON for each test file")
    args = parser.parse_args()
    check = subprocess.run([args.python, "-c", "import test.libregrtest"], capture_output=True)
    if check.returncode:
        print(f"{args.python} has no test package; Debian's is libpython3-testsuite.", file=sys.stderr)
        return 2
    under = [sys.executable, "-m", "livepro", "run", "-q", "--engine", args.engine, "--", args.python]
    bad = cases = 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for test in args.tests:
            for _ in range(2):
                native, natively = outcomes([args.python], test, directory)
                measured, seconds = outcomes(under, test, directory)
                differs = different(native, measured)
                if not differs:
                    break
            cases += len(native) - 1
            bad += bool(differs)
            verdict = "the same" if not differs else f"{len(differs)} different"
            print(f"{test:<28} {len(native) - 1:>5} cases  {verdict:<14} {natively:7.1f} s  {seconds:7.1f} s")
            for line in differs:
                print(f"    {line}")
            sys.stdout.flush()
            if args.results is not None:
                row = {
                    "date": datetime.now(UTC).isoformat(timespec="seconds"),
                    "test": test,
                    "cases": len(native) - 1,
                    "different": differs,
                    "seconds": [round(natively, 1), round(seconds, 1)],
                }
                with args.results.open("a") as out:
                    out.write(json.dumps(row) + "\n")
    print(f"{cases} cases, {bad} test files with differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
