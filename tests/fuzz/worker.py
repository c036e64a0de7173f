"""One run of a program under an engine, as a process of its own: it may hang or die.

Usage: worker.py ENGINE PROGRAM OUT. The program inherits standard output. ENGINE may
be "allowances": the translate engine with vectors, and allowances for them. OUT
(.npz) gets `addresses` and `counts` (how often the instruction at each address
was executed), `total`, `exit`, `warnings`, and `codes`: which encodings were executed, by iced's
numbers.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from iced_x86 import Decoder

import livepro
from livepro.model import ProcessResult
from tests.engines.allowing import allow_always
from tests.fuzz.runner import ALLOWANCES


def executions(process: ProcessResult) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Addresses of the instructions that a process executed, ascending, and how often each was."""
    table = process.table
    sizes = table.step.astype(np.uint64)  # not of `form`: encodings of one form differ in length
    # Within a block an instruction stands behind those before it.
    ends = np.cumsum(sizes, dtype=np.uint64)
    first = np.repeat((ends - sizes)[table.start[:-1]], table.length)
    addresses = np.repeat(table.address, table.length) + (ends - sizes) - first
    counts = np.zeros(len(addresses), np.uint64)
    for thread in process.threads:
        counts += thread.executions(table)
    found, where = np.unique(addresses, return_inverse=True)
    sums = np.zeros(len(found), np.uint64)
    np.add.at(sums, where, counts)
    return found[sums > 0], sums[sums > 0]


def codes(process: ProcessResult) -> npt.NDArray[np.int64]:
    """iced's numbers of the encodings that a process executed."""
    table = process.table
    executed = np.zeros(len(table.form), bool)
    for thread in process.threads:
        executed |= thread.executions(table) > 0
    sizes, ran, at = table.step.tolist(), executed.tolist(), 0
    found = set()
    for code, length in zip(table.code, table.length.tolist(), strict=True):
        begin = 0
        for index in range(at, at + length):
            end = begin + sizes[index]
            if ran[index]:
                found.add(code[begin:end])
            begin = end
        at += length
    return np.array(sorted({Decoder(64, code).decode().code for code in found}), np.int64)


def main(engine: str, program: str, out: str) -> None:
    """Run, and write what was counted."""
    options: dict[str, Any] = {"cache": False}  # nobody runs the program again
    if engine == ALLOWANCES:
        allow_always()
        engine, options = "translate", {**options, "interval_size": 500}
    result = livepro.run([program], engine=engine, env={}, aslr=False, **options)
    addresses, counts = executions(result.processes[0])
    np.savez(
        out,
        addresses=addresses,
        counts=counts,
        total=np.uint64(result.instructions),
        exit=np.int64(result.exit),
        codes=codes(result.processes[0]),
        warnings=np.array(result.warnings, np.str_),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
