"""Servers with a load each: how they are started, asked, and what failed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PORT = 5499


class Missing(Exception):
    """A program that a load needs is not there; the text names its package."""


@dataclass(frozen=True)
class Load:
    """A server that runs: `name` is its processes', `command` loads it for some seconds and tells what failed
    in a line that `failures` matches; `asked` matches one with how many `units` were done in all."""

    name: str
    command: tuple[str, ...]
    failures: str
    asked: str
    units: str
    user: str = ""

    def run(self, log: Path) -> subprocess.Popen[bytes]:
        """Begin to load the server; what the command says goes to `log`."""
        with log.open("wb") as out:
            return subprocess.Popen(_as(self.user, self.command), stdout=out, stderr=subprocess.STDOUT)

    def told(self, log: Path) -> tuple[int, str]:
        """How many requests failed, and what was done in all. Raises ValueError if the log does not say."""
        text = log.read_text(errors="replace")
        failed, asked = re.search(self.failures, text), re.search(self.asked, text)
        if failed is None or asked is None:
            raise ValueError(f"{self.command[0]} did not tell: {text[-500:]}")
        return int(failed[1]), f"{int(asked[1]):,} {self.units}"


def _as(user: str, command: tuple[str, ...]) -> list[str]:
    """A command of a user that is not root: PostgreSQL refuses root."""
    if not user or os.getuid():
        return list(command)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]


def _found(program: str, package: str) -> str:
    """The program's path. Raises Missing."""
    elsewhere = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))  # Debian's, not on PATH
    found = shutil.which(program, path=":".join((os.environ["PATH"], "/usr/sbin", *elsewhere[-1:])))
    if found is None:
        raise Missing(f"{program} is not there: install {package}")
    return found


@contextmanager
def _running(command: list[str], address: str | tuple[str, int]) -> Iterator[None]:
    """A server, from when it answers at its address on. Raises TimeoutError if it does not in ten seconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10
        while not _answers(address):
            if time.monotonic() > end:
                raise TimeoutError(f"{command[0]} does not answer at {address}")
            time.sleep(0.05)  # between two questions
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)


def _answers(address: str | tuple[str, int]) -> bool:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as asking:
        return asking.connect_ex(address) == 0


@contextmanager
def postgres(directory: Path, seconds: int) -> Iterator[Load]:
    """PostgreSQL under pgbench: four clients that write."""
    initdb, server, create, bench = (
        _found(name, "postgresql") for name in ("initdb", "postgres", "createdb", "pgbench")
    )
    user = "" if os.getuid() else "postgres"
    data = directory / "data"
    if user:
        shutil.chown(directory, user, user)
    reach = ("-h", str(directory), "-p", str(PORT))
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run(_as(user, (initdb, "-D", str(data))), **quiet)  # type: ignore[call-overload]
    command = _as(user, (server, "-D", str(data), "-p", str(PORT), "-k", str(directory), "-h", ""))
    with _running(command, str(directory / f".s.PGSQL.{PORT}")):
        subprocess.run(_as(user, (create, *reach, "bench")), **quiet)  # type: ignore[call-overload]
        subprocess.run(_as(user, (bench, *reach, "-i", "-q", "-s", "5", "bench")), check=True)
        yield Load(
            "postgres",
            (bench, *reach, "-c", "4", "-j", "1", "-T", str(seconds), "-P", "1", "bench"),
            r"number of failed transactions: (\d+)",
            r"number of transactions actually processed: (\d+)",
            "transactions",
            user,
        )


@contextmanager
def redis(directory: Path, seconds: int) -> Iterator[Load]:
    """redis under its own benchmark, fifty clients; it ends at the first answer that is wrong."""
    server, bench = _found("redis-server", "redis-server"), _found("redis-benchmark", "redis-tools")
    port = str(PORT + 1)
    command = [server, "--port", port, "--save", "", "--dir", str(directory)]
    with _running(command, ("127.0.0.1", PORT + 1)):
        script = f"n=0; end=$(($(date +%s) + {seconds})); while [ $(date +%s) -lt $end ]; do "
        script += f"{bench} -p {port} -q -t set,get,incr,lpush -n 100000 || exit 1; n=$((n+400000)); done; "
        script += "echo failed 0, $n"
        yield Load("redis-server", ("sh", "-c", script), r"failed (\d+)", r"failed 0, (\d+)", "requests")


@contextmanager
def nginx(directory: Path, seconds: int) -> Iterator[Load]:
    """nginx with two workers under ab, eight connections that ask for a page of a kilobyte."""
    server, bench = _found("nginx", "nginx"), _found("ab", "apache2-utils")
    port = PORT + 2
    (directory / "page").write_bytes(b"x" * 1000)
    (directory / "conf").write_text(
        f"daemon off; worker_processes 2; pid {directory}/pid; error_log {directory}/errors;\n"
        "events { worker_connections 64; }\n"
        f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; root {directory}; }} }}\n"
    )
    directory.chmod(0o755)
    command = [server, "-c", str(directory / "conf"), "-e", str(directory / "errors")]
    with _running(command, ("127.0.0.1", port)):
        address = f"http://127.0.0.1:{port}/page"
        yield Load(
            "nginx",
            (bench, "-q", "-k", "-c", "8", "-t", str(seconds), "-n", "100000000", address),
            r"Failed requests:\s+(\d+)",
            r"Complete requests:\s+(\d+)",
            "requests",
        )


LOADS = {"postgres": postgres, "redis": redis, "nginx": nginx}
