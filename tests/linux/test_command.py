"""Finding a command as execvp does, and refusing what livepro cannot run."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
from pathlib import Path

import pytest
from samples import compile_sample

from livepro.errors import LiveproError
from livepro.linux import command
from livepro.linux.command import check_executable, resolve_command
from livepro.linux.elf import parse_header
from livepro.linux.permissions import Permissions

MACHINE = os.uname().machine


def script(path: Path, text: str | bytes, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def search_path(*folders: Path | str) -> dict[bytes, bytes]:
    return {b"PATH": b":".join(os.fsencode(str(folder)) for folder in folders)}


def refused(name: str, environment: dict[bytes, bytes], cwd: Path) -> LiveproError:
    with pytest.raises(LiveproError) as caught:
        resolve_command(name, environment, cwd)
    assert caught.value.cause.endswith(".")
    assert caught.value.remedy
    return caught.value


def elf_header(
    machine: int = 62, kind: int = 2, bits: int = 64, little: bool = True, phnum: int = 0, size: int = 64
) -> bytes:
    """An ELF header (System V ABI, chapter 4) without sections, padded with zeros."""
    order = "<" if little else ">"
    ident = b"\x7fELF" + bytes([bits // 32, 1 if little else 2, 1]) + bytes(9)
    word = "Q" if bits == 64 else "I"
    rest = struct.pack(
        f"{order}HHI{word}{word}{word}IHHHHHH", kind, machine, 1, 0, 64, 0, 0, 64, 56, phnum, 0, 0, 0
    )
    return (ident + rest).ljust(size, b"\0")[:size]


class TestResolve:
    def test_first_in_path(self, tmp_path: Path) -> None:
        for folder in "ab":
            script(tmp_path / folder / "tool", "#!/bin/sh\n")
        environment = search_path(tmp_path / "none", tmp_path / "b", tmp_path / "a")
        assert resolve_command("tool", environment, tmp_path) == str(tmp_path / "b/tool")

    def test_the_given_environment_counts_not_ours(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script(tmp_path / "tool", "#!/bin/sh\n")
        monkeypatch.setenv("PATH", str(tmp_path))
        assert refused("tool", search_path("/nowhere"), tmp_path / "none").status == 127

    def test_without_path_the_standard_directories(self, tmp_path: Path) -> None:
        assert resolve_command("sh", {}, tmp_path) == "/bin/sh"

    def test_an_empty_path_entry_is_the_working_directory(self, tmp_path: Path) -> None:
        script(tmp_path / "tool", "#!/bin/sh\n")
        assert resolve_command("tool", {b"PATH": b"/nowhere:"}, tmp_path) == "tool"
        assert resolve_command("tool", {b"PATH": b""}, tmp_path) == "tool"

    def test_relative_path_entries_start_at_the_working_directory(self, tmp_path: Path) -> None:
        script(tmp_path / "bin/tool", "#!/bin/sh\n")
        assert resolve_command("tool", {b"PATH": b"bin"}, tmp_path) == "bin/tool"

    def test_a_name_with_a_slash_is_taken_as_it_is(self, tmp_path: Path) -> None:
        script(tmp_path / "tool", "#!/bin/sh\n")
        assert resolve_command("./tool", {}, tmp_path) == "./tool"
        assert resolve_command(str(tmp_path / "tool"), {}, Path("/")) == str(tmp_path / "tool")

    def test_files_that_may_not_be_executed_are_passed_over(self, tmp_path: Path) -> None:
        script(tmp_path / "a/tool", "#!/bin/sh\n", 0o644)
        (tmp_path / "b/tool").mkdir(parents=True)
        script(tmp_path / "c/tool", "#!/bin/sh\n")
        folders = [tmp_path / "a", tmp_path / "b"]
        assert resolve_command("tool", search_path(*folders, tmp_path / "c"), tmp_path) == str(
            tmp_path / "c/tool"
        )
        error = refused("tool", search_path(*folders), tmp_path)
        assert error.status == 126
        assert error.cause == f"{tmp_path}/a/tool: permission denied."
        assert f"chmod +x {tmp_path}/a/tool" in error.remedy

    def test_not_found(self, tmp_path: Path) -> None:
        script(tmp_path / "gnuplot", "#!/bin/sh\n")
        error = refused("gnuplto", search_path(tmp_path), Path("/"))
        assert (error.status, error.cause) == (127, "gnuplto: command not found.")
        assert error.remedy == "Did you mean gnuplot?"
        assert refused("xyzzy", search_path(tmp_path), Path("/")).remedy == "Check the spelling."

    def test_not_found_but_in_this_directory(self, tmp_path: Path) -> None:
        script(tmp_path / "a.out", "#!/bin/sh\n")
        assert "./a.out" in refused("a.out", search_path("/nowhere"), tmp_path).remedy

    @pytest.mark.parametrize("name", ["./missing", "/no/such/file", "./tool/below", "bad\0/name", ""])
    def test_no_such_file(self, tmp_path: Path, name: str) -> None:
        script(tmp_path / "tool", "#!/bin/sh\n")
        assert refused(name, {}, tmp_path).status == 127

    def test_a_near_name_in_that_directory(self, tmp_path: Path) -> None:
        script(tmp_path / "simulate", "#!/bin/sh\n")
        assert refused("./simluate", {}, tmp_path).remedy == "Did you mean simulate?"

    @pytest.mark.parametrize(
        ("text", "cause"),
        [
            (b"", "empty"),
            (b"echo hello\n", "text file"),
            (b"MZ\x90\0\3", "Windows"),
            (b"\0\1\2\3", "neither"),
        ],
    )
    def test_what_is_no_program(self, tmp_path: Path, text: bytes, cause: str) -> None:
        script(tmp_path / "file", text)
        error = refused("./file", {}, tmp_path)
        assert error.status == 126
        assert cause in error.cause
        # The kernel agrees.
        with pytest.raises(OSError, match="Exec format error"):
            subprocess.run([tmp_path / "file"], check=False)

    def test_a_text_file_names_its_remedy(self, tmp_path: Path) -> None:
        script(tmp_path / "file", "echo hello\n")
        assert "`sh ./file`" in refused("./file", {}, tmp_path).remedy

    def test_directories_fifos_and_missing_permission(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "fifo", 0o777)
        script(tmp_path / "plain", "#!/bin/sh\n", 0o644)
        assert "directory" in refused("./folder", {}, tmp_path).cause
        with pytest.raises(LiveproError) as caught:
            resolve_command("./fifo", {}, tmp_path)
        errors = [caught.value, refused("./folder", {}, tmp_path), refused("./plain", {}, tmp_path)]
        assert [error.status for error in errors] == [126, 126, 126]


class TestCheck:
    @pytest.mark.parametrize("flags", [(), ("-static",), ("-no-pie",), ("-static-pie",)])
    def test_native_programs_pass(self, tmp_path: Path, flags: tuple[str, ...]) -> None:
        program = compile_sample(tmp_path, "main.c", "int main(void) { return 0; }", *flags)
        assert check_executable(str(program), MACHINE) == []

    def test_scripts_are_followed(self, tmp_path: Path) -> None:
        program = script(tmp_path / "s", "#! \t/usr/bin/env  python3 -x\n")
        assert check_executable(str(program), MACHINE) == []
        script(tmp_path / "foreign", elf_header(machine=8))
        with pytest.raises(
            LiveproError, match=r"foreign: is a program for little-endian MIPS, this machine is "
        ):
            check_executable(str(script(tmp_path / "t", f"#!{tmp_path}/foreign\n")), MACHINE)

    def test_as_many_levels_of_scripts_as_the_kernel_takes(self, tmp_path: Path) -> None:
        interpreter = "/bin/cat"
        for level in range(1, 8):
            program = script(tmp_path / f"s{level}", f"#!{interpreter}\n")
            interpreter = str(program)
            try:
                subprocess.run([program], check=False, capture_output=True)
                runs = True
            except OSError:
                runs = False
            if runs:
                assert check_executable(str(program), MACHINE) == []
            else:
                with pytest.raises(LiveproError) as caught:
                    check_executable(str(program), MACHINE)
                assert caught.value.status == 126
            assert runs == (level <= 5)

    @pytest.mark.parametrize(
        ("line", "status", "words"),
        [
            (b"#!/no/such/interpreter -x\n", 127, "/no/such/interpreter: no such file"),
            (b"#!/bin/sh\r\necho\r\n", 127, "sed -i"),
            (b"#!/etc/passwd\n", 126, "/etc/passwd: permission denied"),
            (b"#!/tmp\n", 126, "is a directory"),
            (b"#!\n", 126, "empty"),
            (b"#!  \t \n", 126, "empty"),
            (b"#!" + b"/x" * 200 + b"\n", 126, "longer than the kernel reads"),
        ],
    )
    def test_bad_interpreters(self, tmp_path: Path, line: bytes, status: int, words: str) -> None:
        program = script(tmp_path / "s", line)
        with pytest.raises(LiveproError) as caught:
            check_executable(str(program), MACHINE)
        assert caught.value.status == status
        assert words in str(caught.value)
        with pytest.raises(OSError, match=r"No such file|Permission denied|Exec format error"):
            subprocess.run([program], check=False)

    def test_a_first_line_without_an_end_counts_when_short(self, tmp_path: Path) -> None:
        assert check_executable(str(script(tmp_path / "s", "#!/bin/sh")), MACHINE) == []

    @pytest.mark.parametrize(
        ("header", "machine", "words"),
        [
            (elf_header(bits=32, machine=3), "x86_64", "is a 32-bit program (x86)"),
            (elf_header(bits=32, machine=62), "x86_64", "is a 32-bit program (x32)"),
            (elf_header(bits=32, machine=40), "aarch64", "is a 32-bit program (32-bit ARM)"),
            (elf_header(machine=183), "x86_64", "is a program for AArch64, this machine is x86-64"),
            (elf_header(machine=62), "aarch64", "is a program for x86-64, this machine is AArch64"),
            (elf_header(machine=183, little=False), "aarch64", "is a program for big-endian AArch64"),
            (elf_header(machine=243), "x86_64", "RISC-V"),
            (elf_header(machine=22, little=False), "x86_64", "S/390"),
            (elf_header(machine=4711), "x86_64", "an unknown architecture (ELF machine 4711)"),
            (elf_header(kind=1), "x86_64", "relocatable object file"),
            (elf_header(kind=4), "x86_64", "core dump"),
            (elf_header(kind=0), "x86_64", "unknown type 0"),
            (elf_header(size=12), "x86_64", "cut short"),
        ],
    )
    def test_elf_files_that_cannot_run(self, tmp_path: Path, header: bytes, machine: str, words: str) -> None:
        program = script(tmp_path / "program", header)
        with pytest.raises(LiveproError) as caught:
            check_executable(str(program), machine)
        assert caught.value.status == 126
        assert words in caught.value.cause
        assert caught.value.remedy

    @pytest.mark.parametrize("kind", [2, 3])
    @pytest.mark.parametrize(("code", "machine"), [(62, "x86_64"), (183, "aarch64")])
    def test_headers_that_can_run(self, tmp_path: Path, kind: int, code: int, machine: str) -> None:
        assert check_executable(str(script(tmp_path / "p", elf_header(code, kind))), machine) == []

    def test_a_cross_compiled_program(self, tmp_path: Path) -> None:
        source = ".globl _start\n_start: nop\n"
        flags = ("-nostdlib", "-static")
        program = compile_sample(tmp_path, "p.S", source, *flags, cross="aarch64-linux-gnu-")
        assert check_executable(str(program), "aarch64") == []
        with pytest.raises(LiveproError, match="AArch64"):
            check_executable(str(program), "x86_64")

    def test_an_object_file_of_the_compiler(self, tmp_path: Path) -> None:
        with pytest.raises(LiveproError, match="Link it first"):
            check_executable(str(compile_sample(tmp_path, "o.c", "int x;", "-c")), MACHINE)

    def test_missing_dynamic_linker(self, tmp_path: Path) -> None:
        linker = "-Wl,--dynamic-linker=/lib/ld-absent.so.1"
        program = compile_sample(tmp_path, "main.c", "int main(void) { return 0; }", linker)
        with pytest.raises(LiveproError, match=r"ld-absent\.so\.1 is not there") as caught:
            check_executable(str(program), MACHINE)
        assert caught.value.status == 127

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(LiveproError) as caught:
            check_executable(str(tmp_path / "none"), MACHINE)
        assert caught.value.status == 127


class TestPrivileges:
    """Set-id programs, seen by a tracer with and without CAP_SYS_PTRACE."""

    @pytest.fixture
    def program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = compile_sample(tmp_path, "main.c", "int main(void) { return 0; }")
        other = os.stat(path).st_uid + 1, os.stat(path).st_gid + 1
        monkeypatch.setattr(command.os, "geteuid", lambda: other[0])
        monkeypatch.setattr(command.os, "getegid", lambda: other[1])
        return path

    def tracer(self, monkeypatch: pytest.MonkeyPatch, capable: bool) -> None:
        state = Permissions(yama=1, sys_ptrace=capable, seccomp=0, tracer=0)
        monkeypatch.setattr(command, "permissions", lambda: state)

    @pytest.mark.parametrize(
        ("bits", "words"),
        [
            (stat.S_ISUID, ["set-user-ID"]),
            (stat.S_ISGID, ["set-group-ID"]),
            (stat.S_ISUID | stat.S_ISGID, ["set-user-ID and set-group-ID"]),
            (0, []),
        ],
    )
    def test_warning(
        self, program: Path, monkeypatch: pytest.MonkeyPatch, bits: int, words: list[str]
    ) -> None:
        program.chmod(0o755 | bits)
        self.tracer(monkeypatch, False)
        found = check_executable(str(program), MACHINE)
        assert [f"{program} is {w}:" for w in words] == [
            text[: len(f"{program} is {w}:")] for text, w in zip(found, words, strict=True)
        ]
        self.tracer(monkeypatch, True)
        assert check_executable(str(program), MACHINE) == []

    def test_mandatory_locking_is_no_privilege(self, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program.chmod(0o745 | stat.S_ISGID)
        self.tracer(monkeypatch, False)
        assert check_executable(str(program), MACHINE) == []

    def test_a_users_own_bits_change_nothing(self, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        program.chmod(0o755 | stat.S_ISUID)
        self.tracer(monkeypatch, False)
        monkeypatch.setattr(command.os, "geteuid", lambda: os.stat(program).st_uid)
        assert check_executable(str(program), MACHINE) == []

    def test_file_capabilities(self, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # Setting them takes CAP_SETFCAP, so the kernel's answer is played here.
        answers = {(str(program), "security.capability"): bytes(20)}
        monkeypatch.setattr(command.os, "getxattr", lambda path, name: answers[path, name])
        self.tracer(monkeypatch, False)
        (text,) = check_executable(str(program), MACHINE)
        assert "given file capabilities" in text

    def test_bits_of_a_script_are_without_effect(
        self, tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.tracer(monkeypatch, False)
        wrapper = script(tmp_path / "wrapper", f"#!{program}\n", 0o755 | stat.S_ISUID)
        assert check_executable(str(wrapper), MACHINE) == []


def test_header_of_something_else() -> None:
    assert parse_header(b"") is None
    assert parse_header(b"#!/bin/sh\n" * 4) is None
    assert parse_header(b"\x7fELF\x02\x01") is None
