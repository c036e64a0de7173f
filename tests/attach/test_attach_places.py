"""Threads taken over at awkward places, and processes that may not be made to do what others may."""

from __future__ import annotations

import os
import platform
from typing import Any

import pytest
from attach.observe_attach import observe
from attach.targets import Target, eventually

from fixtures import Builder
from livepro.isa import for_machine
from livepro.linux import proc, ptrace, rseq
from livepro.linux.proc import Memory
from livepro.linux.wait import WALL

X86_64 = platform.machine() == "x86_64"


def test_calls_that_a_filter_would_end_the_process_for(builder: Builder) -> None:
    """The filter is suspended for those that livepro makes, and in force for all others."""
    with Target(builder.hosted("attach_filtered")) as target:
        wait_for_filter(target)
        before = target.shape()
        for _ in range(2):
            seen = observe(target.pid, engine="translate", seconds=0.2)
            assert seen["instructions"] > 100_000
            assert target.shape() == before
        assert target.end() == (7, "done\n", "")


def test_filtered_process_without_the_privilege(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before any call is made; the block engine makes none."""
    call = ptrace.call

    def unprivileged(request: int, tid: int, address: int = 0, data: int = 0) -> None:
        if data & ptrace.PTRACE_O_SUSPEND_SECCOMP and request == ptrace.PTRACE_SETOPTIONS:
            raise PermissionError
        call(request, tid, address, data)

    monkeypatch.setattr(ptrace, "call", unprivileged)
    with Target(builder.hosted("attach_filtered")) as target:
        wait_for_filter(target)
        before = target.shape()
        seen = observe(target.pid, engine="translate", seconds=0.2)
        assert "seccomp" in seen["error"]
        assert "--engine block" in seen["remedy"]
        assert target.shape() == before
        assert observe(target.pid, engine="block", seconds=0.2)["instructions"] > 100
        assert target.end() == (7, "done\n", "")


def wait_for_filter(target: Target) -> None:
    eventually(lambda: proc.status_field(target.pid, "Seccomp") == "2")


@pytest.mark.parametrize("engine", ["translate", "block"])
def test_shadow_stack(engine: str, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """No processor here has one: the kernel says so of a register set that all threads have."""
    isa = for_machine(platform.machine())
    asked: list[int] = []

    def has_regset(tid: int, kind: int) -> bool:
        asked.append(kind)
        return True

    monkeypatch.setattr(ptrace, "has_regset", has_regset)
    with Target(builder.hosted("attach_waits")) as target:
        before = target.shape()
        seen = observe(target.pid, engine=engine, seconds=0.2)
        assert "shadow stack" in seen["error"]
        assert "--engine step" in seen["remedy"]
        assert set(asked) == {isa.registers.shadow_stack}
        assert target.shape() == before
        assert target.end() == (0, "failures 0\n", "")


def test_register_sets_there_are() -> None:
    with Target("sh", "-c", "echo; read line") as target, Stopped(target.pid):
        assert ptrace.has_regset(target.pid, ptrace.NT_PRSTATUS)
        assert not ptrace.has_regset(target.pid, 0x7777)


class Stopped:
    """Meanwhile a thread is traced, and stopped where it was."""

    def __init__(self, tid: int) -> None:
        self.tid = tid

    def __enter__(self) -> None:
        ptrace.call(ptrace.PTRACE_SEIZE, self.tid)
        ptrace.call(ptrace.PTRACE_INTERRUPT, self.tid)
        os.waitpid(self.tid, WALL)

    def __exit__(self, *_: Any) -> None:
        ptrace.call(ptrace.PTRACE_DETACH, self.tid)


@pytest.mark.skipif(not X86_64, reason="the sequence is written in x86-64 assembly")
def test_a_restartable_sequence_is_aborted(builder: Builder) -> None:
    """As by the kernel, which looks where the thread is when it runs on: elsewhere, by then."""
    structure = for_machine("x86_64").registers.structure
    with Target(builder.hosted("attach_rseq")) as target:
        start, end, aborted, area, aborts, begun = (int(word, 16) for word in target.ready.split())
        memory = Memory(target.pid)

        def wait_for_the_next() -> None:
            seen = target.word(begun)
            eventually(lambda: target.word(begun) > seen)

        def stopped_within() -> bool:
            wait_for_the_next()
            with Stopped(target.pid):
                registers = ptrace.get_registers(target.pid, structure)
                if not start <= registers.rip < end:
                    return False  # the kernel has moved it, as it was about to run on when it was stopped
                look(registers)
            return True

        def look(registers: Any) -> None:
            assert rseq.abort(target.pid, registers.rip, memory.read, memory.write) == aborted
            assert target.word(area + 8) == 0
            assert rseq.abort(target.pid, registers.rip, memory.read, memory.write) == registers.rip
            registers.rip = aborted
            ptrace.set_registers(target.pid, registers)

        eventually(stopped_within)
        memory.close()
        for _ in range(3):
            wait_for_the_next()  # the one that it was let go in is none for the kernel any longer
            before = target.word(aborts)
            seen = observe(target.pid, engine="translate", seconds=0.4)
            assert seen["instructions"] > 1000
            assert target.word(aborts) > before
        assert target.end() == (7, "done\n", "")


def test_threads_in_signal_frames_and_in_the_vdso(builder: Builder) -> None:
    """Taken over in a handler, they return from it into their own code, watched or let go."""
    with Target(builder.hosted("attach_frames")) as target:
        before = target.shape()
        for _ in range(6):
            seen = observe(target.pid, engine="translate", seconds=0.08)
            assert seen["warnings"] == []
            assert target.shape() == before
        for engine in ("block", "step"):
            observe(target.pid, engine=engine, seconds=0.1)
            assert target.shape() == before
        assert target.end() == (0, "wrong 0\n", "")
