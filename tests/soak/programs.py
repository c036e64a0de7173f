"""The programs that are attached to again and again: busy ones, which say whether all was right."""

from __future__ import annotations

import os
import pty
import re
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from attach.targets import TIMEOUT, Target

from fixtures import Builder

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


class Program:
    """A program that runs; `check` raises AssertionError when it does not do what it should."""

    opens_files = False
    """Whether its descriptors come and go by themselves."""

    def __init__(self, target: Target, right: tuple[int, str], last_word: str = "") -> None:
        self.target = target
        self._right = right
        self._last_word = last_word

    def check(self) -> None:
        """Between two rounds."""
        assert self.target.process.poll() is None, "the program has ended"

    def finish(self) -> None:
        """Have it end, and look at what it says."""
        if not self._last_word:
            status, out, _ = self.target.end()
        else:
            out, _ = self.target.process.communicate(self._last_word, timeout=2 * TIMEOUT)
            status = self.target.process.returncode
        assert (status, out) == self._right


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


def java(directory: Path, *options: str) -> Program:
    """A Java virtual machine with busy threads."""
    (directory / "Busy.java").write_text(JAVA)
    subprocess.run(["javac", "-d", str(directory), str(directory / "Busy.java")], check=True)
    command = ("java", *options, "-Xmx256m", "-cp", directory, "Busy")
    return Program(Target(*command), (0, "wrong 0\n"), "word\n")


def fixture(directory: Path, name: str, right: tuple[int, str], *arguments: str) -> Program:
    """One of fixtures/c, ended by SIGTERM."""
    return Program(Target(Builder(directory).hosted(name), *arguments), right)


PROGRAMS: dict[str, Callable[[Path], Program]] = {
    "waits": lambda place: fixture(place, "attach_waits", (0, "failures 0\n"), "4"),
    "frames": lambda place: fixture(place, "attach_frames", (0, "wrong 0\n")),
    "actions": lambda place: fixture(place, "attach_actions", (0, "wrong 0\n")),
    "python": lambda place: Program(Target(sys.executable, "-c", PYTHON), (0, "wrong 0\n")),
    "server": lambda place: Server(Target(Builder(place).hosted("attach_server"), "8")),
    "shell": lambda place: Shell(),
    "java": java,
    "java-serial": lambda place: java(place, "-XX:+UseSerialGC"),
    "java-parallel": lambda place: java(place, "-XX:+UseParallelGC"),
    "java-shenandoah": lambda place: java(place, "-XX:+UseShenandoahGC"),
    "java-z": lambda place: java(place, "-XX:+UseZGC"),
}
"""By name, what starts them in a directory for what is built. `java` has the default collector, G1."""
