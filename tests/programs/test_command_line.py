"""`livepro run` from outside: signals, Ctrl-C on a terminal, errors, children."""

from __future__ import annotations

import json
import os
import platform
import pty
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs.real import REPOSITORY, environment, livepro

from fixtures import Builder, assembly

COMMAND = (sys.executable, "-m", "livepro", "run")
_READ = {"x86_64": 0, "aarch64": 63}
"""The number of the system call read."""


def test_status_of_the_program(tmp_path: Path) -> None:
    """A shell sees of `livepro run -- false` what it sees of `false`."""
    script = f"{sys.executable} -m livepro run --quiet -- false; echo $?"
    done = subprocess.run(["sh", "-c", script], capture_output=True, env=environment(), timeout=60)
    assert done.stdout == b"1\n"


@pytest.mark.parametrize("locale", [{}, {"LC_CTYPE": "C.UTF-8"}])
def test_environment_and_directory_are_passed_on(locale: dict[str, str], tmp_path: Path) -> None:
    """As they are, whatever Python itself makes of a missing locale."""
    given = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY), "EMPTY": "", "B": "a=b\xe9\n", **locale}
    done = subprocess.run(
        [*COMMAND, "--quiet", "--children", "ignore", "--", "sh", "-c", "env -0; pwd"],
        capture_output=True,
        env=given,
        cwd=tmp_path,
        timeout=60,
    )
    *variables, directory = done.stdout.split(b"\0")
    found = dict(line.split(b"=", 1) for line in variables)
    found.pop(b"PWD", None)  # the shell's own
    found.pop(b"_", None)
    assert found == {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
    assert directory == os.fsencode(tmp_path) + b"\n"


def test_terminated_program(builder: Builder, tmp_path: Path) -> None:
    fixture = next(f for f in assembly() if f.name == "signal_killed_thread")
    run = livepro("--", builder.assembly(fixture), cwd=tmp_path)
    assert run.status == 143
    assert run.document is not None
    assert run.document["exit"] == run.document["processes"][0]["exit"] == 143
    assert run.document["instructions"] == fixture.instructions


def test_sigterm_to_livepro(builder: Builder, tmp_path: Path) -> None:
    """livepro told to go: the program is told, and the counts so far are written."""
    out = tmp_path / "run.json"
    process = subprocess.Popen(
        [*COMMAND, "--quiet", "--json", str(out), "--", "sh", "-c", "echo ready; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143  # its standard input is open until then: an end would end it, too
    process.communicate()
    assert json.loads(out.read_text())["instructions"] > 50_000


def test_sigterm_ends_what_does_not_listen(tmp_path: Path) -> None:
    """Programs that ignore SIGTERM, in the background too, are killed after a while; nothing
    that was started is left, and the counts so far are written."""
    out = tmp_path / "run.json"
    script = "trap '' TERM; (while :; do :; done) & echo $! $$; while :; do :; done"
    process = subprocess.Popen(
        [*COMMAND, "--quiet", "--json", str(out), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    started = [int(word) for word in process.stdout.readline().split()]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    document = json.loads(out.read_text())
    assert process.returncode == document["exit"] == 137
    assert {p["pid"] for p in document["processes"]} == set(started)
    assert all(p["instructions"] > 100 for p in document["processes"])
    assert "SIGTERM" in " ".join(document["warnings"])
    assert [pid for pid in started if runs(pid)] == []


def test_sigkill_to_livepro_ends_the_program() -> None:
    """livepro gone without a word: the kernel ends what it traced."""
    process = subprocess.Popen(
        [*COMMAND, "--quiet", "--", "sh", "-c", "(while :; do :; done) & echo $! $$; while :; do :; done"],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    started = [int(word) for word in process.stdout.readline().split()]
    assert all(runs(pid) for pid in started)
    process.kill()
    process.wait(timeout=30)
    deadline = time.monotonic() + 10
    while any(runs(pid) for pid in started):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether the process is there and not just waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("reaction", ["handles", "dies"])
def test_ctrl_c_on_a_terminal(reaction: str, tmp_path: Path) -> None:
    """Ctrl-C goes to the program once, the counts so far are reported and written."""
    out = tmp_path / "run.json"
    trap = "trap 'echo caught; exit 9' INT;" if reaction == "handles" else ""
    script = f"{trap} echo ready $$; while :; do read line || :; done"
    command = [*COMMAND, "--json", str(out), "--", "sh", "-c", script]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command, environment(TERM="dumb", COLUMNS="100"))
    output = read_until(terminal, b"\n")
    # A shell that has not begun to read forgets the signal until it has read a line: dash asks
    # for signals before that call, not in one step with it.
    wait_for_call(int(output.split()[1]), _READ[platform.machine()])
    os.write(terminal, b"\x03")
    output += read_until(terminal, None)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert status == (9 if reaction == "handles" else 130)
    assert output.count(b"caught\r\n") == (reaction == "handles")
    assert b"instructions" in output
    document = json.loads(out.read_text())
    assert document["exit"] == status
    assert document["processes"][0]["instructions"] > 50_000


def wait_for_call(pid: int, number: int) -> None:
    """Wait until a process sleeps in a system call of that number (proc_pid_syscall(5))."""
    deadline = time.monotonic() + 60
    while not Path(f"/proc/{pid}/syscall").read_text().startswith(f"{number} "):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_interrupt_that_only_livepro_gets_is_passed_on() -> None:
    """As from `kill -INT`, where a terminal would have told the program as well."""
    script = "trap 'echo caught; exit 9' INT; echo ready; while :; do :; done"
    process = subprocess.Popen(
        [*COMMAND, "--quiet", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == b"caught\n"
    assert process.returncode == 9


def read_until(terminal: int, text: bytes | None) -> bytes:
    """What the terminal shows until `text` has come (None: until its end)."""
    output = b""
    deadline = time.monotonic() + 60
    while text is None or text not in output:
        assert time.monotonic() < deadline, output
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # EIO: nobody has the other side open any more
            chunk = b""
        if not chunk:
            break
        output += chunk
    return output


def test_children_ignored_run_free(tmp_path: Path) -> None:
    run = livepro("--children", "ignore", "--", "sh", "-c", "ls /; false | cat; exit 3", cwd=tmp_path)
    alone = subprocess.run(["sh", "-c", "ls /"], capture_output=True, env=environment())
    assert (run.status, run.stdout) == (3, alone.stdout)
    assert run.document is not None
    assert len(run.document["processes"]) == 1


def test_flags_popped_before_a_free_child(builder: Builder, tmp_path: Path) -> None:
    """A child let go must not carry the tracer's trap flag, popf or not."""
    source = tmp_path / "popf.S"
    source.write_text(
        ".intel_syntax noprefix\n.globl _start\n"
        "_start: pushfq; popfq; mov eax, 57; syscall; test eax, eax; jz child\n"  # fork
        "mov edi, eax; lea rsi, status[rip]; xor edx, edx; xor r10d, r10d; mov eax, 61; syscall\n"  # wait4
        "mov edi, status[rip]; shr edi, 8; or dil, status[rip]; mov eax, 60; syscall\n"
        "child: mov edi, 6; mov eax, 60; syscall\n"
        ".bss\nstatus: .skip 8\n"
    )
    run = livepro("--children", "ignore", "--", builder.build(source), cwd=tmp_path)
    assert run.status == 6
    assert run.document is not None
    assert run.document["instructions"] == 6 + 6 + 5


# -- errors: a paragraph with cause and remedy, before anything runs


def refused(status: int, *arguments: str | Path, cwd: Path) -> str:
    """livepro's message when it refuses: one paragraph, no traceback, no result file."""
    run = livepro(*arguments, cwd=cwd)
    message = run.stderr.decode()
    assert run.status == status, message
    assert run.document is None
    assert run.stdout == b""
    assert message.startswith("livepro: ")
    assert "Traceback" not in message
    assert len(message.strip().splitlines()) < 8
    return " ".join(message.split())


def test_missing_command(tmp_path: Path) -> None:
    assert "no-such-command" in refused(127, "--", "no-such-command", cwd=tmp_path)
    assert "none" in refused(127, "--", tmp_path / "none", cwd=tmp_path)


def test_not_executable(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text\n")
    refused(126, "--", plain, cwd=tmp_path)
    refused(126, "--", tmp_path, cwd=tmp_path)
    plain.chmod(0o755)
    plain.write_bytes(b"\x7fELF and then nothing")
    refused(126, "--", plain, cwd=tmp_path)


@pytest.mark.parametrize(("bits", "machine"), [(1, 3), (2, 183), (1, 62)])
def test_foreign_programs(bits: int, machine: int, tmp_path: Path) -> None:
    """A 32-bit x86, an AArch64 and an x32 program, as far as their headers say."""
    ident = b"\x7fELF" + bytes((bits, 1, 1, 0)) + bytes(8)
    words = "<HHIIIIIHHHHHH" if bits == 1 else "<HHIQQQIHHHHHH"
    sizes = (52, 32) if bits == 1 else (64, 56)
    header = struct.pack(words, 2, machine, 1, 0x400000, sizes[0], 0, 0, *sizes, 0, 0, 0, 0)
    program = tmp_path / "foreign"
    program.write_bytes(ident + header + bytes(200))
    program.chmod(0o755)
    message = refused(126, "--", program, cwd=tmp_path)
    assert ("32-bit" if bits == 1 else "AArch64").lower() in message.lower()


TRACER = """
import contextlib, os, signal, sys
from livepro.linux import ptrace
from livepro.linux.wait import WALL, is_stop, stop_event, stop_signal
child = os.fork()
if child == 0:
    ptrace.call(0, 0)  # PTRACE_TRACEME
    signal.raise_signal(signal.SIGSTOP)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
os.waitpid(child, 0)
follow = ptrace.PTRACE_O_TRACEFORK | ptrace.PTRACE_O_TRACEVFORK | ptrace.PTRACE_O_TRACECLONE
ptrace.call(0x4200, child, 0, follow)  # PTRACE_SETOPTIONS
ptrace.call(ptrace.PTRACE_CONT, child)
while True:
    tid, status = os.waitpid(-1, WALL)
    if is_stop(status):
        number = stop_signal(status)
        quiet = stop_event(status) or number in (signal.SIGTRAP, signal.SIGSTOP)
        with contextlib.suppress(ProcessLookupError):  # killed meanwhile: its end is the next status
            ptrace.call(ptrace.PTRACE_CONT, tid, 0, 0 if quiet else number)
    elif tid == child:
        sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_under_another_tracer() -> None:
    """As under a debugger or strace that follows forks: livepro may not trace its own child."""
    done = subprocess.run(
        [sys.executable, "-c", TRACER, "-m", "livepro", "run", "--", "touch", "/dev/null/never"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("livepro: The kernel refuses to let livepro trace its own child: ")
    assert "livepro doctor" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_bad_options(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    command = ("--", "touch", mark)
    refused(2, "--no-such-option", *command, cwd=tmp_path)
    refused(2, "--interval-size", "0", *command, cwd=tmp_path)
    refused(2, "--analyses", "nonsense", *command, cwd=tmp_path)
    refused(2, "-o", "/proc/none/out", *command, cwd=tmp_path)
    refused(2, "--engine", "warp", *command, cwd=tmp_path)
    refused(2, cwd=tmp_path)
    assert not mark.exists()
