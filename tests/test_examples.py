"""What pages about reports show with `./prog` is typed into a shell, one command after another: each has the
status and begins its output as the page says, figures aside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools import needed

DOCS = Path(__file__).resolve().parent.parent / "docs"

PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long rounds;
static volatile long sink;

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
    rounds = count > 1 ? atol(arguments[1]) : 1;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
"""

PAGES = ("export.md", "gate.md", "report.md")
"""Not the others, whose examples take minutes (simpoint.md, blocks.md, java.md), a process that runs already
(attach.md, control.md, live.md) or programs of their own: tests/test_readme.py parses these."""


def examples(page: Path) -> list[tuple[str, str]]:
    """(command, first line that it is said to print; empty where none is shown) in order."""
    out = []
    text = "".join(re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        lines = [line for line in shown.splitlines() if line.strip()]
        out.append((command, lines[0] if lines else ""))
    return out


def shape(line: str) -> str:
    """`line` without figures and spacing."""
    return " ".join(re.sub(r"[-+]?\d[\d,.]*", "N", line).split())


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_types_works(name: str, tmp_path: Path) -> None:
    (tmp_path / "prog.c").write_text(PROGRAM)
    compile_it = [needed("gcc", "gcc"), "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-o", "prog", "prog.c"]
    subprocess.run(compile_it, cwd=tmp_path, check=True)
    if name == "export.md":
        needed("callgrind_annotate", "valgrind")
        needed("go", "golang-go")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if name == "report.md":  # two runs that the page has from elsewhere
        for report in ("before", "after"):
            command = f"livepro run --quiet --json {report}.json -- ./prog 1000"
            subprocess.run(command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    typed = examples(DOCS / name)
    assert len(typed) >= 4
    status = 0
    for number, (command, expected) in enumerate(typed):
        if command == "echo $?":
            assert str(status) == expected
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path},
            capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        status = done.returncode
        told = number + 1 < len(typed) and typed[number + 1][0] == "echo $?"
        assert told or status == 0, f"{command}: {done.stderr}"
        printed = (done.stdout + done.stderr).splitlines()
        assert not expected or shape(expected) in map(shape, printed), f"{command}: {printed}"
