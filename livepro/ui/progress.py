"""The progress line: one transient line on the terminal while a long run goes on.

The program owns the terminal. The line is therefore drawn seldom, leaves the
cursor where the program's next output overwrites it, is erased at the end,
and is not drawn at all while the program has put the terminal into raw mode
(editors, pagers, password prompts) or livepro is in the background.
"""

from __future__ import annotations

import os
import shutil
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self, TextIO

from livepro.ui.text import duration, plural, scaled

FIRST_AFTER = 1.0
"""Seconds before the first line: short runs show none."""

EVERY = 0.25
"""Seconds between two lines."""

RATE_MEMORY = 3.0
"""Seconds over which the shown rate is averaged."""

ERASE = "\r\x1b[K"  # ECMA-48: carriage return, erase in line to its end


class Snapshot(Protocol):
    """What an engine reports while it runs (`livepro.engines.live.Progress`)."""

    @property
    def instructions(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def processes(self) -> int: ...
    @property
    def seconds(self) -> float: ...


class ProgressLine:
    """Call it with snapshots; use it as a context manager so that the line is erased."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream = stream
        self.clock = clock
        self.started = self.drawn_at = clock()
        self.shown = False
        self.rate = 0.0
        self.last = (0.0, 0)  # seconds, instructions of the snapshot before

    def __call__(self, snapshot: Snapshot) -> None:
        now = self.clock()
        if now - self.started < FIRST_AFTER or now - self.drawn_at < EVERY:
            return
        self.drawn_at = now
        self.update_rate(snapshot)
        if drawable(self.stream):
            width = shutil.get_terminal_size().columns - 1
            self.write(ERASE + self.text(snapshot)[:width] + "\r")
            self.shown = True

    def update_rate(self, snapshot: Snapshot) -> None:
        """Instructions a second, averaged with exponentially fading weight."""
        seconds = snapshot.seconds - self.last[0]
        if seconds <= 0:
            return
        rate = (snapshot.instructions - self.last[1]) / seconds
        keep = 0.5 ** (seconds / RATE_MEMORY) if self.rate else 0.0
        self.rate = keep * self.rate + (1 - keep) * rate
        self.last = (snapshot.seconds, snapshot.instructions)

    def text(self, snapshot: Snapshot) -> str:
        """The line itself."""
        parts = [
            f"{scaled(snapshot.instructions)} instructions",
            f"{scaled(self.rate)}/s",
            plural(snapshot.threads, "thread"),
        ]
        if snapshot.processes > 1:
            parts.append(plural(snapshot.processes, "process", "processes"))
        return "livepro: " + ", ".join([*parts, duration(snapshot.seconds)])

    def write(self, text: str) -> None:
        """A terminal that has gone away must not end the run."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            self.shown = False

    def close(self) -> None:
        """Erase the line, if one is there."""
        if self.shown:
            self.write(ERASE)
            self.shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def progress_line(quiet: bool, stream: TextIO | None = None) -> ProgressLine | None:
    """A progress line on standard error, or None: when `quiet`, or where there is no terminal."""
    stream = stream or sys.stderr
    if quiet or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    return ProgressLine(stream)


class StatusLine:
    """A line that says what livepro is doing; used as a context manager, it is erased at the end."""

    def __init__(self, stream: TextIO | None) -> None:
        """`stream` is a terminal, or None for no line at all."""
        self.stream = stream

    def __call__(self, text: str) -> None:
        if self.stream is not None and drawable(self.stream):
            width = shutil.get_terminal_size().columns - 1
            self._write(ERASE + f"livepro: {text}"[:width] + "\r")

    def _write(self, text: str) -> None:
        if self.stream is not None:
            with suppress(OSError):
                self.stream.write(text)
                self.stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(ERASE)


def status_line(quiet: bool, stream: TextIO | None = None) -> StatusLine:
    """A status line on standard error; silent when `quiet`, or where there is no terminal."""
    stream = stream or sys.stderr
    silent = quiet or not stream.isatty() or os.environ.get("TERM", "dumb") == "dumb"
    return StatusLine(None if silent else stream)


def drawable(stream: TextIO) -> bool:
    """Whether the terminal is in line mode with echo, and livepro in its foreground."""
    try:
        fd = stream.fileno()
        local_modes = termios.tcgetattr(fd)[3]
        foreground = os.tcgetpgrp(fd) == os.getpgrp()
    except (OSError, ValueError, termios.error):
        return False
    wanted = termios.ICANON | termios.ECHO
    return foreground and local_modes & wanted == wanted
