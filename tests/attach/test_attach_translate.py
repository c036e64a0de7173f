"""The translate engine attaches and detaches."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from typing import Any

import pytest
from attach.attach_contract import AttachContract, Loop
from attach.observe_attach import observe
from attach.targets import TIMEOUT, Target, command_line, eventually, wait_until_traced

import livepro
from fixtures import Builder
from livepro.attachment import Attachment
from livepro.linux import proc, ptrace
from livepro.linux.target import descendants


class TestTranslateAttach(AttachContract):
    engine = "translate"

    @pytest.mark.parametrize(
        ("method", "call"), [("look_ahead", 1), ("entered", 1), ("room.open_module", 2), ("attacher.take", 5)]
    )
    def test_errors_while_only_some_threads_are_watched(
        self, method: str, call: int, builder: Builder
    ) -> None:
        with Target(builder.hosted("attach_waits")) as target:
            before = target.shape()
            seen = observe(target.pid, engine=self.engine, seconds=0.5, fail=(method, call))
            assert seen["injected"] == f"{method}, call {call}"
            assert target.shape() == before
            assert target.end() == (0, "failures 0\n", "")

    def test_exec_of_a_thread_that_has_been_let_go(
        self, builder: Builder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before another one could be: that one is killed, in livepro's hands, and the exec waits for it."""
        call, told = ptrace.call, []

        def forgetful(request: int, tid: int, address: int = 0, data: int = 0) -> None:
            if request == ptrace.PTRACE_INTERRUPT and tid == pid and told:
                return  # as if it were to stop too late
            if request == ptrace.PTRACE_INTERRUPT:
                told.append(tid)
            call(request, tid, address, data)

        # A shell waits for it: the tracer, were it its parent too, could take its exit status.
        script = 'program=$1; "$program" & wait $!; echo $?'
        with Target("sh", "-c", script, "sh", builder.hosted("attach_exec")) as shell:
            (pid,) = descendants(shell.pid)
            monkeypatch.setattr(ptrace, "call", forgetful)
            try:
                seen = observe(pid, engine=self.engine, seconds=0.3)
                assert (seen["exit"], seen["warnings"]) == (None, [])
                assert len(seen["processes"][0]["threads"]) == 2
                assert shell.process.communicate(timeout=TIMEOUT) == ("well\n7\n", "")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def test_handlers_are_changed_meanwhile(self, builder: Builder) -> None:
        """The kernel knows handlers by places in livepro's memory: not when anybody is out of it."""
        with Target(builder.hosted("attach_actions")) as target:
            before = target.shape()
            for _ in range(4):
                seen = observe(target.pid, engine=self.engine, seconds=0.1)
                assert seen["warnings"] == []
                assert target.shape() == before
            assert target.end() == (0, "wrong 0\n", "")

    def test_handlers_are_changed_at_the_begin_and_the_end(self, builder: Builder) -> None:
        """One thread is let go, or not watched yet, while another tells the kernel of a handler."""
        with Target(builder.hosted("attach_actions")) as target:
            before = target.shape()
            for _ in range(60):
                livepro.attach(target.pid, engine=self.engine, seconds=0.005)
            assert target.shape() == before
            assert target.end() == (0, "wrong 0\n", "")

    def test_a_handler_of_traps_is_kept(self, builder: Builder) -> None:
        """The kernel forgets it when a thread that blocks all signals runs into a stop in the cache."""
        with Target(builder.hosted("attach_trap")) as target:
            before = target.shape()
            for _ in range(3):
                assert observe(target.pid, engine=self.engine, seconds=0.1)["warnings"] == []
                assert target.shape() == before
            assert target.end() == (0, "wrong 0\n", "")

    def test_a_handler_of_traps_is_there_all_the_time(self, builder: Builder) -> None:
        """The thread that blocks all signals does so no longer with SIGTRAP as it comes to its first stop."""
        with Target(builder.hosted("attach_trap")) as target:
            tracing = command_line(target.pid, "--engine", self.engine, "-q")
            wait_until_traced(target)
            for _ in range(200):  # looked at for a second: the thread comes to ever new code meanwhile
                assert int(proc.status_field(target.pid, "SigCgt"), 16) >> signal.SIGTRAP - 1 & 1
                time.sleep(0.005)
            tracing.send_signal(signal.SIGINT)
            assert tracing.communicate(timeout=TIMEOUT) == ("", "")
            assert target.end() == (0, "wrong 0\n", "")

    def test_traps_are_sent_whose_handler_is_forgotten(self, builder: Builder) -> None:
        """The program died of them."""
        with Target(builder.hosted("attach_trap")) as target:
            before = target.shape()
            tracing = command_line(target.pid, "--engine", self.engine, "-q")
            wait_until_traced(target)
            for _ in range(5):
                os.kill(target.pid, signal.SIGTRAP)
                eventually(lambda: not int(proc.status_field(target.pid, "ShdPnd"), 16))
            tracing.send_signal(signal.SIGINT)
            assert tracing.communicate(timeout=TIMEOUT) == ("", "")
            assert target.shape() == before
            assert target.end() == (0, "wrong 0\n", "")

    def test_traps_are_sent_while_it_is_attached_to(self, builder: Builder) -> None:
        """The program died of them: a thread that made a call for livepro, and one yet to be taken over, took
        them when the kernel had forgotten the handler."""
        with Target(builder.hosted("attach_trap")) as target:
            tracing = command_line(target.pid, "--engine", self.engine, "-q")
            eventually(lambda: proc.tracer(target.pid), "nobody attaches")
            for _ in range(5):
                os.kill(target.pid, signal.SIGTRAP)
                eventually(lambda: not int(proc.status_field(target.pid, "ShdPnd"), 16))
            tracing.send_signal(signal.SIGINT)
            assert tracing.communicate(timeout=TIMEOUT) == ("", "")
            assert target.end() == (0, "wrong 0\n", "")

    def test_let_go_while_two_threads_change_handlers(
        self, builder: Builder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither has told the kernel yet when both are interrupted, and neither may wait for the other."""
        call, held = ptrace.call, []

        def started(attachment: Attachment) -> None:
            engine: Any = attachment.engine

            def holding(request: int, tid: int, address: int = 0, data: int = 0) -> None:
                if request == ptrace.PTRACE_SINGLESTEP and tid in engine.syscalls.changing and len(held) < 2:
                    held.append(tid)
                    if len(held) == 2:
                        attachment.detach()
                    return  # to be made once it is interrupted
                call(request, tid, address, data)
                if request == ptrace.PTRACE_INTERRUPT and tid in held:
                    call(ptrace.PTRACE_SINGLESTEP, tid)

            monkeypatch.setattr(ptrace, "call", holding)

        with Target(builder.hosted("attach_actions")) as target:
            before = target.shape()
            livepro.attach(target.pid, engine=self.engine, started=started)
            assert len(held) == 2
            assert target.shape() == before
            assert target.end() == (0, "wrong 0\n", "")

    @pytest.mark.parametrize("call", [1, 12])
    def test_stopped_during_a_call_made_inside_it(
        self, call: int, loop: Loop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """SIGSTOP cannot be held off, and is not lost."""
        request, steps = ptrace.call, itertools.count(1)

        def stopping(kind: int, tid: int, address: int = 0, data: int = 0) -> None:
            if kind == ptrace.PTRACE_SINGLESTEP and next(steps) == call:
                os.kill(target.pid, signal.SIGSTOP)
            request(kind, tid, address, data)

        with Target(loop.program) as target:
            before = target.shape()
            monkeypatch.setattr(ptrace, "call", stopping)
            assert observe(target.pid, engine=self.engine, seconds=0.3)["warnings"] == []
            assert next(steps) > call
            assert target.shape() == before
            target.wait_for_state("T")
            target.process.send_signal(signal.SIGCONT)
            assert target.end() == (7, "done\n", "")
