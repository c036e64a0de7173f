"""Processes that cannot be attached to: a message with a remedy, a status, nothing touched."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from attach.targets import TIMEOUT, Target, command_line, wait_until_traced

import livepro
from fixtures import Builder
from livepro.errors import LiveproError


def refused(pid: int, engine: str = "auto") -> str:
    """What is said to whoever wants to attach to a process."""
    with pytest.raises(LiveproError) as refusal:
        livepro.attach(pid, engine=engine, seconds=0.1)
    assert refusal.value.status == 2
    return f"{refusal.value.cause} {refusal.value.remedy}"


def refused_command(*arguments: str | Path | int) -> str:
    """What `livepro attach` says when it refuses."""
    tracing = command_line(*arguments)
    out, err = tracing.communicate(timeout=TIMEOUT)
    assert (out, tracing.returncode) == ("", 2)
    assert err.startswith("livepro: ")
    assert len(err.splitlines()) == 1
    return err


@contextlib.contextmanager
def sleeper(name: str = "sleep") -> Iterator[int]:
    """A process that sleeps, under a name."""
    process = subprocess.Popen([name, "600"], executable="/bin/sleep")
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_missing_process() -> None:
    with sleeper() as pid:
        pass
    assert f"There is no process {pid}." in refused_command(pid)


def test_not_a_number() -> None:
    assert "--name bash" in refused_command("bash")


@pytest.mark.parametrize("arguments", [(), ("1", "--name", "x")])
def test_one_process_must_be_named(arguments: tuple[str, ...]) -> None:
    assert "Name one" in refused_command(*arguments)


def test_zombie() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert "is a zombie" in refused(process.pid)
    finally:
        process.wait()


def test_process_whose_first_thread_has_ended(builder: Builder) -> None:
    with Target(builder.hosted("attach_leader"), "0") as target:
        target.wait_for_state("Z")
        assert "first thread" in refused(target.pid)
        assert target.end() == (7, "done\n", "")


def kernel_threads() -> Iterator[int]:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            if "VmSize" not in status and "State:\tZ" not in status:
                yield int(pid)


def test_kernel_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = next(kernel_threads(), None)
    if kernel is not None:
        assert "is a thread of the kernel's" in refused(kernel)
        return
    # A container shows none: what one looks like.
    from livepro.linux import target

    fields = {"Name": "kthreadd", "Tgid": "2", "State": "S (sleeping)", "PPid": "0", "Kthread": "1"}
    monkeypatch.setattr(target, "status_fields", lambda path: fields)
    with pytest.raises(LiveproError, match="is a thread of the kernel's"):
        target.check(2, os.uname().machine)


def test_thread_of_a_process(builder: Builder) -> None:
    with Target(builder.hosted("attach_waits")) as target:
        other = next(tid for tid in os.listdir(f"/proc/{target.pid}/task") if int(tid) != target.pid)
        assert f"livepro attach {target.pid}" in refused(int(other))
        assert target.end() == (0, "failures 0\n", "")


def test_livepro_itself() -> None:
    """Whatever it is called as: a shell that becomes it knows its number."""
    for name in ("livepro", "python3"):
        command = f'exec -a {name} "$0" -m livepro attach $$'
        done = subprocess.run(
            ["bash", "-c", command, sys.executable],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 2, done.stderr
        assert "is livepro itself" in done.stderr


def test_traced_already(builder: Builder) -> None:
    with Target(builder.hosted("attach_waits")) as target:
        first = command_line(target.pid, "--quiet")
        wait_until_traced(target)
        assert "is traced already" in refused(target.pid)
        first.send_signal(signal.SIGTERM)
        assert first.communicate(timeout=TIMEOUT) == ("", "")
        assert first.returncode == 0
        assert target.end() == (0, "failures 0\n", "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_process_of_another_user() -> None:
    user = pwd.getpwnam("nobody")
    # Not through the command line: nobody may not be able to read the checkout.
    probe = (
        "from livepro.linux import target\n"
        "from livepro.errors import LiveproError\n"
        "import os, sys\n"
        f"os.setgroups([]); os.setgid({user.pw_gid}); os.setuid({user.pw_uid})\n"
        "try: target.check(int(sys.argv[1]), os.uname().machine)\n"
        "except LiveproError as error: print(error)\n"
    )
    with sleeper() as pid:
        done = subprocess.run([sys.executable, "-c", probe, str(pid)], capture_output=True, text=True)
        assert done.stderr == ""
        assert "belongs to another user, root" in done.stdout
        assert f"sudo livepro attach {pid}" in done.stdout


@pytest.mark.parametrize(
    ("scope", "said"), [(1, "sysctl kernel.yama.ptrace_scope=0"), (3, "restart the machine")]
)
def test_not_permitted(scope: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from livepro.linux import target
    from livepro.linux.permissions import Permissions

    monkeypatch.setattr(target, "permissions", lambda: Permissions(scope, False, 0, 0))
    with sleeper() as pid, pytest.raises(LiveproError, match="is not permitted") as refusal:
        target.check(pid, os.uname().machine)
    assert said in refusal.value.remedy


def test_32_bit_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No 32-bit program can be built here: the executable stands for one."""
    from livepro.linux import target

    def of_32_bits(path: str, machine: str) -> list[str]:
        raise LiveproError(f"{path} is a 32-bit program.", "livepro measures 64-bit programs.", 126)

    monkeypatch.setattr(target, "check_executable", of_32_bits)
    with sleeper() as pid, pytest.raises(LiveproError, match="32-bit") as refusal:
        target.check(pid, os.uname().machine)
    assert refusal.value.status != 0


def test_name_that_fits_several() -> None:
    name = f"lp-twins-{os.getpid()}"[:15]
    with sleeper(name) as one, sleeper(name) as other:
        said = refused_command("--name", name)
        assert f"There are 2 processes named '{name}'" in said
        assert str(one) in said
        assert str(other) in said


def test_with_children_a_name_means_the_one_that_the_others_descend_from() -> None:
    """As a server has workers of its own name. It starts another one now and then, which sleeps."""
    name = f"lp-tree-{os.getpid()}"[:15]
    script = "(while :; do sleep 0.01; done) & echo on; wait"
    with subprocess.Popen([name, "-c", script], executable="/bin/sh", stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        try:
            # A third one has the name between its fork and its exec.
            assert re.search(r"There are [23] processes named", refused_command("--name", name))
            tracing = command_line("--name", name, "--children", "--duration", "100ms")
            assert re.search(r", \d+ processes\n", tracing.communicate(timeout=TIMEOUT)[1])
            assert (tracing.returncode, shell.poll()) == (0, None)
        finally:
            workers = Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
            for pid in (*map(int, workers), shell.pid):
                os.kill(pid, signal.SIGKILL)


def test_name_that_fits_none() -> None:
    assert "There is no process named 'no-such-name'" in refused_command("--name", "no-such-name")


def test_name_that_fits_one() -> None:
    name = f"lp-only-{os.getpid()}"[:15]
    with sleeper(name) as pid:
        tracing = command_line("--name", name, "--duration", "100ms")
        _, err = tracing.communicate(timeout=TIMEOUT)
        assert tracing.returncode == 0
        assert f"{name} 600" in err
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


USES_GS = r"""
#include <asm/prctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
long here[8];
int main(void)
{
    syscall(SYS_arch_prctl, ARCH_SET_GS, here);
    puts("ready");
    fflush(stdout);
    for (;;) {
        long seen;
        __asm__ volatile("mov %%gs:8, %0" : "=r"(seen));
        if (seen)
            return 1;
    }
}
"""


@pytest.mark.parametrize("engine", ["translate", "block"])
def test_program_that_uses_the_gs_segment(engine: str, tmp_path: Path) -> None:
    """Translation needs it; the other engines do not."""
    source, program = tmp_path / "gs.c", tmp_path / "gs"
    source.write_text(USES_GS)
    subprocess.run(["gcc", "-O1", "-o", str(program), str(source)], check=True)
    with Target(program) as target:
        time.sleep(0.1)
        before = target.shape()
        if engine == "translate":
            said = refused(target.pid, engine)
            assert "uses the gs segment itself" in said
            assert "--engine block" in said
        else:
            tracing = command_line(target.pid, "--engine", engine, "--quiet", "--duration", "200ms")
            assert tracing.communicate(timeout=TIMEOUT) == ("", "")
        assert target.shape() == before
        assert target.process.poll() is None
