"""Is there such a command, and can livepro run it? Asked before anything is started.

The search is execvp's (execvp(3)); what the file must look like is what the
kernel's fs/exec.c, fs/binfmt_script.c and fs/binfmt_elf.c demand. The point of
asking first is the answer: the kernel's is one of four error numbers.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from livepro.errors import LiveproError
from livepro.linux import elf
from livepro.linux.elf import ElfHeader
from livepro.linux.permissions import permissions

DEFAULT_PATH = "/bin:/usr/bin"
"""What glibc's execvp searches when there is no PATH: confstr(_CS_PATH)."""

HEAD_SIZE = 256
"""BINPRM_BUF_SIZE (include/uapi/linux/binfmts.h): all that the kernel looks at."""

SCRIPT_LEVELS = 5
"""Scripts that may be each other's interpreters (exec_binprm in fs/exec.c: ELOOP after that)."""

NOT_FOUND = 127
NOT_EXECUTABLE = 126


def resolve_command(
    command: str, environment: Mapping[bytes, bytes], cwd: str | os.PathLike[str] = "."
) -> str:
    """The file that `command` names, as execvp finds it.

    A name with a slash is taken as it is; any other is looked for in PATH of
    `environment` (the one the command will get). `cwd` is where relative names
    start. Returns the name to execute, relative where it or PATH was. Raises
    LiveproError: status 127 when there is no such file, 126 when it is a
    directory, not executable by this user, or no program.
    """
    if not command:
        raise LiveproError("The command is empty.", "Name the program to run after `--`.", NOT_FOUND)
    if "/" in command:
        path = command
        problem = access_problem(os.path.join(cwd, path))
        if problem in (errno.ENOENT, errno.ENOTDIR):
            raise LiveproError(
                f"{command}: no such file.", hint(close_file(os.path.join(cwd, path))), NOT_FOUND
            )
        if problem:
            raise refusal(path, os.path.join(cwd, path), problem)
    else:
        path = search(command, environment, cwd)
    check_head(path, os.path.join(cwd, path))
    return path


def search(command: str, environment: Mapping[bytes, bytes], cwd: str | os.PathLike[str]) -> str:
    """Look a name without a slash up in PATH. As execvp does, go on after a file that is not
    executable, and report it only when nothing better follows."""
    value = environment.get(b"PATH")
    folders = (DEFAULT_PATH if value is None else os.fsdecode(value)).split(":")
    refused = None
    for folder in folders:
        # An empty entry is the current directory.
        path = os.path.join(folder, command)
        problem = access_problem(os.path.join(cwd, path))
        if not problem:
            return path
        if problem not in (errno.ENOENT, errno.ENOTDIR) and refused is None:
            refused = refusal(path, os.path.join(cwd, path), problem)
    if refused is not None:
        raise refused
    if os.path.isfile(os.path.join(cwd, command)):
        remedy = f"There is a file of that name here: run it as ./{command}."
    else:
        remedy = hint(close_command(command, [os.path.join(cwd, folder) for folder in folders]))
    raise LiveproError(f"{command}: command not found.", remedy, NOT_FOUND)


def access_problem(path: str) -> int:
    """Why `path` cannot be executed (an errno), 0 when it is a file that may be."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return error.errno or errno.ENOENT
    except ValueError:  # a NUL byte in the name
        return errno.ENOENT
    if stat.S_ISDIR(mode):
        return errno.EISDIR
    effective = os.access in os.supports_effective_ids
    if not stat.S_ISREG(mode) or not os.access(path, os.X_OK, effective_ids=effective):
        return errno.EACCES
    return 0


def refusal(name: str, path: str, problem: int) -> LiveproError:
    """The error for a file that is there but may not be executed."""
    if problem == errno.EISDIR:
        return LiveproError(f"{name}: is a directory.", "Name a program to run.", NOT_EXECUTABLE)
    if problem == errno.EACCES and os.path.isfile(path):
        if os.stat(path).st_mode & 0o111 and os.statvfs(path).f_flag & os.ST_NOEXEC:
            remedy = "Its file system is mounted noexec: copy it elsewhere."
        else:
            remedy = f"Make it executable with `chmod +x {name}`, or run it through its interpreter."
        return LiveproError(f"{name}: permission denied.", remedy, NOT_EXECUTABLE)
    return LiveproError(f"{name}: {os.strerror(problem).lower()}.", "", NOT_EXECUTABLE)


def check_head(name: str, path: str) -> None:
    """Raise LiveproError (126) when the file's first bytes are those of no program."""
    try:
        head = read_head(path)
    except OSError:
        return  # may be executed but not read: for the kernel to judge
    if head.startswith((elf.MAGIC, b"#!")):
        return
    if not head:
        raise LiveproError(f"{name}: the file is empty.", "Build or download it again.", NOT_EXECUTABLE)
    if b"\0" not in head:
        raise LiveproError(
            f"{name}: exec format error: a text file without a #! line.",
            f"If it is a shell script, run `sh {name}`, or make `#!/bin/sh` its first line.",
            NOT_EXECUTABLE,
        )
    what = "a Windows program" if head.startswith(b"MZ") else "neither an ELF program nor a script"
    raise LiveproError(
        f"{name}: exec format error: {what}.",
        "Name the program that runs such files as the command.",
        NOT_EXECUTABLE,
    )


def check_executable(path: str, machine: str) -> list[str]:
    """Whether livepro can watch the program that executing `path` starts.

    `path` is relative to the current directory; `machine` is the native one, as
    `uname -m` names it. Follows `#!` lines to the ELF file in the end. Returns
    warnings, each a paragraph (none for most programs). Raises LiveproError:
    status 126 for a program that is 32-bit, of another architecture, or no
    program, 127 when an interpreter that it names is missing.
    """
    program = path
    for _ in range(SCRIPT_LEVELS + 1):
        try:
            head = read_head(program)
        except PermissionError:
            return set_id_warnings(program)
        except OSError as error:
            raise LiveproError(f"{program}: {error.strerror}.", status=NOT_FOUND) from None
        if not head.startswith(b"#!"):
            check_elf(program, head, machine)
            return set_id_warnings(program)
        interpreter = script_interpreter(program, head)
        problem = access_problem(interpreter)
        if problem:
            raise bad_interpreter(program, interpreter, problem)
        program = interpreter
    raise LiveproError(
        f"{path}: more than {SCRIPT_LEVELS} scripts are each other's interpreters.",
        "Name a program, not a script, in the last one's #! line.",
        NOT_EXECUTABLE,
    )


def script_interpreter(script: str, head: bytes) -> str:
    """The interpreter that a script's first line names (load_script in fs/binfmt_script.c)."""
    line, newline, _ = head[2:].partition(b"\n")
    name = line.lstrip(b" \t")
    words = name.replace(b"\t", b" ").split(b" ", 1)
    whole = newline or len(words) > 1 or len(head) < HEAD_SIZE
    interpreter = words[0].partition(b"\0")[0]
    if not interpreter or not whole:
        reason = "longer than the kernel reads" if interpreter else "empty"
        raise LiveproError(
            f"{script}: exec format error: its #! line is {reason}.",
            "Name the interpreter there in full, within 255 bytes.",
            NOT_EXECUTABLE,
        )
    return os.fsdecode(interpreter)


def bad_interpreter(script: str, interpreter: str, problem: int) -> LiveproError:
    """The error for an interpreter that cannot be executed, with the shells' statuses."""
    missing = problem in (errno.ENOENT, errno.ENOTDIR)
    reason = os.strerror(problem).lower()
    if interpreter.endswith("\r"):
        interpreter = interpreter.replace("\r", "\\r")
        remedy = f"Its lines end as on Windows: convert them with `sed -i 's/\\r$//' {script}`."
    else:
        remedy = "Install it, or correct the script's first line."
    status = NOT_FOUND if missing else NOT_EXECUTABLE
    return LiveproError(f"{script}: its interpreter {interpreter}: {reason}.", remedy, status)


def check_elf(program: str, head: bytes, machine: str) -> None:
    """Raise LiveproError unless `program`, beginning with `head`, is a native 64-bit program."""
    header = elf.parse_header(head)
    if header is None:
        check_head(program, program)
        raise LiveproError(
            f"{program}: exec format error: its ELF header is cut short.",
            "Build or download it again.",
            NOT_EXECUTABLE,
        )
    cause, remedy = header_problem(header, machine)
    if cause:
        raise LiveproError(f"{program}: {cause}", remedy, NOT_EXECUTABLE)
    try:
        with open(program, "rb") as stream:
            linker = elf.interpreter(stream)
    except (OSError, ValueError, OverflowError, struct.error):
        return  # damaged, but the kernel looks at less of a file and may well run this one
    if linker and not os.path.exists(linker):
        raise LiveproError(
            f"{program}: its dynamic linker {linker} is not there.",
            "Install the C library that it was built for.",
            NOT_FOUND,
        )


def header_problem(header: ElfHeader, machine: str) -> tuple[str, str]:
    """Cause and remedy when livepro on `machine` cannot run such a file; empty when it can.

    Raises KeyError for a machine that livepro does not know.
    """
    native = elf.MACHINE_CODES[machine]
    if header.bits == 32:
        return (
            f"is a 32-bit program ({header.machine_name}).",
            "livepro runs 64-bit programs: build it as one.",
        )
    if header.machine != native or not header.little_endian:
        return (
            f"is a program for {header.machine_name}, this machine is {elf.MACHINE_NAMES[native]}.",
            "Run livepro on such a machine, or build the program for this one.",
        )
    if header.type == elf.ET_REL:
        return "is a relocatable object file, not a program.", "Link it first."
    if header.type == elf.ET_CORE:
        return "is a core dump, not a program.", "Name the program that dumped it."
    if header.type not in (elf.ET_EXEC, elf.ET_DYN):
        return f"is an ELF file of unknown type {header.type}, not a program.", "Name a program."
    return "", ""


def set_id_warnings(program: str) -> list[str]:
    """What the user should know when `program` would change its user, group or capabilities.

    Under a tracer without CAP_SYS_PTRACE the kernel lets it not
    (cap_bprm_creds_from_file in security/commoncap.c).
    """
    if permissions().sys_ptrace:
        return []
    status = os.stat(program)
    try:
        capabilities = bool(os.getxattr(program, "security.capability"))
    except OSError:
        capabilities = False
    gains = privileges(status.st_mode, status.st_uid, status.st_gid, capabilities)
    if not gains:
        return []
    return [
        f"{program} is {gains}: the kernel ignores that while an unprivileged tracer watches, so it may "
        "fail or do something else than usual. Run livepro as root to keep it."
    ]


def privileges(mode: int, uid: int, gid: int, capabilities: bool) -> str:
    """What executing a file of that mode and owner gives this user beyond their own, in words."""
    gains = []
    if mode & stat.S_ISUID and uid != os.geteuid():
        gains.append("set-user-ID")
    # Without group execute permission the bit means mandatory locking.
    if mode & stat.S_ISGID and mode & stat.S_IXGRP and gid != os.getegid():
        gains.append("set-group-ID")
    if capabilities:
        gains.append("given file capabilities")
    return " and ".join(gains)


def read_head(path: str) -> bytes:
    """The bytes that the kernel chooses by."""
    with open(path, "rb") as file:
        return file.read(HEAD_SIZE)


def hint(guess: str) -> str:
    """A suggestion, when there is one."""
    return f"Did you mean {guess}?" if guess else "Check the spelling."


def close_file(path: str) -> str:
    """The file of the same directory with the nearest name, empty if none is near."""
    folder, name = os.path.split(path)
    return next(iter(difflib.get_close_matches(name, names_in(folder), 1, 0.75)), "")


def close_command(command: str, folders: list[str]) -> str:
    """The name in `folders` nearest to `command`, empty if none is near."""
    known = {name for folder in folders for name in names_in(folder)}
    # Comparing costs; a name much shorter or longer is no typing error.
    near = sorted(name for name in known if abs(len(name) - len(command)) <= 2)
    return next(iter(difflib.get_close_matches(command, near, 1, 0.75)), "")


def names_in(folder: str) -> Iterator[str]:
    """The names in a directory; none if it cannot be listed."""
    try:
        yield from (entry.name for entry in Path(folder).iterdir())
    except (OSError, ValueError):  # ValueError: a NUL byte in the name
        return
