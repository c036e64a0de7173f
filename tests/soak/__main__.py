"""Attach to busy programs and let them go, many times: their results must be right, nothing may remain.

    python -m tests.soak [--times N] [--seconds S] [--engine NAME] [PROGRAM ...]

Programs: waits (threads in every kind of system call), python, java, shell.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from attach.observe_attach import observe  # noqa: E402
from attach.targets import Target  # noqa: E402

from fixtures import Builder  # noqa: E402

PYTHON = """
import signal, sys
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
print("ready", flush=True)
wrong = 0
while not over:
    words = {}
    for n in range(5000):
        words[str(n * 7919 % 1009)] = words.get(str(n * 7919 % 1009), 0) + n
    wrong += sum(words.values()) != 12497500
print("wrong", wrong)
"""

JAVA = """
import java.util.*;
import java.util.stream.*;
public class Busy {
    static volatile boolean over;
    static long work(int seed) {
        Map<Integer, Long> sums = new HashMap<>();
        for (int n = 0; n < 20000; n++) sums.merge((n * 31 + seed) % 997, (long) n, Long::sum);
        return sums.values().stream().mapToLong(Long::longValue).sum();
    }
    public static void main(String[] arguments) throws Exception {
        long[] wrong = new long[4];
        Thread[] threads = new Thread[4];
        for (int t = 0; t < 4; t++) {
            int own = t;
            threads[t] = new Thread(() -> { while (!over) if (work(own) != 199990000L) wrong[own]++; });
            threads[t].start();
        }
        System.out.println("ready");
        System.in.read();
        over = true;
        for (Thread thread : threads) thread.join();
        System.out.println("wrong " + LongStream.of(wrong).sum());
    }
}
"""


def waits(directory: Path) -> Target:
    return Target(Builder(directory).hosted("attach_waits"), "4")


def python(directory: Path) -> Target:
    return Target(sys.executable, "-c", PYTHON)


def java(directory: Path) -> Target:
    (directory / "Busy.java").write_text(JAVA)
    subprocess.run(["javac", "-d", str(directory), str(directory / "Busy.java")], check=True)
    return Target("java", "-cp", directory, "Busy")


def shell(directory: Path) -> Target:
    return Target("sh", "-c", "echo ready; read line; echo got $line")


def finish(name: str, target: Target) -> tuple[int, str]:
    """Have a program end; its status and output."""
    if name in ("java", "shell"):
        out, _ = target.process.communicate("word\n", timeout=120)
        return target.process.returncode, out
    status, out, _ = target.end()
    return status, out


RESULTS = {
    "waits": (waits, (0, "failures 0\n")),
    "python": (python, (0, "wrong 0\n")),
    "java": (java, (0, "wrong 0\n")),
    "shell": (shell, (0, "got word\n")),
}


def soak(name: str, times: int, seconds: float, engine: str) -> None:
    """Raises AssertionError when something has gone wrong."""
    start, right = RESULTS[name]
    with tempfile.TemporaryDirectory() as place, start(Path(place)) as target:
        for number in range(1, times + 1):
            seen = observe(target.pid, engine=engine, seconds=seconds)
            assert "error" not in seen, seen
            assert target.process.poll() is None, f"{name} has ended"
            shape = target.shape()
            assert not [line for line in shape["maps"] if "memfd:livepro" in line], shape["maps"]
            assert shape["status"][0].endswith("\t0"), "somebody still traces it"
            print(f"\r{name} {number}/{times}", end="", file=sys.stderr, flush=True)
        assert finish(name, target) == right
        print(file=sys.stderr)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=100)
    options.add_argument("--seconds", type=float, default=0.3)
    options.add_argument("--engine", default="translate")
    options.add_argument("programs", nargs="*", choices=[*RESULTS, []], default=[])
    given = options.parse_args()
    for name in given.programs or RESULTS:
        if name == "java" and not shutil.which("javac"):
            raise SystemExit("there is no Java compiler")
        soak(name, given.times, given.seconds, given.engine)


if __name__ == "__main__":
    main()
