"""What the examples of a page find where they are typed: programs, their input, processes that run."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import needed

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "fixtures"

PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long rounds;
static volatile long sink;

__attribute__((noinline)) float kernel(const float *values, int count)
{
    float sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

static void *work(void *number)
{
    char name[8];
    snprintf(name, sizeof name, "w%ld", (long)number);
    pthread_setname_np(pthread_self(), name);
    for (long i = 0; i < rounds * ((long)number + 1); i++)
        sink = i;
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[4];
    float values[] = {1, 2, 3, 4};
    rounds = count > 1 ? atol(arguments[1]) : 1000;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts(kernel(values, 4) == 10 ? "done" : "wrong");
    return 0;
}
"""

WORDS = """
import time
words = "the quick brown fox jumps over the lazy dog".split()
counts = {}
until = time.monotonic() + 300
while time.monotonic() < until:
    for word in words:
        counts[word] = counts.get(word, 0) + 1
"""

POSTGRES = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    volatile long n = 0;
    if (fork() == 0)
        while (n < 30000000000)
            n++;
    else
        wait(NULL);
    return 0;
}
"""

AXPY = """
#include "livepro.h"

static float x[1024], y[1024];

static __attribute__((noinline)) void axpy(float a)
{
    for (int i = 0; i < 1024; i++)
        y[i] += a * x[i];
}

int main(void)
{
    for (int i = 0; i < 1000; i++)
        axpy(0.5f);
    livepro_reset();
    axpy(2);
    livepro_snapshot("first");
    axpy(3);
    livepro_snapshot("second");
    return 0;
}
"""

HOT = """
function hotLoop(n) { let sum = 0; for (let i = 0; i < n; i++) sum += i % 7; return sum; }
let all = 0;
for (let i = 0; i < 200; i++) all += hotLoop(10000);
console.log(all);
"""

WORK = """
import java.util.Arrays;
import java.util.HashMap;

public class Work {
    public static void main(String[] arguments) {
        int[] values = new int[200_000];
        for (int turn = 0; turn < 20; turn++)
            for (int i = 0; i < values.length; i++)
                values[i] = (i * 31 + turn) & 0xffff;
        HashMap<Integer, Integer> map = new HashMap<>();
        for (int i = 0; i < 200_000; i++)
            map.merge(values[i % values.length] & 1023, 1, Integer::sum);
        Arrays.sort(values);
        System.out.println(map.size() + " " + values[0]);
    }
}
"""

PYTEST = """
SMALL = list(range(256)) * 40  # numbers that CPython keeps: none is allocated


def test_work(instructions):
    with instructions() as counted:
        sum(SMALL)
    assert counted.instructions > 10_000
"""

Substitutes = dict[str, str]


def compiled(directory: Path, name: str, source: str, *options: str) -> None:
    (directory / f"{name}.c").write_text(source)
    command = [needed("gcc", "gcc"), "-D_GNU_SOURCE", *(options or ("-O1", "-g")), "-pthread"]
    subprocess.run([*command, "-o", name, f"{name}.c"], cwd=directory, check=True)


def shell(command: str, directory: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Typed into a shell: read from its input, where `pgrep -f` does not find it."""
    path = f"{directory}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    # (Not as a worker of the pytest that runs this.)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**own, "PATH": path, "HOME": str(directory), "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        ["bash", "-s"], input=command, cwd=directory, env=environment,
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def files(directory: Path) -> None:
    """A checkout's files as far as examples use them, and programs."""
    for name in ("CHANGELOG.md", "fixtures"):
        (directory / name).symlink_to(REPOSITORY / name)
    compiled(directory, "prog", PROGRAM)
    (directory / "file").write_bytes((REPOSITORY / "README.md").read_bytes() * 2)
    (directory / "in.bin").write_bytes((REPOSITORY / "CHANGELOG.md").read_bytes() * 200)
    (directory / "in.small").write_bytes((REPOSITORY / "CHANGELOG.md").read_bytes() * 20)


def phases(directory: Path) -> None:
    """The program of docs/simpoint.md."""
    source = (FIXTURES / "c" / "phases.c").read_text()
    compiled(directory, "phases", source, "-O2", "-ftree-vectorize", "-mavx2")


@contextmanager
def running(directory: Path, *command: str) -> Iterator[int]:
    """A process that runs meanwhile."""
    with subprocess.Popen(
        command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as own:
        try:
            yield own.pid
        finally:
            own.send_signal(signal.SIGKILL)


@contextmanager
def words(directory: Path) -> Iterator[int]:
    """words.py, the only one on the machine."""
    (directory / "words.py").write_text(WORDS)
    with (
        Path(tempfile.gettempdir(), "livepro-words.lock").open("w") as lock,
        running_alone(lock.fileno()),
        running(directory, "/usr/bin/python3", "words.py") as pid,
    ):
        yield pid


@contextmanager
def running_alone(descriptor: int) -> Iterator[None]:
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def plain(directory: Path) -> Iterator[Substitutes]:
    """Nothing but the files."""
    yield {}


@contextmanager
def readme(directory: Path) -> Iterator[Substitutes]:
    needed("javac", "openjdk-17-jdk-headless")
    needed("llvm-mca", "llvm")
    phases(directory)
    ready = REPOSITORY / "livepro/blocks/suite/ready"
    first = "[[benchmarks]]".join((ready / "kernels.toml").read_text().split("[[benchmarks]]")[:2])
    (directory / "first.toml").write_text(first)
    (directory / "gemm.c").write_bytes((ready / "gemm.c").read_bytes())
    with words(directory):
        yield {"suite kernels": "suite first.toml"}  # the page on blocks has all of them


@contextmanager
def attach(directory: Path) -> Iterator[Substitutes]:
    compiled(directory, "postgres", POSTGRES)
    with words(directory) as pid, running(directory, "./postgres"):
        sooner = {"--every 10s": "--every 1s", "--duration 1h": "--duration 3s"}
        yield {"1234": str(pid), "counts.json": "counts.json --duration 1s", **sooner}


@contextmanager
def blocks(directory: Path) -> Iterator[Substitutes]:
    needed("llvm-mca", "llvm")
    perf = needed("perf", "linux-perf")
    (directory / "perl").write_bytes(Path("/usr/bin/perl").read_bytes())
    record = [perf, "record", "-q", "-e", "cpu-clock", "-o", "perf.data", "./prog", "30000000"]
    subprocess.run(record, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    (directory / "words.py").write_text(WORDS)
    with running(directory, "/usr/bin/python3", "words.py") as pid:
        yield {"1234": str(pid), "--duration 10s": "--duration 2s"}


@contextmanager
def control(directory: Path) -> Iterator[Substitutes]:
    (directory / "axpy.c").write_text(AXPY)
    with running(directory, sys.executable, "-m", "livepro", "run", "-q", "--", "sleep", "60") as pid:
        for _ in range(100):
            found = shell(f"livepro ctl {pid} status", directory)
            if found.returncode == 0 and '"threads": 1' in found.stdout:
                break
        yield {"$(pgrep -x sleep)": str(pid)}
        shell(f"livepro ctl {pid} detach", directory)


@contextmanager
def java(directory: Path) -> Iterator[Substitutes]:
    needed("javac", "openjdk-17-jdk-headless")
    yield {}


@contextmanager
def jit_names(directory: Path) -> Iterator[Substitutes]:
    needed("node", "nodejs")
    (directory / "hot.js").write_text(HOT)
    yield {}


@contextmanager
def project(directory: Path) -> Iterator[Substitutes]:
    (directory / "test_work.py").write_text(PYTEST)
    (directory / "pytest.ini").write_text("[pytest]\n")
    yield {}


@contextmanager
def completion(directory: Path) -> Iterator[Substitutes]:
    (directory / ".local/share/bash-completion/completions").mkdir(parents=True)
    yield {}


@contextmanager
def points(directory: Path) -> Iterator[Substitutes]:
    javac = needed("javac", "openjdk-17-jdk-headless")
    phases(directory)
    (directory / "Work.java").write_text(WORK)
    subprocess.run([javac, "Work.java"], cwd=directory, check=True)
    source = (FIXTURES / "c" / "threaded_phases.c").read_text()
    compiled(directory, "threaded", source, "-O1", "-pthread")
    measure = "livepro run -q --interval-size 2M --bb-out-file bb.out --pc-out-file pc.out -- ./phases"
    assert shell(measure, directory).returncode == 0
    for name in ("bb.out", "pc.out"):
        (directory / f"{name}.4711").write_bytes((directory / name).read_bytes())
    intervals = (directory / "bb.out").read_text().count("\nT") + 1
    memory = "".join(f"2000000 {64 + n} {n % 7} {n} 3\n" for n in range(intervals))
    (directory / "memfootprint_phases_int_pin.out").write_text(memory)
    yield {}


@contextmanager
def traces(directory: Path) -> Iterator[Substitutes]:
    phases(directory)
    yield {}


@contextmanager
def callgrind(directory: Path) -> Iterator[Substitutes]:
    needed("callgrind_annotate", "valgrind")
    needed("go", "golang-go")
    yield {}


@contextmanager
def reports(directory: Path) -> Iterator[Substitutes]:
    for name in ("before", "after"):
        assert shell(f"livepro run --quiet --json {name}.json -- ./prog 1000", directory).returncode == 0
    yield {}


QUICK = {"export.md": callgrind, "gate.md": plain, "report.md": reports}

SLOW = {
    "README.md": readme,
    "attach.md": attach,
    "blocks.md": blocks,
    "control.md": control,
    "java.md": java,
    "mica.md": plain,
    "names.md": jit_names,
    "pytest.md": project,
    "regions.md": plain,
    "run.md": completion,
    "simpoint.md": points,
    "trace.md": traces,
}

ELSEWHERE = {"jmh.md"}
"""Pages whose examples need what no package brings: JMH (tests/jvm has stand-ins for its interfaces)."""
