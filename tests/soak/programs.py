"""The programs that are attached to again and again: busy ones, which say whether all was right."""

from __future__ import annotations

import os
import pty
import re
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial

from attach.targets import TIMEOUT, Target

from fixtures import Builder
from soak.program import Program
from soak.runtimes import RUNTIMES, Busy


class Server(Program):
    """fixtures/c/attach_server.c, and clients that ask it all the time."""

    CLIENTS = 4
    opens_files = True  # a connection each

    def __init__(self, target: Target) -> None:
        super().__init__(target, (7, "done\n"))
        self._over = threading.Event()
        self._answers = [0] * self.CLIENTS
        self._wrong: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(self.CLIENTS)]
        self._seen = 0
        for thread in self._threads:
            thread.start()

    def _ask(self, which: int) -> None:
        port = int(self.target.ready)
        try:
            while not self._over.is_set():
                with (
                    socket.create_connection(("127.0.0.1", port), TIMEOUT) as connection,
                    connection.makefile("rw") as file,
                ):
                    for number in range(1000, 1020):
                        file.write(f"{number}\n")
                        file.flush()
                        answer = file.readline()
                        if answer != f"{number * (number + 1) // 2}\n":
                            self._wrong.append(f"{number}: {answer!r}")
                        self._answers[which] += 1
                time.sleep(0.002)
        except OSError as error:
            self._wrong.append(str(error))

    def check(self) -> None:
        super().check()
        assert self._wrong == []
        until = time.monotonic() + TIMEOUT
        while sum(self._answers) == self._seen and time.monotonic() < until:
            time.sleep(0.01)
        assert sum(self._answers) > self._seen, "the server has stopped answering"
        self._seen = sum(self._answers)

    def finish(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(TIMEOUT)
        assert self._wrong == []
        super().finish()


class Terminal(Target):
    """A shell at its prompt, on a terminal of its own."""

    def __init__(self) -> None:
        self.screen, terminal = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "PS1": "prompt> ", "TERM": "dumb"},
            text=True,
            start_new_session=True,
        )
        os.close(terminal)
        self.pid = self.process.pid
        self.ready = self.until(r"prompt> $")

    def until(self, pattern: str) -> str:
        """What the terminal shows until it ends with a pattern."""
        shown, until = "", time.monotonic() + TIMEOUT
        while not re.search(pattern, shown):
            assert time.monotonic() < until, shown
            if select.select([self.screen], [], [], 0.1)[0]:
                shown += os.read(self.screen, 4096).decode()
        return shown


class Shell(Program):
    """An interactive shell, which is told something between the rounds."""

    def __init__(self) -> None:
        self.terminal = Terminal()
        super().__init__(self.terminal, (3, ""))
        self._round = 0

    def check(self) -> None:
        super().check()
        self._round += 1
        os.write(self.terminal.screen, f"echo $(({self._round} * 7)) $(true; echo sub)\n".encode())
        assert f"\n{self._round * 7} sub\r\n" in self.terminal.until(r"\nprompt> $")

    def finish(self) -> None:
        os.write(self.terminal.screen, b"exit 3\n")
        assert self.target.process.wait(TIMEOUT) == 3
        os.close(self.terminal.screen)


def fixture(builder: Builder, name: str, right: tuple[int, str], *arguments: str) -> Program:
    """One of fixtures/c, ended by SIGTERM."""
    return Program(Target(builder.hosted(name), *arguments), right)


PROGRAMS: dict[str, Callable[[Builder], Program]] = {
    "waits": lambda builder: fixture(builder, "attach_waits", (0, "failures 0\n"), "4"),
    "frames": lambda builder: fixture(builder, "attach_frames", (0, "wrong 0\n")),
    "actions": lambda builder: fixture(builder, "attach_actions", (0, "wrong 0\n")),
    "server": lambda builder: Server(Target(builder.hosted("attach_server"), "8")),
    "shell": lambda _: Shell(),
    **{name: partial(Busy, name) for name in RUNTIMES},
}
"""By name, what starts them, given what builds them."""


def present() -> list[str]:
    """The names of those that this machine has what they need for."""
    return [name for name in PROGRAMS if name not in RUNTIMES or RUNTIMES[name].present]
