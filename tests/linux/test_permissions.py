from __future__ import annotations

from pathlib import Path

import pytest

from livepro.linux.permissions import Permissions, permissions


def system(tmp_path: Path, status: str, yama: str | None) -> Permissions:
    """What is read from a /proc made of `status` and Yama's setting."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(status)
    if yama is not None:
        (tmp_path / "sys/kernel/yama").mkdir(parents=True)
        (tmp_path / "sys/kernel/yama/ptrace_scope").write_text(yama)
    return permissions(tmp_path)


STATUS = "Name:\tx\nTracerPid:\t{tracer}\nCapEff:\t{cap}\nSeccomp:\t{seccomp}\n"


def test_root_without_yama(tmp_path: Path) -> None:
    status = STATUS.format(tracer=0, cap="000001ffffffffff", seccomp=0)
    found = system(tmp_path, status, None)
    assert found == Permissions(yama=None, sys_ptrace=True, seccomp=0, tracer=0)
    assert found.yama_text == "not in this kernel"
    assert found.seccomp_text == "off"
    assert "security module" in found.remedy()


def test_all_capabilities_but_the_one(tmp_path: Path) -> None:
    cap = f"{0x1FFFFFFFFFF & ~(1 << 19):016x}"
    found = system(tmp_path, STATUS.format(tracer=77, cap=cap, seccomp=0), "1\n")
    assert found == Permissions(yama=1, sys_ptrace=False, seccomp=0, tracer=77)


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (Permissions(3, True, 0, 0), "restart the machine"),
        (Permissions(2, False, 0, 0), "sysctl kernel.yama.ptrace_scope=1"),
        (Permissions(2, True, 2, 0), "--cap-add=SYS_PTRACE"),
        (Permissions(None, False, 2, 0), "--cap-add=SYS_PTRACE"),
        (Permissions(1, False, 0, 0), "security module"),
    ],
)
def test_remedies(found: Permissions, remedy: str) -> None:
    assert remedy in found.remedy()


def test_what_cannot_be_read_counts_as_absent(tmp_path: Path) -> None:
    assert permissions(tmp_path) == Permissions(None, False, 0, 0)
