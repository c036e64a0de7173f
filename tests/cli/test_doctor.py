from __future__ import annotations

import io
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from livepro.cli.main import main
from livepro.doctor import examination as doctor
from livepro.doctor.packages import TOOLS, Tool, missing
from livepro.linux.permissions import Permissions
from livepro.linux.probe import Probe
from livepro.ui.console import open_console
from livepro.ui.findings import Finding, State, print_findings

ALLOWED = Permissions(yama=1, sys_ptrace=False, seccomp=0, tracer=0)


def test_here(capsys: pytest.CaptureFixture[str]) -> None:
    """In the shape that it has for anybody; a run is possible where these tests run."""
    done = subprocess.run([sys.executable, "-m", "livepro", "doctor"], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["ok", "ptrace", "seized", "and", "single-stepped", "a", "child"] in lines
    named = {" ".join(words[1:2]) for words in lines if words and words[0] in ("ok", "--", "NO")}
    assert {
        "ptrace",
        "Yama",
        "CAP_SYS_PTRACE",
        "seccomp",
        "block-step",
        "hardware",
        "generated",
        "new",
    } <= named
    assert {"capstone", "iced-x86", "numpy", "python-ptrace", "kernel", "SIMD"} <= named
    engines = [words[1] for words in lines[lines.index(["Engines"]) + 1 :] if words[:1] == ["ok"]]
    assert engines == ["translate", "block", "step"]
    assert done.stdout.endswith("livepro can run here.\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="it tells of shapes, which x86-64 alone has")
def test_what_translates_new_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compiled when that is asked for, and said to be; without numba the way to it is."""
    from livepro.engines.translate.translator.compiling import store

    assert main(["doctor", "--prepare"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^Ready after \d+ s; [\d,]+ shapes of instructions are known\.$", out, re.MULTILINE)
    assert doctor.new_code() == Finding("new code", State.OK, "translated by compiled code")

    def none(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(store, "version", none)
    found = doctor.new_code()
    assert (found.state, found.remedy) == (State.NOTE, "Run `pip install 'livepro[events]'`.")


def test_what_the_tests_need(capsys: pytest.CaptureFixture[str]) -> None:
    """In CI nothing is missing; elsewhere the command to get it is said."""
    status = main(["doctor", "--tests"])
    out = capsys.readouterr().out
    assert len([line for line in out.splitlines() if line.split()[:1] in (["ok"], ["--"])]) == len(TOOLS)
    assert status == (0 if "No test is skipped for want of a package.\n" in out else 1)
    if os.environ.get("CI"):
        assert status == 0, out
    absent = Tool("no-such-program", "one", "nothing"), Tool("/no/such/file", "two", "nothing")
    assert missing([*absent, TOOLS[0]]) == 2
    assert capsys.readouterr().out.endswith("\napt install --no-install-recommends one two\n")


class Refused:
    """Stands for a kernel that watches nothing, or not everything."""

    def __init__(self, *_: object) -> None:
        raise OSError(38, "Function not implemented")


class InPart:
    whole = False

    def __init__(self, *_: object) -> None: ...

    def close(self) -> None: ...


def test_where_generated_code_cannot_be_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "WriteFaults", Refused)
    found = doctor.generated_code()
    assert (found.state, "Function not implemented" in found.detail) == (State.NOTE, True)
    monkeypatch.setattr(doctor, "WriteFaults", InPart)
    found = doctor.generated_code()
    assert (found.state, "Java" in found.detail) == (State.NOTE, True)


def test_where_ptrace_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "probe_tracing", lambda: Probe(False, "refused: Operation not permitted"))
    monkeypatch.setattr(doctor, "permissions", lambda: Permissions(None, False, 2, 0))
    assert main(["doctor"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "NO ptrace refused: Operation not permitted. A seccomp filter is installed" in said
    assert "--cap-add=SYS_PTRACE" in said
    assert all(f"NO {engine}" in said for engine in ("translate", "block", "step"))
    assert said.endswith("livepro cannot run here: see the lines marked NO.")


def test_engines_of_another_machine() -> None:
    found = {f.name: (f.state, f.detail) for f in doctor.engines(True, "aarch64")}
    assert found["translate"][0] is State.OK
    assert found["step"][0] is State.OK
    assert [name for name, (_, detail) in found.items() if "default" in detail] == ["block"]
    found = {f.name: (f.state, f.detail) for f in doctor.engines(True, "riscv64")}
    assert found["translate"] == (State.NOTE, "not for riscv64 yet")


def test_a_library_that_does_not_load() -> None:
    found = doctor.library("nothing", "livepro_no_such_module")
    assert found.state is State.BAD
    assert "ModuleNotFoundError" in found.detail
    assert "pip install --force-reinstall nothing" in found.remedy


def test_yama_is_a_note_while_children_may_be_traced() -> None:
    states = {f.name: f.state for f in doctor.tracing(ALLOWED)}
    assert states["Yama ptrace_scope"] is State.OK
    assert states["CAP_SYS_PTRACE"] is State.NOTE
    strict = {f.name: f.state for f in doctor.tracing(Permissions(2, True, 0, 0))}
    assert strict["Yama ptrace_scope"] is State.NOTE


def test_long_findings_are_wrapped_under_their_column() -> None:
    out = io.StringIO()
    print_findings(open_console(out, 60), "Title", [Finding("name", State.NOTE, "word " * 30, "Do this.")])
    lines = out.getvalue().splitlines()
    assert lines[0] == "Title"
    assert lines[1].startswith("  --  name                word word")
    assert all(line.startswith(" " * 26 + "word") for line in lines[2:-1])
    assert max(map(len, lines)) <= 60
    assert "Do this." in " ".join(out.getvalue().split())
