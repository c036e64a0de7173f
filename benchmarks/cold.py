"""What new code costs: python -m benchmarks.cold [NAME ...].

Programs that execute much code once (a compiler, an interpreter's and a virtual machine's start), natively,
under livepro with nothing kept, again with what the first run has kept, and under Valgrind's exp-bbv, one
after the other. Wall seconds of one run each, but for the native ones and those again: the fastest of three.
A program that is not installed has no row.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_LINES = 60
_ONE = "int f{n}(int *p, int k) {{ int s = 0; for (int i = 0; i < k; i++) s += p[i] * {n}; return s; }}\n"
_FILES = {
    "sixty.c": "".join(_ONE.format(n=n) for n in range(_LINES)),
    "hello.rs": 'fn main() { println!("hello"); }\n',
    "json.js": "const a = [];\nfor (let i = 0; i < 200000; i++) a.push({i, s: 'x' + i});\n"
    "console.log(JSON.stringify(JSON.parse(JSON.stringify(a))).length);\n",
    "Hello.java": 'class Hello { public static void main(String[] a) { System.out.println("hello"); } }\n',
}
_HEADINGS = ("program", "native", "first time", "again", "exp-bbv")


def programs(directory: Path) -> dict[str, list[str]]:
    """The commands that can be measured here, by name; their files are in `directory`."""
    for name, text in _FILES.items():
        (directory / name).write_text(text)
    commands = {
        "gcc": ["gcc", "-O2", "-S", "sixty.c"],
        "rustc": ["rustc", "-O", "hello.rs"],
        "node": ["node", "json.js"],
        "python": [sys.executable, "-E", "-c", "pass"],
        "java": ["java", "-cp", ".", "Hello"],
        "javac": ["javac", "Hello.java"],
    }
    found = {name: command for name, command in commands.items() if shutil.which(command[0])}
    if "rustc" in found:  # rustup's command starts the compiler proper, by another name
        told = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        found["rustc"][0] = f"{told.stdout.strip()}/bin/rustc"
    if "java" in found:
        subprocess.run(["javac", "Hello.java"], cwd=directory, check=True)
    return found


def seconds(directory: Path, *command: str) -> float | None:
    """Wall time of a command; None if it failed."""
    environment = {**os.environ, "LIVEPRO_CACHE_DIR": str(directory / "kept")}
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=directory, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.monotonic() - began if done.returncode == 0 else None


def fastest(directory: Path, *command: str) -> float | None:
    """The least of three runs' wall times; None if one failed."""
    times = [seconds(directory, *command) for _ in range(3)]
    return None if None in times else min(t for t in times if t is not None)


def main(names: list[str]) -> None:
    """Print a table."""
    livepro = (sys.executable, "-m", "livepro", "run", "--quiet", "--")
    valgrind = ("valgrind", "--tool=exp-bbv", "--trace-children=yes", "--bb-out-file=/dev/null")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        fastest(directory, *livepro, "true")  # livepro's own start, its files in the page cache
        shutil.rmtree(directory / "kept", ignore_errors=True)
        print(f"{_HEADINGS[0]:<10}" + "".join(f"{heading:>12}" for heading in _HEADINGS[1:]), flush=True)
        for program, command in programs(directory).items():
            if names and program not in names:
                continue
            times = (
                fastest(directory, *command),
                seconds(directory, *livepro, *command),
                fastest(directory, *livepro, *command),
                seconds(directory, *valgrind, *command) if shutil.which("valgrind") else None,
            )
            shown = ("-" if t is None else f"{t:.2f}" for t in times)
            print(f"{program:<10}" + "".join(f"{cell:>12}" for cell in shown), flush=True)
            shutil.rmtree(directory / "kept", ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
