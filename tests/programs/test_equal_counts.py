"""The engines count real programs alike: block by block, to the instruction.

The programs are those that do the same in every run: nothing here depends on what the time is, on where
memory is (no randomisation) or the directory, on hash seeds, on how many digits a process number has (a
shell spells out its parent's), or on how much a pipe holds when it is read. Some ask the vDSO for the time:
it reads it again when the kernel has set it meanwhile, which is chance, more so where each of its blocks is
a stop. Of those, all but the vDSO is compared.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from engines.contract import Runner
from engines.observed import regions
from programs.real import prepared

SEEDS = {"PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}

STEPPED: dict[str, tuple[str, ...]] = {
    "true": ("true",),
    "ls": ("ls", "-a", "data", "none"),
    "gzip": ("gzip", "-nc", "data/text"),
    "sort": ("sort", "-rn", "--parallel=1", "data/text"),
    "env": ("env", "-u", "NONE", "ls", "data"),  # two images
}
"""Programs that step can afford."""

OTHERS: dict[str, tuple[str, ...]] = {
    "perl": ("perl", "-e", "$p = fork or exit 3; waitpid $p, 0; print $? >> 8"),
    "awk": ("awk", "{ n += $2; seen[length($2)]++ } END { print n, seen[3] }", "data/text"),
}
"""Programs that it cannot."""

PYTHON = ("python3", "-s", "-S", "-c", "print(sum(range(10**4)))")
PYTHON_TIMEOUT = 400.0


def counted(engine: str, command: Sequence[str], directory: Path) -> list[dict[str, Any]]:
    """What an engine counts, of every process and thread, with nothing in it that differs from run to run."""
    results, place = directory / engine, directory / "place"
    results.mkdir()
    if place.exists():
        shutil.rmtree(place)
    seen = Runner(engine, results)(*command, aslr=False, env=SEEDS, cwd=prepared(place))
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
def test_the_fast_engines_count_alike_what_reads_the_clock(tmp_path: Path) -> None:
    """The clock's code in the vDSO apart."""
    command = ("git", "hash-object", "data/text")
    block, translate = (counted(engine, command, tmp_path) for engine in ("block", "translate"))
    assert block[0] == translate[0]
    (block_thread,), (translate_thread,) = block[1]["threads"], translate[1]["threads"]
    assert block_thread["instructions"] > 300_000
    assert block_thread["faults"] == translate_thread["faults"] == []
    assert block_thread["besides_vdso"] != block_thread["digest"]
    assert block_thread["besides_vdso"] == translate_thread["besides_vdso"]


@pytest.mark.long
def test_the_fast_engines_count_an_interpreter_alike(tmp_path: Path) -> None:
    """CPython's start as far as its first import, the clock's code in the vDSO apart: four million
    instructions, of twenty that block would need minutes for."""
    cases = json.dumps([{"aslr": False, "env": SEEDS, "stop_at": "PyImport_ImportFrozenModule"}])
    seen = []
    for engine in ("block", "translate"):
        answers = tmp_path / engine
        regions((str(answers), engine, cases, *PYTHON), answers, b"", PYTHON_TIMEOUT)
        (answer,) = json.loads(answers.read_text())
        assert (answer["exit"], answer["ended"], answer["faults"]) == (0, True, [])
        seen.append(answer)
    assert seen[0]["instructions"] > 3_000_000
    assert seen[0]["besides_vdso"] == seen[1]["besides_vdso"]
