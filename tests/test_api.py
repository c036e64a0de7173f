"""`livepro.run` in a program that uses it as a library: its own children, threads and exceptions."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import livepro
from fixtures import Builder, assembly
from livepro import session
from livepro.engines.control import Control
from livepro.engines.live import Progress


@pytest.fixture
def straight(builder: Builder) -> str:
    """A program of 13 instructions that exits with 7."""
    return str(builder.assembly(next(f for f in assembly() if f.name == "straight")))


def host(script: str, *arguments: str) -> object:
    """What a host program prints as JSON. It runs in a process of its own, so that a hang ends."""
    command = [sys.executable, "-c", f"import json, sys, livepro\n{script}", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)


def test_the_result_has_arrays(straight: str) -> None:
    result = livepro.run([straight])
    assert isinstance(result, livepro.Result)
    assert (result.exit, result.instructions, result.command) == (7, 13, (straight,))
    (process,) = result.processes
    (thread,) = process.threads
    assert thread.entries.tolist() == [0]
    assert thread.partial.tolist() == [[0, 13, 1]]
    assert process.table.length.tolist()[0] >= 13


def test_the_result_as_data_frames(straight: str) -> None:
    frames = livepro.run([straight]).to_pandas()
    assert sorted(frames) == ["blocks", "itypes", "simd", "threads"]
    assert frames["threads"]["instructions"].tolist() == [13]
    assert frames["blocks"]["instructions"].tolist() == [13]


def test_commands_given_before_the_program_starts(straight: str) -> None:
    """They wait for it."""
    futures = []

    def begin(control: Control) -> None:
        futures.append(control.submit(lambda: control.execute("snapshot", "first")))

    result = livepro.run([straight], control=begin)
    assert futures[0].result(0)["snapshots"] == 1
    assert [s.label for s in result.snapshots] == ["first"]
    kept: list[Control] = []
    livepro.run([straight], control=kept.append)
    with pytest.raises(livepro.LiveproError, match="The run is over"):
        kept[0].perform("status")


def test_children_of_the_host_keep_their_status(straight: str) -> None:
    """Children that have ended while livepro waits for its own are left to whoever started them."""
    script = """
import os
child = os.posix_spawn("/bin/false", ["false"], {})
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
result = livepro.run(sys.argv[1:])
print(json.dumps([result.exit, os.waitpid(child, 0)[1] >> 8]))
"""
    assert host(script, straight) == [7, 1]


def test_from_several_threads_at_once(straight: str) -> None:
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(livepro.run([straight]).instructions)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [13] * 4


def test_signal_handlers_of_the_host_come_back(straight: str) -> None:
    script = """
import signal
numbers = [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM]
signal.signal(signal.SIGTERM, print)
before = [signal.getsignal(n) for n in numbers]
livepro.run(sys.argv[1:])
print(json.dumps(before == [signal.getsignal(n) for n in numbers]))
"""
    assert host(script, straight) is True


FORKING = """
.intel_syntax noprefix
.globl _start
_start: mov eax, 57
        syscall
again:  jmp again
"""


def test_an_error_in_the_callback_ends_the_program(builder: Builder, tmp_path: Path) -> None:
    """The exception comes out of `run`, and nothing of what it started goes on."""
    source = tmp_path / "forking.S"
    source.write_text(FORKING)
    script = """
import contextlib, os
from pathlib import Path
def progress(snapshot):
    if snapshot.processes == 2:
        raise KeyError(snapshot.processes)
os.setsid()
try:
    livepro.run(sys.argv[1:], progress=progress)
except KeyError as error:
    caught = error.args[0]
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    left = 0
for path in Path("/proc").glob("[1-9]*/stat"):
    with contextlib.suppress(OSError):
        fields = path.read_text().rpartition(")")[2].split()
        left += fields[3] == str(os.getpid()) and fields[0] != "Z"
print(json.dumps([caught, left]))
"""
    assert host(script, str(builder.build(source))) == [2, 1]


@pytest.mark.parametrize("engine", ["step", "block", "translate"])
def test_a_program_that_is_killed_while_it_is_made_ready(engine: str, straight: str) -> None:
    """By whoever, at the last moment before it runs."""
    script = """
import os
from livepro.linux import ptrace
from livepro.linux.proc import Memory
write, read = Memory.write, Memory.read
def killed(number):
    def first(self, *what):
        Memory.write, Memory.read = write, read
        pid = livepro_started[0]
        while open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0] not in "ZX":
            os.kill(pid, 9)
            ptrace.raw(ptrace.PTRACE_CONT, pid, None, None)  # it may stop at its end
        return (write, read)[number](self, *what)
    return first
from livepro.tracee import tracer
start = tracer.Tracer._start_thread
livepro_started = []
def started(self, tid, *more):
    livepro_started.append(tid)
    Memory.write, Memory.read = killed(0), killed(1)
    return start(self, tid, *more)
tracer.Tracer._start_thread = started
print(json.dumps(livepro.run([sys.argv[2]], engine=sys.argv[1]).exit))
"""
    assert host(script, engine, straight) == 128 + 9


WAITING = """
.intel_syntax noprefix
.globl _start
_start: mov eax, 57             // fork
        syscall
        test eax, eax
again:  jz again
        mov edi, eax
        lea rsi, [rsp - 64]
        xor edx, edx
        xor r10d, r10d
        mov eax, 61             // wait4
        syscall
        mov edi, [rsp - 64]
        mov eax, 60
        syscall
"""


@pytest.mark.parametrize("engine", ["step", "block", "translate"])
def test_a_child_that_is_killed_before_it_has_begun(engine: str, builder: Builder, tmp_path: Path) -> None:
    """It may be dead before livepro has made it ready; its end is told all the same."""
    source = tmp_path / "waiting.S"
    source.write_text(WAITING)
    script = """
import os
from livepro.linux.wait import WALL
from livepro.tracee import tracer
first_stop = tracer.Tracer._first_stop
def killed(self, tid, status):
    os.kill(tid, 9)
    first_stop(self, tid, os.waitpid(tid, WALL)[1])  # the stop at its end comes instead
tracer.Tracer._first_stop = killed
result = livepro.run([sys.argv[2]], engine=sys.argv[1])
print(json.dumps([result.exit, [process.exit for process in result.processes]]))
"""
    assert host(script, engine, str(builder.build(source))) == [9, [9, 128 + 9]]


LONG = """
.intel_syntax noprefix
.globl _start
_start: mov rcx, {turns}
again:  dec rcx
        jnz again
        mov eax, 60
        xor edi, edi
        syscall
        .byte 6                         // none: the block, counted when it is entered, ends here
"""


@pytest.mark.parametrize(("engine", "turns"), [("step", 15_000), ("translate", 1_500_000_000)])
def test_progress_is_reported(engine: str, turns: int, builder: Builder, tmp_path: Path) -> None:
    """Also while the program runs for a second without a stop; the first report may come before it starts."""
    source = tmp_path / "long.S"
    source.write_text(LONG.format(turns=turns))
    seen: list[Progress] = []
    result = livepro.run([str(builder.build(source))], engine=engine, progress=seen.append)
    assert result.instructions == 1 + 2 * turns + 3
    counts = [snapshot.instructions for snapshot in seen]
    assert counts == sorted(counts)
    assert 0 <= counts[0] < counts[-1] <= result.instructions
    assert {(s.threads, s.processes) for s in seen} - {(0, 0)} == {(1, 1)}  # before it starts: none


@pytest.mark.parametrize("engine", ["block", "translate"])
def test_progress_is_right_up_to_the_end(
    engine: str, builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while counts are on their way from a thread to its tally, and from there to the table."""
    source = tmp_path / "long.S"
    source.write_text(LONG.format(turns=1_000))
    program = str(builder.build(source))
    monkeypatch.setattr(session, "_REPORT_EVERY", 0)
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    looks = 0
    try:
        for _ in range(10):
            seen: list[Progress] = []
            result = livepro.run([program], engine=engine, progress=seen.append)
            counts = [snapshot.instructions for snapshot in seen]
            assert counts == sorted(counts)
            assert max(counts, default=0) <= result.instructions
            assert result.instructions == 1 + 2 * 1_000 + 3
            looks += len(seen)  # (under load the program may have ended before the first)
            assert {(s.threads, s.processes) for s in seen} <= {(0, 0), (1, 1)}  # read together
    finally:
        sys.setswitchinterval(every)
    assert looks
