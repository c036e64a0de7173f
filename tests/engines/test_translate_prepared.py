"""The compiled translator: how it is compiled and kept, and who does without."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from engines.observed import TIMEOUT

if platform.machine() != "x86_64":
    pytest.skip("it looks at shapes, which x86-64 alone has", allow_module_level=True)

from engines.compiled_shapes import shapes_of_none

from livepro.engines.translate.translator.compiling import background, native
from livepro.engines.translate.translator.compiling import store as compiling
from livepro.engines.translate.translator.compiling.native import ObjectFile
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.x86_64.compiled.prepared import loading, store
from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable
from livepro.engines.translate.translator.x86_64.compiler import Compiler
from livepro.engines.translate.translator.x86_64.emitter import Emitter

TWIN = Path(__file__).with_name("compiled_twin.py")


def test_versions_are_never_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another version has compiled goes before this one compiles anything."""
    shapes = shapes_of_none()
    monkeypatch.setattr(compiling, "place", lambda here: tmp_path)
    kept = store.ShapeStore()
    assert kept.read() is None
    kept.write(store.Kept(ObjectFile(b"code", "entry", []), store.nothing_learnt(8)))
    compiled = kept.read()  # and no shape has been learnt yet
    assert compiled is not None
    assert len(compiled.learnt.lengths) == 0
    for at in range(3):
        shapes.learn(np.frombuffer(b"\x90\x48\x89\xc8".ljust(32, b"\0"), np.uint8), at)
    told = store.Kept(ObjectFile(b"code", "entry", ["NRT_Free"]), shapes.kept().learnt)
    kept.write(told)
    for name in ("chaining.translate-1.py311.nbi", "chaining.translate-1.py311.1.nbc", "0" * 40):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "chaining.cpython-311.pyc").write_bytes(b"")
    found = kept.read()
    assert found is not None
    assert found.made == told.made
    for one, other in zip(found.learnt, told.learnt, strict=True):
        assert np.array_equal(one, other)
    again = ShapeTable(shapes.native, found.learnt)
    assert [again.example(row) for row in range(3)] == [b"\x90", b"\x48\x89\xc8", b"\x89\xc8"]
    assert [instruction.mnemonic for instruction in again.described(np.arange(3))[1]] == ["nop", "mov", "mov"]
    monkeypatch.setattr(compiling, "_processor", lambda: "another")
    other = store.ShapeStore()
    assert other.read() is None
    other.discard_others()
    assert [path.name for path in tmp_path.iterdir()] == ["chaining.cpython-311.pyc"]
    assert kept.read() is None


def test_what_cannot_be_loaded_is_translated_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no memory may be written and executed: a run goes on, and does not ask again."""
    tried = []

    def refuse(self: native.Native, made: ObjectFile, specifications: object) -> None:
        tried.append(made.name)
        raise RuntimeError("Cannot allocate memory for code")

    kept = store.ShapeStore()
    loading.loaded(kept, kept.read())
    monkeypatch.setattr(native.Native, "__init__", refuse)
    compiler, emitter = Compiler(), Emitter(1 << 20, {}, Countdown.NONE)
    assert not compiler.ready(emitter)
    assert not compiler.ready(emitter)
    assert len(tried) == 1
    compiler.close()


def test_what_is_compiled_is_loaded_without_numba() -> None:
    """To import that takes longer than to translate a small program."""
    kept = store.ShapeStore()
    loading.loaded(kept, kept.read())
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_NUMBA],
        env={**os.environ, "PYTHONPATH": str(TWIN.parents[2])},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert (done.returncode, done.stdout) == (0, "True False\n"), done.stderr


_WITHOUT_NUMBA = """
import sys
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.x86_64.compiler import Compiler
from livepro.engines.translate.translator.x86_64.emitter import Emitter
print(Compiler().ready(Emitter(1 << 20, {}, Countdown.NONE)), "numba" in sys.modules)
"""


def test_nothing_may_have_been_compiled_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no directory for it where Python writes no bytecode (PYTHONDONTWRITEBYTECODE)."""
    monkeypatch.setattr(compiling, "place", lambda here: tmp_path / "none")
    store.ShapeStore().discard_others()
    assert not (tmp_path / "none").exists()


def test_compiling_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one process at a time, which is nobody's child: a tracer waits for all its own."""
    told = tmp_path / "told"
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho "$@" $PPID $(sed -n s/^PPid:.//p /proc/$PPID/status) >> {told}\nsleep 0.3\n'
    )
    python.chmod(0o700)
    monkeypatch.setattr(background.sys, "executable", str(python))
    for _ in range(2):
        background.prepare_meanwhile(tmp_path)
    deadline = time.monotonic() + TIMEOUT
    while not told.exists() or (tmp_path / "preparing").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)  # it is nobody's child: nothing tells of its end
    (line,) = told.read_text().splitlines()
    assert line.startswith("-m livepro doctor --prepare ")
    assert str(os.getpid()) not in line.split()  # its parent's, and that one's parent's
