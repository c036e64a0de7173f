"""The program's own output while the view has the screen: kept, shown on request, repeated afterwards.

Only what would go to the terminal is kept: output that is redirected stays so. The
program still writes to a terminal, so it behaves as it always does; its bytes come
out as it wrote them. It cannot read the keys, which are the view's: where its
input was the terminal, there is nothing to read.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import tempfile
import termios
import threading
from contextlib import suppress
from typing import Self

TAIL = 1 << 18
"""Bytes at the end that the view shows."""

_LINGER = 0.5
"""Seconds to wait for the last output when something else still holds the program's terminal."""

_OFLAG, _LFLAG = 1, 3  # places in what tcgetattr returns
# ECMA-48 control sequences, and the other escapes that terminals take.
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[ -/]*[0-~])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class CapturedOutput:
    """As a context manager: from now on descriptors 1 and 2, where they are terminals, lead here."""

    def __init__(self) -> None:
        self._saved: dict[int, int] = {}
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 (closed when all is repeated)
        self._lock = threading.Lock()
        self._tail = b""
        self._master = -1
        self._target = -1
        self._dropped = 0
        self._reader: threading.Thread | None = None

    @property
    def captures(self) -> bool:
        """Whether there is anything to keep."""
        return self._reader is not None

    def __enter__(self) -> Self:
        terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]
        if os.isatty(0):
            self._redirect(0, os.open(os.devnull, os.O_RDONLY))
        if terminals:
            master, slave = pty.openpty()
            with suppress(OSError):
                size = fcntl.ioctl(terminals[0], termios.TIOCGWINSZ, bytes(8))
                fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
            mode = termios.tcgetattr(terminals[0])
            mode[_OFLAG] &= ~termios.OPOST  # the real terminal will do that
            mode[_LFLAG] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, mode)
            for descriptor in terminals:
                self._redirect(descriptor, os.dup(slave))
            os.close(slave)
            self._master = master
            self._reader = threading.Thread(target=self._read, name="livepro-output", daemon=True)
            self._reader.start()
        return self

    def _redirect(self, descriptor: int, to: int) -> None:
        self._saved[descriptor] = os.dup(descriptor)
        os.dup2(to, descriptor)
        os.close(to)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:  # EIO: nobody has the other end any more
                return
            with self._lock:
                if self._target >= 0:
                    self._pass_on(data)
                    continue
                self._tail = (self._tail + data)[-TAIL:]
                try:
                    self._spool.write(data)
                except OSError:  # no room for it
                    self._dropped += len(data)

    def _pass_on(self, data: bytes) -> None:
        with suppress(OSError):  # the terminal has gone away
            while data:
                data = data[os.write(self._target, data) :]

    def lines(self) -> list[str]:
        """The last lines that the program has written, without control characters."""
        with self._lock:
            tail = self._tail
        text = _ESCAPES.sub("", tail.decode("utf-8", "replace"))
        out = [
            _CONTROLS.sub("", line.rstrip("\r").rpartition("\r")[2]).expandtabs() for line in text.split("\n")
        ]
        return out[:-1] if out and not out[-1] else out

    def release(self) -> None:
        """Repeat what was kept; what comes from now on goes straight to the terminal."""
        if not self._saved:
            return
        if self._reader is not None:
            with self._lock:
                self._target = next(self._saved[d] for d in (1, 2) if d in self._saved)
                with suppress(OSError):
                    self._spool.seek(0)
                    while data := self._spool.read(1 << 16):
                        self._pass_on(data)
                if self._dropped:
                    self._pass_on(f"livepro: {self._dropped:,} bytes of output could not be kept\n".encode())
                self._spool.close()
        for descriptor, saved in self._saved.items():
            os.dup2(saved, descriptor)
            if saved != self._target:
                os.close(saved)
        self._saved = {}

    def __exit__(self, *_: object) -> None:
        self.release()
        if self._reader is None:
            return
        # All that the program wrote is out once its end of the pty is closed; where something
        # it started holds that open, once nothing more comes.
        self._reader.join(_LINGER)
        while self._reader.is_alive() and select.select([self._master], [], [], 0)[0]:
            self._reader.join(_LINGER)
        with self._lock:
            os.close(self._master)
            os.close(self._target)
