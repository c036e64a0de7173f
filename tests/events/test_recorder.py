"""The recorder's share of memory for each thread."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
from events.streams import Nobody

from livepro import isa
from livepro.engines.stream.recorder import Recorder


def test_many_threads_have_smaller_chunks() -> None:
    """All of a thousand take some 340 MB at twice two megabytes each for the first 16: not four gigabytes."""
    recorder = Recorder(Nobody(), chunk_words=1 << 18)
    record: Any = Mock(process=None)
    machine, shares, threads = isa.for_machine("x86_64"), [], []
    for _ in range(1000):
        threads.append(recorder.thread(None, record, machine))  # type: ignore[arg-type]
        shares.append(recorder.share)
    assert shares[:16] == [1 << 18] * 16
    assert shares[31] == 1 << 17
    assert shares[-1] == 1 << 13
    assert 2 * sum(shares) * 8 < 350 << 20
    for thread in threads[:984]:
        recorder.end(thread)
    assert recorder.share == 1 << 18
    assert Recorder(Nobody(), chunk_words=40).share == 40


def test_threads_take_turns_as_soon_as_there_are_several() -> None:
    recorder = Recorder(Nobody(), chunk_words=1 << 18, turn=4096)
    machine, record = isa.for_machine("x86_64"), Mock(process=None)
    recorder.thread(None, record, machine)  # type: ignore[arg-type]
    assert recorder.share == 1 << 18
    other = recorder.thread(None, record, machine)  # type: ignore[arg-type]
    assert recorder.share == 4096
    recorder.end(other)
    assert recorder.share == 1 << 18


def test_mappings_are_those_of_the_first_words() -> None:
    """Who takes them in may come to it when the process has ended, and has no mappings any more. (A sharing
    analysis on a busy machine named no variable.)"""
    recorder = Recorder(Nobody(), chunk_words=1 << 18)
    record: Any = Mock()
    record.process.space.mappings = ["first"]
    thread = recorder.thread(None, record, isa.for_machine("x86_64"))  # type: ignore[arg-type]
    recorder.deliver(thread, np.zeros(0, np.uint64))
    assert list(thread.image.mappings) == []
    recorder.deliver(thread, np.zeros(1, np.uint64))
    record.process.space.mappings = []
    recorder.deliver(thread, np.zeros(1, np.uint64))
    assert list(thread.image.mappings) == ["first"]
