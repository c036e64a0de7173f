"""What attaching and detaching must do under every engine.

class TestStepAttach(AttachContract):
    engine = "step"
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest
from attach.observe_attach import observe
from attach.targets import TIMEOUT, Target, command_line, eventually, wait_until_traced
from elftools.elf.elffile import ELFFile
from engines.control_contract import spin

import livepro
from fixtures import Builder
from livepro.attachment import Attachment
from livepro.linux import ptrace
from livepro.linux.target import descendants

TURN = 6
STORED_BEHIND = 3


def executed(counter: int, index: int) -> int:
    """Instructions that the loop of attach_loop.c has executed in all: its counter is stored by
    the third of a turn's six, and it is about to execute the one of that index."""
    return TURN * (counter - (index >= STORED_BEHIND)) + index


class Loop:
    """fixtures/c/attach_loop.c: where its instructions are."""

    def __init__(self, program: Path) -> None:
        self.program = program
        with program.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            symbols = [table.get_symbol_by_name(f"turn{index}") for index in range(TURN)]
        self.addresses = [symbol["st_value"] for (symbol,) in symbols]

    def place(self, index: int) -> str:
        """An instruction of the loop as the command line names it."""
        return f"{self.program.name}+{self.addresses[index]:#x}"

    def total(self, counter: int, pc: int) -> int:
        """Instructions of the loop executed, by the counter in memory and the pc."""
        return executed(counter, self.addresses.index(pc))


class AttachContract:
    """What every engine must do."""

    engine: ClassVar[str]

    @pytest.fixture
    def loop(self, builder: Builder) -> Loop:
        return Loop(builder.hosted("attach_loop", "-no-pie", "-fno-pie", "-Wl,--no-relax"))

    def test_counts_agree_with_the_loops_own_counter(self, loop: Loop) -> None:
        with Target(loop.program) as target:
            before = target.shape()
            counter = int(target.ready, 16)
            eventually(lambda: target.word(counter))
            for seconds in (0.1, 0.3):
                seen = observe(target.pid, engine=self.engine, seconds=seconds, counter=counter)
                begin, end = (loop.total(s["counter"], s["pc"]) for s in (seen["taken"], seen["released"]))
                assert seen["instructions"] == end - begin
                assert (seen["exit"], seen["warnings"]) == (None, [])
                assert seen["command"] == [str(loop.program)]
                assert target.shape() == before
            assert target.end() == (7, "done\n", "")

    def test_intervals_of_a_window_are_exact(self, loop: Loop, tmp_path: Path) -> None:
        with Target(loop.program) as target:
            counter = int(target.ready, 16)
            eventually(lambda: target.word(counter))
            seen = observe(target.pid, engine=self.engine, seconds=0.2, counter=counter, interval_size=1000)
            begin, end = (loop.total(s["counter"], s["pc"]) for s in (seen["taken"], seen["released"]))
            assert seen["instructions"] == end - begin
            ((intervals,),) = (process["intervals"] for process in seen["processes"])
            whole, rest = divmod(end - begin, 1000)
            assert intervals == [1000] * whole + [rest] * (rest > 0)
            assert target.end() == (7, "done\n", "")

    def test_stopped_process_stays_stopped(self, loop: Loop, tmp_path: Path) -> None:
        """And one that is stopped when it is let go; the count between is exact."""
        with Target(loop.program) as target:
            counter = int(target.ready, 16)
            eventually(lambda: target.word(counter))
            target.process.send_signal(signal.SIGSTOP)
            target.wait_for_state("T")
            began = loop.total(target.word(counter), target.pc)
            seen = observe(target.pid, engine=self.engine, seconds=0.1)
            # It is woken to stop again as nobody's tracee (__ptrace_unlink in kernel/ptrace.c).
            target.wait_for_state("T")
            assert seen["instructions"] == 0
            assert loop.total(target.word(counter), target.pc) == began
            out = tmp_path / "stopped.json"
            tracing = command_line(target.pid, "--engine", self.engine, "-q", "--json", out)
            wait_until_traced(target)
            target.process.send_signal(signal.SIGCONT)
            time.sleep(0.2)
            target.process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            tracing.send_signal(signal.SIGTERM)
            assert tracing.communicate(timeout=TIMEOUT) == ("", "")
            target.wait_for_state("T")
            ended = loop.total(target.word(counter), target.pc)
            assert f'"instructions": {ended - began},' in out.read_text()
            target.process.send_signal(signal.SIGCONT)
            assert target.end() == (7, "done\n", "")

    def test_calls_that_wait_go_on_waiting(self, builder: Builder, tmp_path: Path) -> None:
        with Target(builder.hosted("attach_waits"), "2") as target:
            before = target.shape()
            for _ in range(2):
                seen = observe(target.pid, engine=self.engine, seconds=0.4)
                assert seen["warnings"] == []
                assert len(seen["processes"][0]["threads"]) >= 1 + 9 * 2
                assert target.shape() == before
            assert target.end() == (0, "failures 0\n", "")

    @pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL", "SIGINT", "SIGHUP"])
    def test_signals_to_livepro_let_the_process_go(
        self, number: str, builder: Builder, tmp_path: Path
    ) -> None:
        with Target(builder.hosted("attach_waits")) as target:
            before = target.shape()
            out = tmp_path / "counts.json"
            tracing = command_line(target.pid, "--engine", self.engine, "-q", "--json", out)
            wait_until_traced(target)
            tracing.send_signal(getattr(signal, number))
            tracing.communicate(timeout=TIMEOUT)
            assert tracing.returncode == (-signal.SIGKILL if number == "SIGKILL" else 0)
            eventually(lambda: target.shape() == before)  # killed, it cannot say when it is through
            assert target.end() == (0, "failures 0\n", "")

    def test_process_that_ends_meanwhile(self, loop: Loop, tmp_path: Path) -> None:
        with Target(loop.program) as target:
            out = tmp_path / "counts.json"
            tracing = command_line(target.pid, "--engine", self.engine, "-q", "--json", out)
            wait_until_traced(target)
            assert target.end() == (7, "done\n", "")
            assert tracing.communicate(timeout=TIMEOUT) == ("", "")
            assert '"exit": 7,' in out.read_text()

    def test_regions_of_a_process_that_runs(self, loop: Loop) -> None:
        """From one instruction of the loop until it comes there again, and so many instructions."""
        with Target(loop.program) as target:
            before = target.shape()
            for options, count in (
                ({"start_at": loop.place(3), "stop_at": loop.place(3)}, TURN),
                ({"start_at": loop.place(0), "stop_at": loop.place(2)}, 2),
                ({"start_at": loop.place(5), "skip": 100, "count": 601}, 601),
                ({"skip": 7, "stop_at": loop.place(1)}, None),
            ):
                seen = observe(target.pid, engine=self.engine, **options)
                assert (seen["exit"], seen["warnings"]) == (None, [])
                assert seen["instructions"] == count if count else 0 <= seen["instructions"] <= TURN
                assert target.shape() == before
            assert target.end() == (7, "done\n", "")

    @pytest.mark.parametrize("children", [True, False])
    def test_children_and_exec(self, children: bool, builder: Builder) -> None:
        """A child that there is, those forked and spawned meanwhile, and what the process becomes by
        exec; without children only the last, and the others come to no harm."""

        def go(target: Target) -> None:
            wait_until_traced(target)
            assert target.process.stdin is not None
            target.process.stdin.write("\n")
            target.process.stdin.flush()

        with Target(builder.hosted("attach_children", "-static")) as target:
            asking = threading.Thread(target=go, args=(target,))
            asking.start()
            seen = observe(target.pid, engine=self.engine, children=children)
            asking.join()
            assert (seen["warnings"], seen["exit"]) == ([], 7)
            ended = [(p["exit"], p["spin"]) for p in seen["processes"] if p["spin"]]
            own = [(p["image"], p["spin"]) for p in seen["processes"] if p["pid"] == target.pid]
            assert own == [(0, 0), (1, spin(400))]
            others = [(11, spin(100)), (12, spin(200)), (13, spin(300))]
            assert sorted(ended) == sorted([(7, spin(400)), *(others if children else [])])
            assert target.process.communicate(timeout=TIMEOUT) == ("children well\n", "")

    def test_exec_before_anything_is_taken_over(
        self, builder: Builder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was there is none of the run's: neither its image nor what was found out about it."""
        call, told = ptrace.call, []

        def late(request: int, tid: int, address: int = 0, data: int = 0) -> None:
            if request != ptrace.PTRACE_INTERRUPT:
                call(request, tid, address, data)
            elif not told:
                told.append(tid)  # too late: the shell goes on
                os.write(target.process.stdin.fileno(), b"\n")

        with Target(
            "sh", "-c", 'echo on; read x; exec "$0" 400 7', builder.hosted("attach_children")
        ) as target:
            monkeypatch.setattr(ptrace, "call", late)
            seen = observe(target.pid, engine=self.engine)
            assert (seen["warnings"], seen["exit"]) == ([], 7)
            assert [(p["image"], p["spin"]) for p in seen["processes"]] == [(0, spin(400))]

    @pytest.mark.parametrize("seconds", [0.02, 0.1])
    def test_a_parent_that_waits_in_vfork(self, seconds: float, builder: Builder) -> None:
        """It cannot be stopped before its child has memory of its own: taking over and letting go wait."""
        with Target(builder.hosted("attach_vfork"), "20") as target:
            for _ in range(4):
                seen = observe(target.pid, engine=self.engine, children=True, seconds=seconds)
                assert "error" not in seen, seen
                assert (seen["exit"], seen["warnings"]) == (None, [])
            assert target.end() == (7, "children well\n", "")

    def test_a_child_in_its_parents_memory_is_left_to_itself(self, builder: Builder) -> None:
        with Target(builder.hosted("attach_vfork"), "1500") as target:
            eventually(lambda: descendants(target.pid))
            (child,) = descendants(target.pid)
            seen = observe(target.pid, engine=self.engine, children=True, seconds=0.1)
            assert seen["warnings"] == [
                f"Process {child} runs in the memory of its parent, which waits for it (vfork). "
                "It is not counted."
            ]
            assert target.end() == (7, "children well\n", "")

    @pytest.mark.parametrize("way", ["detach", "command"])
    def test_a_request_to_stop_that_is_lost(
        self, way: str, builder: Builder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The kernel drops it when another stop comes first: it is made again, whoever has them let go."""
        call, lost = ptrace.call, set[int]()

        def started(attachment: Attachment) -> None:
            def losing(request: int, tid: int, address: int = 0, data: int = 0) -> None:
                if request == ptrace.PTRACE_INTERRUPT and attachment.engine.leaving and tid not in lost:
                    lost.add(tid)
                else:
                    call(request, tid, address, data)

            def leave() -> None:
                if way == "detach":
                    attachment.detach()
                else:  # as `livepro ctl PID detach` does
                    attachment.engine.control.perform("detach")

            monkeypatch.setattr(ptrace, "call", losing)
            threading.Timer(0.3, leave).start()

        with Target(builder.hosted("attach_waits")) as target:
            before = target.shape()
            livepro.attach(target.pid, engine=self.engine, started=started)
            assert lost
            assert target.shape() == before
            assert target.end() == (0, "failures 0\n", "")

    def test_a_thread_that_always_has_something_to_tell_is_taken_over(self, builder: Builder) -> None:
        """Each of its stops makes the kernel forget that it was told to stop."""
        with Target(builder.hosted("attach_spawns")) as target:
            for _ in range(12):
                seen = observe(target.pid, engine=self.engine, seconds=0.01)
                assert (seen["exit"], seen["warnings"]) == (None, [])
            assert target.end() == (7, "done\n", "")

    @pytest.mark.parametrize(
        ("method", "call"), [("thread_started", 2), ("resume", 3), ("interrupted", 1), ("part", 2)]
    )
    def test_errors_of_livepros_own_let_the_process_go(
        self, method: str, call: int, builder: Builder, tmp_path: Path
    ) -> None:
        with Target(builder.hosted("attach_waits")) as target:
            before = target.shape()
            observe(target.pid, engine=self.engine, seconds=0.5, fail=(method, call))
            assert target.shape() == before
            assert target.end() == (0, "failures 0\n", "")

    def test_first_thread_ends_before_the_others(self, builder: Builder) -> None:
        """Nobody is told of its end then; the others are let go all the same."""
        with Target(builder.hosted("attach_leader"), "400") as target:
            seen = observe(target.pid, engine=self.engine, seconds=0.8)
            assert seen["exit"] is None
            assert len(seen["processes"][0]["threads"]) == 2
            assert set(target.tracers().values()) == {0}
            assert target.end() == (7, "done\n", "")
