"""What people install: the source distribution, the wheel made of it, in an environment with nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def run(*command: str, cwd: Path) -> str:
    """What a command prints that ends well."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_source_distribution_leads_to_a_wheel_that_works(tmp_path: Path) -> None:
    """All that livepro consists of is in both; what it needs comes from the index, as for anybody."""
    sources, out = tmp_path / "sources", tmp_path / "out"
    for name in ("pyproject.toml", "setup.py", "README.md"):
        sources.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, sources)
    shutil.copytree(REPOSITORY / "livepro", sources / "livepro", ignore=shutil.ignore_patterns("__pycache__"))
    parts = {str(path.relative_to(sources)) for path in (sources / "livepro").rglob("*") if path.is_file()}
    out.mkdir()
    build = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    name = run(sys.executable, "-c", build, str(out), cwd=sources).split()[-1]
    with tarfile.open(out / name) as archive:
        assert parts <= {member.partition("/")[2] for member in archive.getnames()}
    run(*PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", str(out), str(out / name), cwd=out)
    (wheel,) = out.glob("livepro-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert parts <= set(archive.namelist())

    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=tmp_path)
    there = tmp_path / "venv/bin"
    run(*PIP, "--python", str(there / "python"), "install", str(wheel), cwd=tmp_path)
    livepro = str(there / "livepro")
    assert run(livepro, "--version", cwd=tmp_path).startswith("livepro ")
    assert "livepro can run here." in run(livepro, "doctor", cwd=tmp_path)
    for engine in ("translate", "block", "step"):
        run(
            livepro, "run", "-q", "--engine", engine, "--json", "report.json", "--", "/bin/true", cwd=tmp_path
        )
        report = json.loads((tmp_path / "report.json").read_text())
        assert report["instructions"] > 1_000
    there_now = Path(
        run(str(there / "python"), "-c", "import livepro; print(livepro.__file__)", cwd=tmp_path)
    )
    assert there_now.is_relative_to(tmp_path / "venv")
