"""What was seen of a process in windows, between which it ran untouched."""

from __future__ import annotations

from typing import NamedTuple


class Window(NamedTuple):
    """One window: when it `began`, in seconds since the first one did, how many `seconds` the process
    ran watched, and what all its threads together executed in them."""

    began: float
    seconds: float
    instructions: int


class SamplingResult(NamedTuple):
    """All windows, in order, and the `seconds` from the first one's beginning to the end of it all."""

    windows: tuple[Window, ...]
    seconds: float
