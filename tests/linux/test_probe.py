from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest

from livepro.linux import perf_event, probe, ptrace


def children() -> str:
    pid = os.getpid()
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def test_tracing_works_and_leaves_no_child() -> None:
    before = children()
    found = probe.probe_tracing()
    assert found.works
    assert children() == before


def test_tracing_a_child_that_has_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the child does by then, a step of it ends."""
    genuine = ptrace.call

    def call(request: int, *args: int) -> None:
        if request == ptrace.PTRACE_SEIZE:
            time.sleep(0.1)
        genuine(request, *args)

    def hung(*args: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(ptrace, "call", call)
    former = signal.signal(signal.SIGALRM, hung)
    signal.alarm(20)
    try:
        assert probe.probe_tracing().works
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def refusing(code: int, request: int) -> object:
    """`ptrace.call` that fails with `code` for `request`."""
    genuine = ptrace.call

    def call(asked: int, *args: int) -> None:
        if asked == request:
            raise OSError(code, os.strerror(code))
        genuine(asked, *args)

    return call


def test_refused_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children()
    monkeypatch.setattr(ptrace, "call", refusing(errno.EPERM, ptrace.PTRACE_SEIZE))
    assert probe.probe_tracing() == probe.Probe(False, "refused: Operation not permitted")
    assert children() == before


def test_stops_are_repeatable_single_steps() -> None:
    one = probe.stops(ptrace.PTRACE_SINGLESTEP)
    assert one == probe.stops(ptrace.PTRACE_SINGLESTEP)
    assert len(one) == probe.STEPS
    assert len(set(one)) > 20


def test_block_step_is_judged_by_where_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine does: equal stops mean that nothing was gained."""
    same = probe.stops(ptrace.PTRACE_SINGLEBLOCK) == probe.stops(ptrace.PTRACE_SINGLESTEP)
    assert probe.probe_block_step().works is not same
    monkeypatch.setattr(probe, "stops", lambda request: [request])
    assert probe.probe_block_step().works
    monkeypatch.setattr(probe, "stops", lambda request: [0])
    assert not probe.probe_block_step().works


def test_machines_without_block_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptrace, "call", refusing(errno.EIO, ptrace.PTRACE_SINGLEBLOCK))
    assert probe.probe_block_step() == probe.Probe(False, "this machine has no PTRACE_SINGLEBLOCK")


def test_counter_that_counts_or_says_why_not() -> None:
    found = perf_event.probe_instruction_counter()
    assert found.detail
    try:
        os.close(perf_event.open_instruction_counter())
    except OSError:
        assert not found.works


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        (errno.ENOENT, "none here (usual in virtual machines)"),
        (errno.ENOSYS, "this kernel has no perf_event_open"),
        (errno.EMFILE, "perf_event_open failed: Too many open files"),
    ],
)
def test_refused_counters(code: int, detail: str) -> None:
    assert perf_event.refused(OSError(code, os.strerror(code))) == perf_event.CounterProbe(False, detail)


def test_forbidden_counters_have_a_remedy() -> None:
    found = perf_event.refused(PermissionError(errno.EACCES, "no"))
    assert found.detail.startswith("not permitted (perf_event_paranoid is ")
    assert "perf_event_paranoid=1" in found.remedy


def test_layout_of_the_attributes() -> None:
    assert perf_event.ATTR.size == perf_event.ATTR_SIZE_VER0


def test_counters_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judgement, on a counter that stands for one that works and one that does not."""
    values = iter([100, 4100, 7, 7])
    monkeypatch.setattr(perf_event, "open_instruction_counter", lambda: os.open("/dev/null", os.O_RDONLY))
    monkeypatch.setattr(perf_event, "read_counter", lambda fd: next(values))
    working = perf_event.probe_instruction_counter()
    assert (working.works, working.detail) == (True, "counted 4,000 instructions of a short loop")
    assert not perf_event.probe_instruction_counter().works
