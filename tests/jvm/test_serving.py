"""A Java server under load is asked about itself and signalled while measured, and answers as alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest
from jvm import jdk


def expected(n: int) -> bytes:
    """What HttpServe answers to /n."""
    digits = Counter(c for i in range(n + 1) for c in str(i * i))
    counts = ", ".join(f"{digit}={digits[digit]}" for digit in sorted(digits))
    return f"{n} {{{counts}}}\n".encode()


def fetch(port: int, n: int) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}/{n}", timeout=jdk.TIMEOUT) as answer:
        body: bytes = answer.read()
        return body


def ask(*command: str) -> str:
    """What one of the JDK's tools says of the virtual machine."""
    tool = Path(jdk.homes()["17"]) / "bin" / command[0]
    done = subprocess.run([tool, *command[1:]], capture_output=True, text=True, timeout=jdk.TIMEOUT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("collector", ["Serial", "G1", "Shenandoah"])
def test_a_server_under_load(collector: str, tmp_path: Path) -> None:
    """jcmd and jstack speak to the virtual machine through a socket, for which they send it SIGQUIT
    first; a bare SIGQUIT has it write down all its threads."""
    classes = jdk.compile_all(tmp_path / "classes")
    command = jdk.command("17", classes, "HttpServe", options=[f"-XX:+Use{collector}GC"])
    livepro = [sys.executable, "-m", "livepro", "run", "--quiet", "--json", str(tmp_path / "out.json")]
    with subprocess.Popen(
        [*livepro, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=jdk.REPOSITORY,
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        port = int(run.stdout.readline())
        pid = next(int(p) for p in os.listdir("/proc") if p.isdigit() and _serves(int(p), classes))
        requests = [n % 97 for n in range(240)]
        with ThreadPoolExecutor(6) as clients:
            answers = clients.map(lambda n: fetch(port, n), requests)
            threads = ask("jcmd", str(pid), "Thread.print")
            assert "HTTP-Dispatcher" in threads
            assert '"main"' in ask("jstack", str(pid))
            assert "used" in ask("jcmd", str(pid), "GC.heap_info")
            os.kill(pid, signal.SIGQUIT)
            assert list(answers) == [expected(n) for n in requests]
        # The dump goes to the server's standard output.
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(run.stdout or ()))
        reader.start()
        until = time.monotonic() + jdk.TIMEOUT
        while not any(line.startswith('"main"') for line in lines) and time.monotonic() < until:
            time.sleep(0.05)
        run.stdin.close()
        reader.join(jdk.TIMEOUT)
        assert run.wait(jdk.TIMEOUT) == 0
    assert any(line.startswith("Full thread dump") for line in lines)
    assert lines[-1] == "stopped\n"


def _serves(pid: int, classes: Path) -> bool:
    """Whether a process is the server's virtual machine."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"/java") and str(classes).encode() in words and b"HttpServe" in words
