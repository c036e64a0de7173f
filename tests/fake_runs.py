"""A run made up by hand: two processes, one with two threads, every number easy to check."""

from __future__ import annotations

from typing import Any

import model_builders
import numpy as np

from livepro.model import (
    BlockTable,
    Flow,
    Instruction,
    ProcessResult,
    RunResult,
    SimdFacts,
    SimdType,
    ThreadCounts,
)


def instruction(code: bytes, opcode: str, itypes: tuple[str, ...], **facts: Any) -> Instruction:
    return model_builders.instruction(opcode, code=code, itypes=itypes, **facts)


def simd(name: str, kind: SimdType, width: int, scalar: bool = False) -> SimdFacts:
    return SimdFacts(name, kind, width, scalar, "f32", False, name, f"{name} {kind.value.lower()}")


ADD = instruction(b"\x01\xd8", "ADD", ("arithmetic",))
LOAD = instruction(b"\x8b\x03", "MOV", ("mem_read",), reads_memory=True)
JNZ = instruction(b"\x75\x00", "JNZ", ("control",), flow=Flow.BRANCH)
MOVSB = instruction(b"\xf3\xa4", "MOVSB", ("mem_read", "mem_write", "string"), rep=True)
ADDPS = instruction(b"\x0f\x58\xc1", "ADDPS", ("sse",), simd=simd("SSE1f", SimdType.ARITHMETIC, 128))
ADDSS = instruction(
    b"\xf3\x0f\x58\xc1", "ADDSS", ("sse",), simd=simd("SSE1f", SimdType.ARITHMETIC, 32, scalar=True)
)
VADDPS = instruction(
    b"\x62\xf1\x7c\x48\x58\xc2", "VADDPS", ("sse",), simd=simd("AVX512F", SimdType.ARITHMETIC, 512)
)

LONG_NAME = "std::vector<std::pair<int, std::string>, std::allocator<int>>::_M_realloc_insert"


def table(*blocks: tuple[int, str, str, tuple[Instruction, ...]]) -> BlockTable:
    """A table of (address, function, module, instructions); offsets are addresses mod 2**20."""
    forms = list(dict.fromkeys(i for block in blocks for i in block[3]))
    addresses = [block[0] for block in blocks]
    return BlockTable(
        address=np.array(addresses, np.uint64),
        size=np.array([sum(i.length for i in block[3]) for block in blocks], np.uint32),
        length=np.array([len(block[3]) for block in blocks], np.uint32),
        code=tuple(b"".join(i.code for i in block[3]) for block in blocks),
        step=np.array([i.length for block in blocks for i in block[3]], np.uint8),
        form=np.array([forms.index(i) for block in blocks for i in block[3]], np.uint32),
        instructions=tuple(forms),
        function=tuple(block[1] for block in blocks),
        module=tuple(block[2] for block in blocks),
        offset=np.array([a % 2**20 for a in addresses], np.uint64),
    )


def thread(
    tid: int, name: str, entries: list[int], partial: list[list[int]] | None = None, iterations: int = 0
) -> ThreadCounts:
    return ThreadCounts(
        tid=tid,
        name=name,
        entries=np.array(entries, np.uint64),
        partial=np.array(partial or [], np.int64).reshape(-1, 3),
        rep_iterations=iterations,
    )


def single() -> RunResult:
    """One process, one thread: 3000 + 40 + 1 instructions."""
    blocks = table(
        (0x401000, "main", "/usr/bin/prog", (ADDPS, ADD, JNZ)),  # 1000 times
        (0x401100, LONG_NAME, "/usr/lib/x86_64-linux-gnu/libc.so.6", (LOAD, ADDSS, MOVSB, JNZ)),  # 10 times
        (0x7FFF_0000_0F00, "", "[vdso]", (VADDPS, JNZ)),  # left after its first instruction
    )
    process = ProcessResult(
        pid=100,
        ppid=99,
        image=0,
        command=("prog", "--fast"),
        machine="x86_64",
        exit=3,
        table=blocks,
        threads=(thread(100, "prog", [1000, 10, 0], [[2, 1, 1]], iterations=50),),
    )
    return RunResult("step", ("prog", "--fast"), 3, 1.25, 0, (process,), {"stops": 3090})


def several() -> RunResult:
    """Two processes, the second with two images and the last image with two threads."""
    first = single().processes[0]
    shell = ProcessResult(
        pid=101,
        ppid=100,
        image=0,
        command=("prog", "--fast"),
        machine="x86_64",
        exit=None,
        table=table((0x401000, "main", "/usr/bin/prog", (ADD, JNZ))),
        threads=(thread(101, "prog", [5]),),
    )
    child = ProcessResult(
        pid=101,
        ppid=100,
        image=1,
        command=("/usr/bin/worker", "-a", "very", "long", "command", "line", "that", "does", "not", "fit"),
        machine="x86_64",
        exit=143,
        table=table((0x501000, "spin", "/usr/bin/worker", (VADDPS, JNZ)), (0x501100, "idle", "", (JNZ,))),
        threads=(thread(101, "worker", [500, 0]), thread(102, "[helper]", [0, 7])),
    )
    return RunResult(
        "step", ("prog", "--fast"), 3, 75.0, 0, (first, shell, child), {}, ("one thread was lost [bold].",)
    )
