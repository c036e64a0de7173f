"""`livepro cache`: what is kept, and away with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from livepro.cli import cache


def test_says_how_much_there_is_and_clears_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    monkeypatch.setenv("LIVEPRO_CACHE_DIR", str(kept))
    assert cache.main([]) == 0
    assert capsys.readouterr().out == f"{kept}: 0 files, 0.0 MB of at most 1,073.7 MB\n"
    kept.mkdir()
    (kept / "one").write_bytes(bytes(200_000))
    (kept / "within").mkdir()
    (kept / "within" / "two").write_bytes(bytes(100_000))
    assert cache.main([]) == 0
    assert capsys.readouterr().out == f"{kept}: 2 files, 0.3 MB of at most 1,073.7 MB\n"
    assert cache.main(["--clear"]) == 0
    assert capsys.readouterr().out == f"removed 2 files, 0.3 MB, from {kept}\n"
    assert list(kept.iterdir()) == []


@pytest.mark.parametrize(("options", "keeps"), [([], True), (["--no-cache"], False)])
def test_run_keeps_unless_told_not_to(options: list[str], keeps: bool, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    subprocess.run(
        [sys.executable, "-m", "livepro", "run", "-q", *options, "--", "/bin/true"],
        env={"LIVEPRO_CACHE_DIR": str(kept), "PATH": "/usr/bin:/bin"},
        check=True,
        timeout=60,
    )
    assert kept.exists() is keeps
