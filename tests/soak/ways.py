"""The ways in which livepro is at work on a program in a round."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import urllib.request
from collections.abc import Callable

from attach.targets import eventually

from fixtures import Builder
from livepro.linux import proc
from soak.program import Program
from soak.runtimes import RUNTIMES, UNTIL, judge
from soak.scene import PATIENCE, LiveproFailed, Scene

_LONGEST = {"step": 0.7, "block": 1.5}
_KEYS = "0123456789jkhlsrfp?\t\r\x1b /xyn"


def _attach(scene: Scene, program: Program, engine: str, *more: str) -> None:
    seconds = scene.moment(longest=_LONGEST.get(engine, 3.0))
    arguments = ("--engine", engine, "--duration", f"{seconds:.4f}s", "-q", "--no-live", *more)
    with scene.livepro("attach", program.target.pid, *arguments):
        pass


def once(scene: Scene, program: Program) -> None:
    """One attachment, for a while."""
    _attach(scene, program, scene.engines[0])


def several(scene: Scene, program: Program) -> None:
    """Several by different engines in a row."""
    for engine in scene.engines[: scene.random.randint(2, 4)]:
        _attach(scene, program, engine)


def files(scene: Scene, program: Program) -> None:
    """One whose report has everything, with basic block vectors."""
    _attach(scene, program, scene.engines[0], "-o", str(scene.place / "out"), "--interval-size", "100000")


def windows(scene: Scene, program: Program) -> None:
    """Windows, again and again."""
    window = scene.moment(0.001, 0.3)
    every = window + scene.moment(0.02, 0.4)
    seconds = min(every * scene.random.randint(2, 6), 3.0)
    with scene.livepro(
        "attach", program.target.pid, "--engine", scene.engines[0], "-q", "--every", f"{every:.4f}s",
        "--for", f"{window:.4f}s", "--duration", f"{seconds:.4f}s",
    ):  # fmt: skip
        pass


def cycles(scene: Scene, program: Program) -> None:
    """Attached and let go as often as there is time for."""
    report = scene.place / "cycles.json"
    with scene.livepro(
        "attach", program.target.pid, "--engine", scene.engines[0], "-q", "--every", "20ms", "--for", "5ms",
        "--duration", "8s", "--json", report,
    ):  # fmt: skip
        pass
    scene.attachments += len(json.loads(report.read_text())["sampling"]["windows"]) - 1


def interrupted(scene: Scene, program: Program) -> None:
    """Told to let go by a signal, at any moment: before it has begun, too; or killed, its front alone."""
    number = scene.random.choice(
        [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL]
    )
    after = scene.moment(0.01, 4.0)
    scene.commands.append(f"({number.name} after {after:.4f} s)")
    with scene.livepro(
        "attach", program.target.pid, "--engine", scene.engines[0], "-q", "--no-live", right=(0, 128 + number)
    ) as running:
        time.sleep(after)
        running.signal(number)
    if number == signal.SIGKILL:
        eventually(
            lambda: not proc.tracer(program.target.pid), "still traced though livepro's front was killed"
        )


def commanded(scene: Scene, program: Program) -> None:
    """Commands of `livepro ctl` meanwhile, the last one `detach`; metrics are asked for, too."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.05):
            # Not answered, or not to the end: livepro is about to end.
            with contextlib.suppress(OSError, http.client.HTTPException):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        with scene.livepro(
            "attach", program.target.pid, "--engine", scene.engines[0], "-q", "--no-live",
            "--metrics", f"127.0.0.1:{port}",
        ) as running:  # fmt: skip
            whom = scene.random.choice([running.pid, program.target.pid])
            until = time.monotonic() + PATIENCE
            while not scene.ctl(whom, "status"):
                if running.process.poll() is not None or time.monotonic() > until:
                    raise LiveproFailed("there is no run to command")
            for _ in range(scene.random.randint(0, 4)):
                time.sleep(scene.moment(0.001, 0.3))
                scene.ctl(whom, scene.random.choice(["status", "reset", "snapshot", "pause", "resume"]))
            scene.ctl(whom, "detach")
    finally:
        over.set()
        asking.join()


def live(scene: Scene, program: Program) -> None:
    """The live view on a terminal, with random keys; left by `q`, the end of its time, or a signal."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    leaves = scene.random.choice(["q", "time", "SIGINT", "SIGTERM"])
    seconds = scene.moment(0.05, 3.0)
    limit = ("--duration", f"{seconds:.4f}s") if leaves == "time" else ()
    over = threading.Event()
    keys = [scene.random.choice(_KEYS) for _ in range(60)]

    def drain() -> None:
        while not over.is_set():
            if select.select([screen], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    os.read(screen, 1 << 16)

    draining = threading.Thread(target=drain)
    draining.start()
    try:
        with scene.livepro(
            "attach", program.target.pid, "--engine", scene.engines[0], "--live", *limit,
            right=(0, 130, 143), stdin=terminal, stdout=terminal,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        ) as running:  # fmt: skip
            until = time.monotonic() + seconds
            for key in keys:
                if time.monotonic() > until:
                    break
                os.write(screen, key.encode())
                time.sleep(0.05)
            if leaves == "q":
                until = time.monotonic() + PATIENCE
                while running.process.poll() is None and time.monotonic() < until:
                    os.write(screen, b"q")
                    time.sleep(0.1)
            elif leaves != "time":
                running.signal(getattr(signal, leaves))
    finally:
        over.set()
        draining.join()
        os.close(screen)
        os.close(terminal)


ATTACHED: dict[str, Callable[[Scene, Program], None]] = {
    way.__name__: way for way in (once, several, files, windows, cycles, interrupted, commanded, live)
}
"""What is done to a program that runs."""


def run(scene: Scene, name: str, builder: Builder) -> str:
    """`livepro run` of a language runtime, which ends by itself, or is sent SIGINT or SIGTERM, or let go by
    `livepro ctl detach`, at any moment. Returns how the program did: "right", or what was wrong."""
    until = scene.place / "until"
    runtime = RUNTIMES[name]
    command = [until if word == UNTIL else word for word in runtime.command(builder)]
    end = scene.random.choice(["itself", "SIGINT", "group SIGINT", "SIGTERM", "detach", "detach"])
    after = scene.moment(0.01, 3.0)
    scene.commands.append(f"({end} after {after:.4f} s)")
    number = getattr(signal, end.split()[-1]) if end.endswith(("INT", "TERM")) else 0
    # LuaJIT takes SIGINT as an error of the program's, with status 1. SIGTERM to livepro ends a program that
    # does not do so itself by SIGKILL, after two seconds.
    right = (128 + number, 1, 0, runtime.status, 128 + signal.SIGKILL) if number else (0, runtime.status)
    # Some programs go on until their input ends: it does when they have been dealt with.
    with scene.livepro(
        "run", "-q", "--", *command, right=right, heard=False, stdin=subprocess.PIPE
    ) as running:
        assert running.process.stdout is not None
        if end != "detach":
            first = running.process.stdout.readline()
            if first != "ready\n":
                raise LiveproFailed(f"the program does not begin: {first!r}")
        time.sleep(after)
        if number:
            os.killpg(running.pid, number) if end == "group SIGINT" else running.signal(number)
            time.sleep(0.5)
            until.touch()  # threads other than the one that Ctrl-C has ended may go on
        elif end == "detach":
            limit = time.monotonic() + PATIENCE
            while not scene.ctl(running.pid, "detach"):
                if running.process.poll() is not None or time.monotonic() > limit:
                    raise LiveproFailed("there is no run to command")
            time.sleep(scene.moment(0.001, 0.5))
            until.touch()
        else:
            until.touch()
    if number:
        return "right"
    return judge(running.out, scene.said[-1], None, runtime.status)
