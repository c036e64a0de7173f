"""Regions of interest as people write them."""

from __future__ import annotations

import re

from livepro.engines.region import Region
from livepro.errors import LiveproError
from livepro.linux.places import CodePlace

_COUNTED = re.compile(r"(?P<place>.*[^:]):(?P<count>[0-9][0-9_]*)(?:@(?P<thread>[0-9]+))?")


def parse_region(start_at: str, stop_at: str, skip: int, count: int, every: int = 0) -> Region:
    """The part of a run that those mean. Raises LiveproError for what is no place or number."""
    for number in (skip, count, every):
        if number < 0:
            raise LiveproError(f"{number} instructions cannot be skipped or counted.")
    if count and every:
        raise LiveproError(
            "A number of instructions to be counted and snapshots by their number are not possible together.",
            "Say where counting ends by a place.",
        )
    start, start_count, start_thread = _place(start_at)
    stop, stop_count, stop_thread = _place(stop_at)
    return Region(start, stop, skip, count, start_count or 1, stop_count, every, start_thread, stop_thread)


def _place(text: str) -> tuple[CodePlace | None, int | None, int]:
    """A place, the number of the arrival there and that of the thread, as ``PLACE:COUNT@THREAD`` has them;
    None and 0 for what is not said."""
    match = _COUNTED.fullmatch(text)
    if not match:
        return (CodePlace.parse(text) if text else None), None, 0
    number, thread = int(match["count"]), int(match["thread"] or 0)
    if not number:
        raise LiveproError(f"'{text}': arrivals are numbered from 1.", "Write PLACE:1 for the first.")
    if match["thread"] and not thread:
        raise LiveproError(f"'{text}': threads are numbered from 1.", "Write PLACE:COUNT@1 for the first.")
    return CodePlace.parse(match["place"]), number, thread
