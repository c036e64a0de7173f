"""Source lines, with addr2line (binutils) as the referee."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from livepro.linux.lines import LineTables

SOURCE = """\
#include <stdio.h>
static int twice(int n) {
    return n * 2;
}
int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        printf("%d\\n", twice(i));
    return 0;
}
"""


@pytest.mark.parametrize("version", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
def test_lines_are_those_of_addr2line(tmp_path: Path, version: str, optimise: str) -> None:
    (tmp_path / "a.c").write_text(SOURCE)
    flags = ["gcc", version, optimise, "-ffunction-sections", "-o", "a", "a.c"]
    subprocess.run(flags, cwd=tmp_path, check=True)
    program = str(tmp_path / "a")
    listing = subprocess.run(["objdump", "-d", program], capture_output=True, text=True, check=True).stdout
    text = [line.split(":")[0].strip() for line in listing.splitlines() if line.startswith("  ")]
    addresses = np.array([int(address, 16) for address in text], np.uint64)
    said = subprocess.run(["addr2line", "-e", program, *text], capture_output=True, text=True, check=True)
    expected = [line.partition(" (")[0] for line in said.stdout.splitlines()]
    found = LineTables().lookup(program, addresses)
    told = ["??:?" if line is None else f"{line[0]}:{line[1]}" for line in found]
    # For code without lines addr2line names the file of the symbol, if there is one.
    assert told == [re.sub(r".*:[?0]$", "??:?", line) for line in expected]
    assert sum(line is not None and line[0] == str(tmp_path / "a.c") for line in found) > 10


def test_what_cannot_be_read_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    addresses = np.array([1, 2], np.uint64)
    for module in (str(tmp_path / "text"), str(tmp_path / "absent"), "[vdso]", ""):
        assert LineTables().lookup(module, addresses) == [None, None]
    assert LineTables(patience=-1.0).lookup("/usr/bin/true", addresses) == [None, None]
