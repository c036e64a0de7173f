"""Whose code a Java virtual machine executes: labels checked against what is known of the program."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from jvm import jdk

from fixtures import cpu_flags

LENGTH = 1003
CALLS = 3000
AXPY = "Kernels.axpy(F[F[F)V"

# C2 alone, in the foreground, and nothing but the kernel: when it is compiled does not depend on time.
ONLY_AXPY = (
    "-XX:+UseSerialGC",
    "-Xbatch",
    "-XX:-TieredCompilation",
    "-XX:CompileThreshold=500",
    "-XX:-UseOnStackReplacement",
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=compileonly,Kernels.axpy",
)

HOT = ("Deoptimise$Shape.area", "Unloading$Work.applyAsInt")

LEVELS = (
    {"SSE1f", "SSE1i", "SSE2f", "SSE2i", "SSE3", "SSSE3", "SSE4.1", "SSE4.2"},
    {"AVX"},
    {"AVX2", "FMA"},
    {"AVX512F", "AVX512BW", "AVX512DQ", "AVX512CD", "AVX512VL"},
)
"""Sets that -XX:UseAVX=0, 1, 2, 3 add."""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jdk.compile_all(tmp_path_factory.mktemp("classes"))


def allowed(level: int) -> set[str]:
    return set().union(*LEVELS[: level + 1])


def supported(level: int) -> int:
    """What HotSpot makes of -XX:UseAVX=`level` on this CPU."""
    flags = cpu_flags()
    return min(level, 3 if "avx512f" in flags else 2 if "avx2" in flags else 1 if "avx" in flags else 0)


def elements(blocks: list[dict[str, Any]]) -> int:
    """Floats stored by the blocks, as their code says: a store of a vector stores 32 bits each."""
    return sum(
        block["entries"] * width // 32
        for block in blocks
        for opcode, width, writes in block["code"]
        if writes and width and "MOV" in opcode
    )


@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.long), 1, 2, 3])
def test_a_known_loop_counts_what_its_code_says(level: int, classes: Path, tmp_path: Path) -> None:
    """Each call of the compiled kernel stores each element of the array once, in vectors and rests
    as the compiler chose: stores times their width are calls times length, exactly. The sets
    that the compiled code uses are those that the option allows."""
    options = (*ONLY_AXPY, f"-XX:UseAVX={level}")
    run = jdk.count(
        jdk.command("17", classes, "Axpy", str(CALLS), str(LENGTH), options=options), tmp_path / "out", AXPY
    )
    assert run.stdout.splitlines()[-1] == f"ok {CALLS} calls of {LENGTH}"
    assert (run.seen["exit"], run.seen["warnings"]) == (0, [])
    blocks = run.machine["blocks"]
    assert {(block["origin"], block["tier"]) for block in blocks} == {("C2", 4)}
    assert [block["partial"] for block in blocks] == [0] * len(blocks)
    calls = min(blocks, key=lambda block: block["address"])["entries"]
    assert CALLS - 1000 < calls < CALLS
    assert elements(blocks) == calls * LENGTH
    sets = set(run.machine["sets"]["C2"])
    assert sets <= allowed(supported(level))
    assert sets & LEVELS[min(supported(level), 1)]
    widest = max(width for block in blocks for _, width, writes in block["code"] if writes)
    assert widest == {0: 128, 1: 256, 2: 256, 3: widest}[supported(level)]


@pytest.mark.long
@pytest.mark.parametrize("level", [0, 1, 2])
def test_vector_api_kernels_use_the_sets_they_may(level: int, classes: Path, tmp_path: Path) -> None:
    """Each kernel checks its own results; what C2 makes of them keeps to the sets that are allowed."""
    kernels = [f"{name}.vector" for name in ("axpy", "dot", "matmul", "convolve", "search")]
    options = [*jdk.VECTOR_MODULE, "-XX:+UseSerialGC", f"-XX:UseAVX={level}"]
    command = jdk.command("17", classes, "Workload", "60", *kernels, options=options)
    alone = subprocess.run(command, capture_output=True, text=True, timeout=jdk.TIMEOUT, check=True)
    run = jdk.count(command, tmp_path / "out")
    assert (run.seen["exit"], run.stdout) == (0, alone.stdout)
    sets = set(run.machine["sets"]["C2"])
    assert sets <= allowed(supported(level))
    assert sets & LEVELS[supported(level)]


@pytest.mark.long
def test_totals_by_origin_sum_to_the_threads(classes: Path, tmp_path: Path) -> None:
    """In a run with every kind of code; the hot methods are there, in the code of a compiler: it compiles in
    the foreground and leaves these calls alone. (Else a machine under load may have compiled the callers,
    with the methods inside, before the methods themselves.)"""
    words = ("Together", "Deoptimise", "60000", "Unloading", "9")
    options = ["-XX:+UseSerialGC", "-Xbatch", "-XX:CompileCommand=quiet"]
    options += [f"-XX:CompileCommand=dontinline,{method}" for method in HOT]
    run = jdk.count(jdk.command("25", classes, *words, options=options), tmp_path / "out")
    assert (run.seen["exit"], run.seen["warnings"]) == (0, [])
    machine = run.machine
    for thread in machine["threads"]:
        assert sum(row[2] for row in thread["origins"]) == thread["instructions"]
        assert sum(row[3] for row in thread["origins"]) == thread["simd"]
    kinds = {row[0] for thread in machine["threads"] for row in thread["origins"]}
    assert kinds >= {"C1", "interpreter", "stub", "native wrapper", "VM", "native"}
    assert "generated" not in kinds
    tiers = {(row[0], row[1]) for thread in machine["threads"] for row in thread["origins"]}
    assert tiers <= {
        *(("C1", tier) for tier in (1, 2, 3)),
        ("C2", 4),
        *((kind, 0) for kind in ("interpreter", "stub", "native wrapper", "VM", "native")),
    }
    methods = {method for method, origin, _, _ in machine["methods"] if origin in ("C1", "C2")}
    assert methods >= {"Deoptimise$Shape.area(I)I", "Unloading$Work.applyAsInt(I)I"}


def test_an_interpreter_alone_has_no_compiled_code(classes: Path, tmp_path: Path) -> None:
    run = jdk.count(jdk.command("17", classes, "Hello", options=["-Xint"]), tmp_path / "out")
    assert run.stdout == "hello\n"
    kinds = {row[0] for thread in run.machine["threads"] for row in thread["origins"]}
    # Wrappers of native methods are the compilers' too: the interpreter calls such methods itself.
    assert kinds == {"interpreter", "stub", "VM", "native"}
