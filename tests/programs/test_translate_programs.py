"""Real programs under the translate engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from programs.real import REPOSITORY, RealPrograms
from tools import needed

import livepro


class TestTranslatePrograms(RealPrograms):
    engine = "translate"
    heavy = True
    heaviest = True


def test_threads_meet_new_code_at_the_same_time(tmp_path: Path) -> None:
    """A threaded compressor, many times over: what one thread has translated another
    enters at once, so nothing may be entered before it is whole."""
    text = tmp_path / "text"
    text.write_bytes(b"".join(b"%d %d\n" % (i, i * i % 977) for i in range(150_000)))
    command = ["xz", "-T4", "-0", "--block-size=100000", "--keep", "--force", str(text)]
    packed = text.with_suffix(".xz")
    subprocess.run(command, check=True)
    native = packed.read_bytes()
    for _ in range(12):
        packed.unlink()
        result = livepro.run(command, engine="translate")
        assert result.exit == 0
        assert packed.read_bytes() == native


def test_threads_of_a_rust_program(tmp_path: Path) -> None:
    """Four of them search five hundred files, and hand each other work; which does what is chance."""
    for number in range(500):
        lines = (f"{number * line % 61} of {line}\n" for line in range(200))
        (tmp_path / f"{number}.txt").write_text("".join(lines))
    command = [needed("rg", "ripgrep"), "--threads", "4", "--count", "^7 of .*[13]$", str(tmp_path)]
    native = subprocess.run(command, capture_output=True, text=True, check=True)
    out = tmp_path / "counts.json"
    measured = [sys.executable, "-m", "livepro", "run", "-q", "--json", str(out), "--", *command]
    done = subprocess.run(measured, capture_output=True, text=True, cwd=REPOSITORY)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(native.stdout.splitlines())
    (process,) = json.loads(out.read_text())["processes"]
    assert len(process["threads"]) >= 5
