"""The engines count real programs alike: block by block, to the instruction.

The programs are those that do the same in every run: nothing here depends on the time (who asks the vDSO
for it asks again when the kernel has just set it), on where memory is (no randomisation) or the
directory, on hash seeds, or on how much a pipe holds when it is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from engines.contract import Runner
from engines.observed import TIMEOUT
from programs.real import prepared

SEEDS = {"PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}

STEPPED: dict[str, tuple[str, ...]] = {
    "true": ("true",),
    "ls": ("ls", "-a", "data", "none"),
    "gzip": ("gzip", "-nc", "data/text"),
    "sort": ("sort", "-rn", "--parallel=1", "data/text"),
    "sh": ("sh", "-c", "for i in 1 2 3; do echo $((i * i)); done; exec ls data"),
}
"""Programs that step can afford."""

OTHERS: dict[str, tuple[str, ...]] = {
    "perl": ("perl", "-e", "$p = fork or exit 3; waitpid $p, 0; print $? >> 8"),
    "git": ("git", "hash-object", "data/text"),
    "awk": ("awk", "{ n += $2; seen[length($2)]++ } END { print n, seen[3] }", "data/text"),
}
"""Programs that it cannot."""

PYTHON = ("python3", "-s", "-S", "-c", "print(sum(range(10**4)))")
PYTHON_TIMEOUT = 400.0


def counted(
    engine: str, command: Sequence[str], directory: Path, timeout: float = TIMEOUT
) -> list[dict[str, Any]]:
    """What an engine counts, of every process and thread, with nothing in it that differs from run to run."""
    results, place = directory / engine, directory / "place"
    results.mkdir()
    if place.exists():
        shutil.rmtree(place)
    seen = Runner(engine, results)(*command, aslr=False, env=SEEDS, cwd=prepared(place), timeout=timeout)
    assert seen.result["engine"] == engine
    processes = [dict(p, pid=0, ppid=0, command=[], addresses=sorted(p["addresses"])) for p in seen.processes]
    for process in processes:
        process["threads"] = [dict(thread, tid=0) for thread in process["threads"]]
    return [{"exit": seen.result["exit"], "stdout": seen.stdout.hex()}, *processes]


@pytest.mark.long
@pytest.mark.parametrize("name", STEPPED)
def test_three_engines_count_alike(name: str, tmp_path: Path) -> None:
    step, block, translate = (counted(e, STEPPED[name], tmp_path) for e in ("step", "block", "translate"))
    assert step[1]["instructions"] > 50_000
    assert translate == step
    assert block == step


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_the_fast_engines_count_alike(name: str, tmp_path: Path) -> None:
    block, translate = (counted(engine, OTHERS[name], tmp_path) for engine in ("block", "translate"))
    assert sum(process["instructions"] for process in block[1:]) > 300_000
    assert translate == block


@pytest.mark.long
def test_the_fast_engines_count_an_interpreter_alike(tmp_path: Path) -> None:
    """Function by function. It reads the clock as it starts, and how often the vDSO tries again is
    chance, more so where each of its blocks is a stop: the one function that is left out."""
    runs = [counted(engine, PYTHON, tmp_path, PYTHON_TIMEOUT) for engine in ("block", "translate")]
    block, translate = (run[1]["threads"][0]["functions"] for run in runs)
    clocks = [functions.pop("clock_gettime") for functions in (block, translate)]
    assert runs[0][0] == runs[1][0] == {"exit": 0, "stdout": b"49995000\n".hex()}
    assert sum(translate.values()) > 5_000_000 > 100 * max(clocks)
    assert translate == block
