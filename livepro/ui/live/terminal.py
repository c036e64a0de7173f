"""The terminal while the live view has it: keys as they are pressed, a screen of its own.

Only lines that changed are written, so that the view stands still and is light on
a slow connection. Whatever happens, `leave` gives the terminal back as it was.
"""

from __future__ import annotations

import locale
import os
import signal
import termios
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from livepro.errors import LiveproError

# xterm's ctlseqs: alternate screen (1049), cursor (25), line wrap (7); SGR 0, ED 2.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[0m\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_LFLAG, _CC = 3, 6  # places in what tcgetattr returns


class Terminal:
    """The controlling terminal. As a context manager it is in use for the view."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._former: list[Any] | None = None
        self._on_suspend: Any = None
        self._shown: list[Text] = []
        # rich works out the colours that TERM, COLORTERM and NO_COLOR allow.
        self._console = Console(
            file=open(os.devnull, "w", encoding="utf-8"),  # noqa: SIM115 (for the console's life)
            force_terminal=True,
            highlight=False,
            markup=False,
            emoji=False,
            width=1000,
        )

    @classmethod
    def open(cls) -> Self:
        """The terminal that livepro was started on. Raises LiveproError where there is none
        that a view could be drawn on."""
        if os.environ.get("TERM", "dumb") == "dumb":
            raise LiveproError(
                "The live view cannot be drawn on this terminal: TERM is "
                f"{os.environ.get('TERM') or 'not set'}.",
                "Set TERM to what the terminal is, or leave out --live.",
            )
        try:
            return cls(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC))
        except OSError:
            raise LiveproError(
                "The live view needs a terminal, and there is none.",
                "Start livepro from a terminal, or leave out --live: the summary comes at the end.",
            ) from None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            size = os.get_terminal_size(self.descriptor)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    @property
    def utf8(self) -> bool:
        """Whether it takes more than ASCII, as far as the locale says."""
        return locale.getpreferredencoding(False).lower().replace("-", "") == "utf8"

    # -- having it

    def enter(self) -> None:
        """Take the terminal. Ctrl-C and Ctrl-\\ stay what they are: signals."""
        former = termios.tcgetattr(self.descriptor)
        mode = [*former[:_CC], list(former[_CC])]
        mode[_LFLAG] &= ~(termios.ICANON | termios.ECHO)
        mode[_CC][termios.VMIN], mode[_CC][termios.VTIME] = 1, 0
        termios.tcsetattr(self.descriptor, termios.TCSAFLUSH, mode)
        self._former = former
        self._shown = []
        self._write(_ENTER)

    def leave(self) -> None:
        """Give the terminal back, as it was. Does nothing when it is not taken."""
        if self._former is None:
            return
        former, self._former = self._former, None
        self._write(_LEAVE)
        with suppress(termios.error):  # it has gone away
            termios.tcsetattr(self.descriptor, termios.TCSADRAIN, former)

    def __enter__(self) -> Self:
        self.enter()
        # Where Ctrl-Z is not to stop livepro, it stays so.
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            with suppress(ValueError):  # not the main thread: its signals are somebody else's
                self._on_suspend = signal.signal(signal.SIGTSTP, self._suspend)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on_suspend is not None:
            signal.signal(signal.SIGTSTP, self._on_suspend)
        self.leave()

    def close(self) -> None:
        """Give up the descriptor."""
        os.close(self.descriptor)
        self._console.file.close()

    def _suspend(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: stop as one expects of a program, and come back where one left off."""
        taken = self._former is not None
        self.leave()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._suspend)
        if taken:
            self.enter()

    # -- using it

    def read(self) -> bytes:
        """What was typed. Raises EOFError when the terminal has gone away."""
        try:
            data = os.read(self.descriptor, 1024)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        return data

    def redraw(self) -> None:
        """Draw everything the next time."""
        self._shown = []

    def draw(self, lines: Sequence[Text]) -> None:
        """Put `lines` on the screen, from its top."""
        if self._former is None:
            return
        columns = self.size[0]
        out = []
        if len(self._shown) != len(lines):
            self._shown = []
            out.append("\x1b[0m\x1b[2J")
        for row, line in enumerate(lines):
            before = self._shown[row] if self._shown else None
            if before is not None and before == line and before.spans == line.spans:
                continue
            # At the last column there is nothing to erase, and it would take what stands there.
            rest = "\x1b[K" if line.cell_len < columns else ""
            out.append(f"\x1b[{row + 1};1H{self._ansi(line)}\x1b[0m{rest}")
        self._shown = list(lines)
        if out:
            self._write("".join(out))

    def _ansi(self, line: Text) -> str:
        with self._console.capture() as capture:
            self._console.print(line, end="", soft_wrap=True)
        return capture.get()

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        with suppress(OSError):  # it has gone away: `read` says so
            while data:
                data = data[os.write(self.descriptor, data) :]
