"""KCachegrind itself opens what is written for it, in a window of its own, and has no complaint."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import needed

from fixtures import ROOT

PATIENCE = 60.0
COMPLAINT = re.compile(r'^Loading ".*" : (\d+) :', re.MULTILINE)
"""What it says of a line that it cannot read (tracedata/fileloader.cpp)."""
SOURCE = """\
static int numbers[4096];
__attribute__((noinline)) static int walk(int step) {
    int sum = 0;
    for (int at = 0; at < 4096; at += step)
        sum += numbers[at] * at;
    return sum;
}
int main(void) {
    int sum = 0;
    for (int step = 1; step < 20; step++)
        sum += walk(step);
    return sum != 0;
}
"""


def livepro(*arguments: str | Path, cwd: Path) -> None:
    command = [sys.executable, "-m", "livepro", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `cachegrind.out`, with every event, and `callgrind.out`, of one program."""
    there = tmp_path_factory.mktemp("opened")
    (there / "prog.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-o", "prog", "prog.c"], cwd=there, check=True)
    option = "--cachegrind-out-file"
    livepro("run", "-q", "--cachesim", "--branch-sim", option, "cachegrind.out", "--", "./prog", cwd=there)
    livepro("run", "-q", "--json", "run.json", "--", "./prog", cwd=there)
    livepro("export", "run.json", "--to", "callgrind", "-o", "callgrind.out", cwd=there)
    return there


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    """An X server without a screen."""
    server = needed("Xvfb", "xvfb")
    reading, writing = os.pipe()
    with subprocess.Popen(
        [server, "-displayfd", str(writing), "-screen", "0", "1024x768x24", "-nolisten", "tcp"],
        pass_fds=[writing],
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(writing)
        with open(reading) as told:
            number = told.readline().strip()
        yield f":{number}"
        process.terminate()


def opened(file: Path, display: str, home: Path) -> tuple[str, list[int]]:
    """Open a file in KCachegrind: the title of its window once that names the program, and the numbers of
    the lines that it could not read. Raises AssertionError when there is none."""
    bus, program = needed("dbus-run-session", "dbus-daemon"), needed("kcachegrind", "kcachegrind")
    finder = needed("xdotool", "xdotool")
    environment = {**os.environ, "DISPLAY": display, "HOME": str(home), "LC_ALL": "C.UTF-8"}
    environment.pop("XDG_CONFIG_HOME", None)
    said = home / "said"
    with said.open("wb") as output:
        running = subprocess.Popen(
            [bus, "--", program, file.name],
            cwd=file.parent,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + PATIENCE
        while True:
            search = [finder, "search", "--onlyvisible", "--name", "."]
            found = subprocess.run(search, env=environment, capture_output=True, text=True).stdout.split()
            titles = [
                subprocess.run(
                    [finder, "getwindowname", window], env=environment, capture_output=True, text=True
                ).stdout.strip()
                for window in found
            ]
            named = [title for title in titles if file.name in title]
            if named:
                return named[0], [int(line) for line in COMPLAINT.findall(said.read_text())]
            assert not any(title.startswith("Error") for title in titles), said.read_text()
            assert running.poll() is None, said.read_text()
            assert time.monotonic() < end, (titles, said.read_text())
            time.sleep(0.2)  # (`search --sync` would wait for ever for a window of who has died)
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended, which is told above
            os.killpg(running.pid, 9)
        running.wait()


@pytest.mark.parametrize("name", ["cachegrind.out", "callgrind.out"])
def test_what_is_written_for_it(name: str, files: Path, display: str, tmp_path: Path) -> None:
    title, complaints = opened(files / name, display, tmp_path)
    assert title.startswith(f"{name} [./prog]")
    assert complaints == []


def test_it_would_complain(files: Path, display: str, tmp_path: Path) -> None:
    """Of the line that has one count more than there are events, and of no other."""
    lines = (files / "cachegrind.out").read_text().split("\n")
    at = next(number for number, line in enumerate(lines) if re.fullmatch(r"\d+( \d+)+", line))
    lines[at] += " 1"
    (files / "damaged.out").write_text("\n".join(lines))
    title, complaints = opened(files / "damaged.out", display, tmp_path)
    assert "damaged.out" in title
    assert complaints == [at + 1]
