"""A program that runs, to be attached to."""

from __future__ import annotations

from attach.targets import TIMEOUT, Target


class Program:
    """A program that runs; `check` raises AssertionError when it does not do what it should."""

    opens_files = False
    """Whether its descriptors come and go by themselves."""
    generates = False
    """Whether its executable memory changes by itself."""

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
