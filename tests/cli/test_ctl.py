"""`livepro ctl` and --metrics on runs in progress."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fixtures import Builder

ENGINES = ("step", "block", "translate")


class Run:
    """`livepro run` of a program that works when it is told to (fixtures/c/control.c)."""

    def __init__(self, directory: Path, program: Path, *options: str) -> None:
        self.report = directory / "report.json"
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "XDG_RUNTIME_DIR": str(directory),
            "HOME": str(directory),
        }
        command = [sys.executable, "-m", "livepro", "run", "-q", "--json", str(self.report), *options]
        self.livepro = subprocess.Popen(
            [*command, "--", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
        )
        assert self.livepro.stdout is not None
        assert self.livepro.stdout.readline() == b"ready\n"

    def work(self, letter: str) -> None:
        assert self.livepro.stdin is not None
        assert self.livepro.stdout is not None
        self.livepro.stdin.write(letter.encode())
        self.livepro.stdin.flush()
        assert self.livepro.stdout.read(1) == letter.encode()

    def ctl(self, pid: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "livepro", "ctl", str(pid), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=60)

    def ask(self, pid: int, *arguments: str) -> dict[str, Any]:
        done = self.ctl(pid, *arguments)
        assert (done.stderr, done.returncode) == ("", 0)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def end(self) -> dict[str, Any]:
        _, stderr = self.livepro.communicate(b".", timeout=60)
        assert (stderr, self.livepro.returncode) == (b"", 0)
        found: dict[str, Any] = json.loads(self.report.read_text())
        return found


@pytest.fixture
def program(builder: Builder) -> Path:
    return builder.hosted("control", "-static")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_commands_from_another_terminal(engine: str, program: Path, tmp_path: Path) -> None:
    run = Run(tmp_path, program, "--engine", engine)
    status = run.ask(run.livepro.pid, "status")
    (pid,) = status["pids"]
    assert (status["engine"], status["paused"], status["threads"]) == (engine, False, 1)
    run.work("A")
    assert run.ask(pid, "reset")["instructions"] < 100
    run.work("B")
    run.ask(pid, "snapshot", "it's B")
    assert run.ask(pid, "pause")["paused"]
    run.work("Z")
    assert not run.ask(pid, "resume")["paused"]
    report = run.end()
    (snapshot,) = report["snapshots"]
    assert (snapshot["label"], snapshot["resets"]) == ("it's B", 1)
    assert 2 * 200 < snapshot["instructions"] < 2 * 200 + 100
    assert 2 * 200 < report["instructions"] < 2 * 2600  # without Z's 26 portions


def test_detach(engine: str, program: Path, tmp_path: Path) -> None:
    """The program goes on unmeasured, and its status is still livepro's."""
    run = Run(tmp_path, program, "--engine", engine)
    run.work("A")
    run.ask(run.livepro.pid, "detach")
    while not run.report.exists():
        time.sleep(0.01)
    run.work("Z")
    report = run.end()
    assert report["exit"] is None
    assert 2 * 100 < report["instructions"] < 200_000


def test_commands_to_an_attached_run(program: Path, tmp_path: Path) -> None:
    """By the pid of the process, or of the `livepro attach` that was started."""
    target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert target.stdin is not None
    assert target.stdout is not None
    assert target.stdout.readline() == b"ready\n"
    run = Run.__new__(Run)
    run.environment = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "livepro", "attach", "-q", "--json", str(report), str(target.pid)]
    front = subprocess.Popen(command, env=run.environment, stderr=subprocess.PIPE)
    while not list(tmp_path.glob("livepro/*.sock")) or run.ctl(front.pid, "status").returncode:
        time.sleep(0.05)
    while run.ask(target.pid, "status")["threads"] < 1:
        time.sleep(0.05)
    run.ask(front.pid, "reset")
    target.stdin.write(b"B")
    target.stdin.flush()
    assert target.stdout.read(1) == b"B"
    run.ask(target.pid, "detach")
    assert front.communicate(timeout=60)[1] == b""
    assert target.communicate(b".", timeout=10)[0] == b""
    assert (front.returncode, target.returncode) == (0, 0)
    assert 2 * 200 < json.loads(report.read_text())["instructions"] < 2 * 200 + 100


def test_the_socket_is_private(program: Path, tmp_path: Path) -> None:
    run = Run(tmp_path, program)
    (path,) = (tmp_path / "livepro").iterdir()
    assert path.name == f"{run.livepro.pid}.sock"
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    run.end()
    assert list(path.parent.iterdir()) == []


def test_errors_say_what_to_do(program: Path, tmp_path: Path) -> None:
    run = Run(tmp_path, program)
    for arguments, said in [
        ((str(os.getpid()), "status"), f"Runs in progress: {run.livepro.pid} (measuring "),
        ((str(run.livepro.pid), "rest"), "invalid choice"),
        ((str(run.livepro.pid), "reset", "x"), "takes no label"),
        (("x", "reset"), "invalid int"),
    ]:
        done = run.ctl(*arguments)  # type: ignore[arg-type]
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
    run.end()
    done = run.ctl(run.livepro.pid, "status")
    assert done.returncode == 2
    assert "None is in progress." in done.stderr


def test_a_foreign_directory_is_not_used(program: Path, tmp_path: Path) -> None:
    (tmp_path / "livepro").mkdir(mode=0o755)
    run = Run(tmp_path, program)
    report = run.end()
    assert "that only you can enter" in report["warnings"][0]


NAME = "[a-zA-Z_][a-zA-Z0-9_]*"
SAMPLE = re.compile(
    rf'({NAME})(?:\{{({NAME}="(?:[^"\\\n]|\\[\\"n])*"(?:,{NAME}="(?:[^"\\\n]|\\[\\"n])*")*)\}})? (\S+)'
)
SUFFIXES = {"counter": "_total", "info": "_info", "gauge": ""}


def openmetrics(text: str) -> dict[str, list[tuple[str, float]]]:
    """Samples by name, the text being checked against the specification's grammar: a family's
    TYPE and HELP stand before its samples, whose names have its suffix; no family comes twice."""
    assert text.endswith("# EOF\n")
    found: dict[str, list[tuple[str, float]]] = {}
    family = kind = ""
    seen = set()
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in seen
            seen.add(family)
        elif line.startswith("# HELP "):
            assert line.split(" ")[2] == family
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == family + SUFFIXES[kind]
            labels = match[2] or ""
            assert labels not in [known for known, _ in found.get(match[1], [])]
            value = float(match[3])
            assert kind != "counter" or value >= 0
            found.setdefault(match[1], []).append((labels, value))
    return found


def test_metrics(program: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run = Run(tmp_path, program, "--metrics", f":{port}")
    totals = []
    for letter in "AZ":
        run.work(letter)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert (
                answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
            )
            samples = openmetrics(answer.read().decode())
        ((labels, instructions),) = samples["livepro_instructions_total"]
        assert f'thread="{program.name[:15]}"' in labels
        totals.append(instructions)
        assert samples["livepro_threads"] == [("", 1.0)]
        assert samples["livepro_counting"] == [("", 1.0)]
        assert 'engine="translate"' in samples["livepro_run_info"][0][0]
    assert 2 * 2600 < totals[1] - totals[0] < 2 * 2600 + 100
    taken = subprocess.run(
        [sys.executable, "-m", "livepro", "run", "--metrics", f":{port}", "--", "/bin/true"],
        capture_output=True,
        text=True,
        env=run.environment,
    )
    assert taken.returncode == 2
    assert f"Cannot serve metrics at 127.0.0.1:{port}" in taken.stderr
    run.end()


def ask_for_metrics(port: int, *headers: str) -> bytes:
    """The first line of the answer to a request with these headers."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join(("GET / HTTP/1.1", *headers, "Connection: close", "", "")).encode())
        with connection.makefile("rb") as answer:
            return answer.readline().strip()


def test_whoever_asks_for_metrics_does_no_harm(program: Path, tmp_path: Path) -> None:
    """Pages that lead another name here, requests without end, connections that say nothing: the run goes on,
    and answers those who ask properly. (`end` looks at standard error.)"""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run = Run(tmp_path, program, "--metrics", f":{port}")
    for name in (f"127.0.0.1:{port}", f"localhost:{port}", "LOCALHOST", f"[::1]:{port}"):
        assert ask_for_metrics(port, f"Host: {name}") == b"HTTP/1.0 200 OK"
    for name in (f"attacker.example:{port}", "127.0.0.1.example", "attacker.example"):
        assert ask_for_metrics(port, f"Host: {name}") == b"HTTP/1.0 421 Misdirected Request"
    silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(5)]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as endless, suppress(OSError):
        endless.sendall(b"GET /" + b"x" * (1 << 20) + b"\r\n\r\n")
        endless.recv(1)
    run.work("A")
    assert ask_for_metrics(port) == b"HTTP/1.0 200 OK"
    silent += [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(30)]
    assert silent[-1].recv(1) == b"", "turned away: enough are listened to"
    for connection in silent:
        connection.close()
    run.work("Z")
    run.end()


def test_whoever_gives_commands_does_no_harm(program: Path, tmp_path: Path) -> None:
    run = Run(tmp_path, program)
    (path,) = (tmp_path / "livepro").iterdir()
    for request in (
        b"[" * 60_000,
        b"{" * 70_000,
        b"\0\n",
        b"\xff\n",
        b'{"command": 1}\n',
        b'["status"]\n',
        b"\n",
        b"",
    ):
        with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
            connection.settimeout(30)
            connection.connect(str(path))
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                assert json.loads(answer.read())["error"] == "The request is not understood."
    silent = [socket.socket(socket.AF_UNIX) for _ in range(5)]
    for connection in silent:
        connection.connect(str(path))
    run.work("A")
    assert run.ask(run.livepro.pid, "status")
    for connection in silent:
        connection.close()
    run.end()
