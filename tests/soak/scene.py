"""livepro at work on a program: started, listened to, spoken to, and its end looked at."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attach.targets import ROOT

PATIENCE = 60.0
"""Seconds that livepro may take to let go, and a program to end."""


class LiveproFailed(AssertionError):
    """livepro did not do what it was to; the program may be unharmed."""


@dataclass
class Scene:
    """What a round has: a random number generator, the engines in the order of their turns, the directory of
    what livepro keeps, and a place for files. `said` is what livepro has written to standard error,
    `attachments` how often it has been told to attach."""

    random: random.Random
    engines: Sequence[str]
    kept: Path
    place: Path
    said: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    attachments: int = 0

    def moment(self, shortest: float = 0.001, longest: float = 3.0) -> float:
        """Some seconds: short ones as likely as long ones."""
        return float(shortest * (longest / shortest) ** self.random.random())

    @property
    def environment(self) -> Mapping[str, str]:
        """livepro's."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LIVEPRO_CACHE_DIR": str(self.kept),
            "LIVEPRO_DEBUG": "1",
            "PYTHONFAULTHANDLER": "1",
            "TERM": "xterm-256color",
            "XDG_RUNTIME_DIR": str(self.place),  # other runs of the user's are none of the round's
        }

    @contextlib.contextmanager
    def livepro(
        self, *arguments: str | int | Path, right: Sequence[int] = (0,), heard: bool = True, **options: object
    ) -> Iterator[Running]:
        """A livepro command on its way; it has ended behind the `with`, with one of the exit statuses that
        are right. Raises LiveproFailed if not, or when it tells of an error of its own."""
        errors = self.place / f"errors-{len(self.said)}"
        words = [str(word) for word in arguments]
        self.commands.append(f"livepro {' '.join(words)}")
        self.attachments += words[0] == "attach"
        with errors.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "livepro", *words],
                **{
                    "stdin": subprocess.DEVNULL,
                    "stdout": subprocess.PIPE,
                    "stderr": file,
                    "text": True,
                    "env": self.environment,
                    "start_new_session": True,
                    **options,
                },  # type: ignore[call-overload]
            )
        running = Running(process)
        try:
            yield running
            running.wait()
        finally:
            running.end()
            self.said.append(errors.read_text(errors="replace"))
        if _never_began(self.said[-1]):
            return
        failed = "livepro: Internal error" in self.said[-1] or (heard and "Traceback" in self.said[-1])
        if failed or running.status not in right:
            raise LiveproFailed(f"{self.commands[-1]} ended with {running.status}")

    def ctl(self, pid: int, *command: str) -> bool:
        """`livepro ctl`; whether there was a run to take the command."""
        self.commands.append(f"livepro ctl {pid} {' '.join(command)}")
        done = subprocess.run(
            [sys.executable, "-m", "livepro", "ctl", str(pid), *command],
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=PATIENCE,
        )
        if done.returncode not in (0, 2) or "Internal error" in done.stderr:
            self.said.append(done.stderr)
            raise LiveproFailed(f"{self.commands[-1]} ended with {done.returncode}")
        return done.returncode == 0


class Running:
    """A livepro process. `status` is its exit status as a shell has it, None while it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid
        self.status: int | None = None
        self.out = ""

    def signal(self, number: int) -> None:
        """Send it a signal, if it is there."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def wait(self) -> None:
        """Until it has ended. Raises LiveproFailed when it does not."""
        try:
            out, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise LiveproFailed("livepro hangs") from None
        self.out += out or ""
        status = self.process.returncode
        self.status = 128 - status if status < 0 else status

    def end(self) -> None:
        """Kill what is left of it: its front first, so that it may let go; what does not then, by SIGABRT,
        so that it writes down where its threads are."""
        if self.status is not None:
            return
        self.process.kill()
        for seconds, number in ((2.0, signal.SIGABRT), (0.5, signal.SIGKILL)):
            time.sleep(seconds)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
        self.process.communicate()


def _never_began(said: str) -> bool:
    """Whether a Ctrl-C came while Python itself was starting, before there was a livepro: before anything
    but what names the package was executed."""
    traced = re.findall(r'^  File "(.+?)"', said, re.MULTILINE)
    own = [name for name in traced if "/livepro/" in name and "site-packages" not in name]
    began = any(not name.endswith("/livepro/__init__.py") for name in own)
    return said.rstrip().endswith("KeyboardInterrupt") and not began
