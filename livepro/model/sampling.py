"""What was seen of a process in windows, between which it ran untouched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """One window: when it `began`, in seconds since the first one did, how many `seconds` the process
    ran watched, and what all its threads together executed in them."""

    began: float
    seconds: float
    instructions: int


@dataclass(frozen=True, slots=True)
class SamplingResult:
    """All windows, in order, and the `seconds` from the first one's beginning to the end of it all."""

    windows: tuple[Window, ...]
    seconds: float
