from __future__ import annotations

import io
import os
import pty
import termios
import tty
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from livepro.ui import progress
from livepro.ui.progress import ERASE, ProgressLine, progress_line


@dataclass
class Snapshot:
    instructions: int
    threads: int
    processes: int
    seconds: float


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def terminal() -> Iterator[io.TextIOWrapper]:
    master, slave = pty.openpty()
    with open(slave, "w") as stream:
        yield stream
    os.close(master)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setattr(progress, "drawable", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "60")
    return io.StringIO()


def test_a_short_run_shows_nothing(drawn: io.StringIO) -> None:
    clock = Clock()
    with ProgressLine(drawn, clock) as line:
        clock.now += 0.9
        line(Snapshot(10, 1, 1, 0.9))
    assert drawn.getvalue() == ""


def test_a_line_is_drawn_seldom_and_erased(drawn: io.StringIO) -> None:
    clock = Clock()
    with ProgressLine(drawn, clock) as line:
        clock.now += 2
        line(Snapshot(100_000, 1, 1, 2.0))
        clock.now += 0.1
        line(Snapshot(105_000, 1, 1, 2.1))  # too early to draw again
        clock.now += 0.9
        line(Snapshot(150_000, 4, 2, 3.0))
    first, second, rest = drawn.getvalue().removeprefix(ERASE).split(ERASE)
    assert first == "livepro: 100 k instructions, 50.0 k/s, 1 thread, 2.00 s\r"
    assert second == "livepro: 150 k instructions, 50.0 k/s, 4 threads, 2 process"[:59] + "\r"
    assert rest == ""
    assert drawn.getvalue().endswith(ERASE)


def test_an_error_erases_the_line_too(drawn: io.StringIO) -> None:
    clock = Clock()

    def interrupted() -> None:
        with ProgressLine(drawn, clock) as line:
            clock.now += 2
            line(Snapshot(1, 1, 1, 2.0))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert drawn.getvalue().endswith(ERASE)


def test_the_rate_follows_the_program() -> None:
    line = ProgressLine(io.StringIO(), Clock())
    for second in range(1, 31):
        line.update_rate(Snapshot(1000 * second, 1, 1, float(second)))
    assert line.rate == pytest.approx(1000)
    for second in range(31, 61):
        line.update_rate(Snapshot(30_000 + 9000 * (second - 30), 1, 1, float(second)))
    assert line.rate == pytest.approx(9000, rel=0.01)
    line.update_rate(Snapshot(400_000, 1, 1, 60.0))  # no time has passed
    assert line.rate == pytest.approx(9000, rel=0.01)


def test_a_terminal_that_is_gone_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "drawable", lambda stream: True)

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    clock = Clock()
    with ProgressLine(Gone(), clock) as line:
        clock.now += 2
        line(Snapshot(1, 1, 1, 2.0))


def test_only_on_terminals(terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert progress_line(quiet=False, stream=io.StringIO()) is None
    assert progress_line(quiet=True, stream=terminal) is None
    assert progress_line(quiet=False, stream=terminal) is not None
    monkeypatch.setenv("TERM", "dumb")
    assert progress_line(quiet=False, stream=terminal) is None


def test_not_over_a_program_that_took_the_terminal(
    terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda fd: os.getpgrp())
    assert progress.drawable(terminal)
    tty.setraw(terminal.fileno())
    assert not progress.drawable(terminal)


def test_not_while_a_password_is_typed(terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda fd: os.getpgrp())
    modes = termios.tcgetattr(terminal.fileno())
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(terminal.fileno(), termios.TCSANOW, modes)
    assert not progress.drawable(terminal)


def test_not_in_the_background(terminal: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda fd: os.getpgrp() + 1)
    assert not progress.drawable(terminal)
    assert not progress.drawable(io.StringIO())
