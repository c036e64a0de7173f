"""Hand-built models for tests: tables, threads and runs whose every count can be worked out on paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livepro.model import (
    BlockTable,
    Flow,
    Instruction,
    Interval,
    ProcessResult,
    RunResult,
    SimdFacts,
    SimdType,
    ThreadCounts,
)


def instruction(opcode: str, size: int = 1, **facts: Any) -> Instruction:
    """An instruction of `size` bytes; `facts` replace the defaults of a plain ALU instruction.

    The bytes are made up, but equal for equal arguments and different for
    different ones as long as the opcode differs in its first `size` letters.
    """
    defaults: dict[str, Any] = {
        "code": opcode.encode().ljust(size, b".")[:size],
        "mnemonic": opcode.lower(),
        "opcode": opcode,
        "form": opcode,
        "category": "BINARY",
        "flow": Flow.NEXT,
        "rep": False,
        "reads_memory": False,
        "writes_memory": False,
        "itypes": ("arithmetic",),
        "simd": None,
    }
    return Instruction(**{**defaults, **facts})


def simd(opcode: str, **facts: Any) -> Instruction:
    """A packed 128-bit f32 SSE1f addition named `opcode`; `facts` replace its SIMD facts."""
    defaults: dict[str, Any] = {
        "set": "SSE1f",
        "type": SimdType.ARITHMETIC,
        "width": 128,
        "scalar": False,
        "element": "f32",
        "masked": False,
        "extension": "SSE",
        "description": f"{opcode.lower()} of packed floats",
    }
    given = SimdFacts(**{**defaults, **facts})
    return instruction(opcode, 4, category="SSE", itypes=("sse",), simd=given)


ADD = instruction("ADD", 2)
NOP = instruction("NOP", 1, category="NOP", itypes=("nop",))
JNZ = instruction("JNZ", 2, flow=Flow.BRANCH, category="COND_BR", itypes=("control",))
RET = instruction("RET", 1, flow=Flow.RETURN, category="RET", itypes=("control",))
FLDCW = instruction("FLDCW", 3, reads_memory=True, category="X87_ALU", itypes=("mem_read",))
REP_STOSB = instruction("STOSB", 2, rep=True, writes_memory=True, category="STRINGOP", itypes=("string",))
REP_MOVSB = instruction("MOVSB", 2, rep=True, writes_memory=True, category="STRINGOP", itypes=("string",))


def table(
    *blocks: tuple[int, Sequence[Instruction]] | tuple[int, Sequence[Instruction], str, str],
) -> BlockTable:
    """A table of blocks (address, instructions[, function, module]); offset is address mod 2**20."""
    full = [(*b, "", "/bin/prog") if len(b) == 2 else b for b in blocks]
    forms = list(dict.fromkeys(i for b in full for i in b[1]))
    row = {f: n for n, f in enumerate(forms)}
    address = np.array([b[0] for b in full], np.uint64)
    return BlockTable(
        address=address,
        size=np.array([sum(i.length for i in b[1]) for b in full], np.uint32),
        length=np.array([len(b[1]) for b in full], np.uint32),
        code=tuple(b"".join(i.code for i in b[1]) for b in full),
        step=np.array([i.length for b in full for i in b[1]], np.uint8),
        form=np.array([row[i] for b in full for i in b[1]], np.uint32),
        instructions=tuple(forms),
        function=tuple(b[2] for b in full),
        module=tuple(b[3] for b in full),
        offset=address % np.uint64(2**20),
    )


def interval(counts: dict[int, int]) -> Interval:
    """An interval from {table row: instructions executed there}."""
    rows = sorted(counts)
    return Interval(
        instructions=sum(counts.values()),
        rows=np.array(rows, np.int64),
        counts=np.array([counts[r] for r in rows], np.uint64),
    )


def thread(
    entries: Sequence[int],
    partial: Sequence[tuple[int, int, int]] = (),
    rep_iterations: int = 0,
    intervals: Sequence[Interval] = (),
    tid: int = 100,
    name: str = "main",
) -> ThreadCounts:
    """A thread that entered row i `entries[i]` times; `partial` as in ThreadCounts."""
    return ThreadCounts(
        tid=tid,
        name=name,
        entries=np.array(entries, np.uint64),
        partial=np.array(partial, np.int64).reshape(-1, 3),
        rep_iterations=rep_iterations,
        intervals=tuple(intervals),
    )


def process(blocks: BlockTable, *threads: ThreadCounts, pid: int = 100, **facts: Any) -> ProcessResult:
    """A finished process; `facts` replace its defaults."""
    defaults: dict[str, Any] = {
        "pid": pid,
        "ppid": 99,
        "image": 0,
        "command": ("/bin/prog",),
        "machine": "x86_64",
        "exit": 0,
        "table": blocks,
        "threads": threads,
    }
    return ProcessResult(**{**defaults, **facts})


def run(*processes: ProcessResult, **facts: Any) -> RunResult:
    """A run of `processes`; `facts` replace its defaults."""
    defaults: dict[str, Any] = {
        "engine": "step",
        "command": ("/bin/prog", "--fast"),
        "exit": 0,
        "wall_seconds": 0.5,
        "interval_size": 0,
        "processes": processes,
    }
    return RunResult(**{**defaults, **facts})
