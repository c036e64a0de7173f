"""Blocks of a program of another instruction set, counted as QEMU's user-mode emulator executes it.

QEMU's log tells of every translation block that is executed (``-d exec,nochain``) and which
instructions it holds (``in_asm``): with these, counts are as exact as those of livepro's engines, of the
processor that QEMU emulates. Format: QEMU, accel/tcg/cpu-exec.c (log_cpu_exec) and disas.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from livepro.blocks.code import CodeFile, open_code
from livepro.blocks.exact import FileCounts, Seen
from livepro.blocks.files import parquet
from livepro.blocks.lines import with_lines
from livepro.blocks.rows import BlockRow, with_shares
from livepro.blocks.split import decode
from livepro.blocks.static import Describer

_EXECUTED = re.compile(r"^Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")
_STOPPED = re.compile(r"^Stopped execution of TB chain before 0x[0-9a-f]+ \[([0-9a-f]+)\]")
_LINE = re.compile(r"^0x([0-9a-f]+):  ")


def count(log: Iterable[str]) -> tuple[Counter[int], dict[int, int]]:
    """Executions of each translation block by its address, and the address of each one's last instruction."""
    executed: Counter[int] = Counter()
    last: dict[int, int] = {}
    first = -1
    for line in log:
        if match := _EXECUTED.match(line):
            executed[int(match[1], 16)] += 1
        elif line.startswith("IN:"):
            first = -1
        elif match := _LINE.match(line):
            at = int(match[1], 16)
            first = at if first < 0 else first
            last[first] = at
        elif match := _STOPPED.match(line):
            executed[int(match[1], 16)] -= 1
    return executed, last


def rows(file: CodeFile, executed: Counter[int], last: dict[int, int], benchmark: str = "") -> list[BlockRow]:
    """The basic blocks that a static program executed."""
    seen = []
    for address, times in executed.items():
        if times <= 0 or address not in last:
            continue
        code = file.read(address, last[address] + file.isa.max_instruction)
        decoded = [i for i in decode(file.isa, code, address) if i.start <= last[address]]
        if decoded:
            sizes = [i.end - i.start for i in decoded]
            seen.append(Seen(address, code[: decoded[-1].end - address], sizes, [times] * len(sizes), ""))
    counts = FileCounts(file, seen)
    return with_shares(counts.rows(Describer(file, benchmark=benchmark)))


def main(table: str, emulator: str, own: str, program: str, *arguments: str) -> int:
    """Run a program, count, write its blocks to the Parquet file `table`; its status. With `own` "1" only
    blocks that have a source line: of a static program built with -g, its own code."""
    read, write = os.pipe()
    command = [emulator, "-d", "exec,nochain,in_asm", "-D", f"/dev/fd/{write}", program, *arguments]
    with subprocess.Popen(command, pass_fds=(write,)) as running:
        os.close(write)
        with open(read, encoding="ascii", errors="replace") as log:
            executed, last = count(log)
        status = running.wait()
    file = open_code(program)
    try:
        found = with_lines(rows(file, executed, last))
        parquet.write([row for row in found if row.file or own != "1"], Path(table))
    finally:
        file.close()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
