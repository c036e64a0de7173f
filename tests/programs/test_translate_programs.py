"""Real programs under the translate engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from programs.real import RealPrograms

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
