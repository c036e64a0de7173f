"""Output files: their names, whether they can be written, gzip on the fly.

Names follow the rules of Valgrind's ``--log-file`` (Valgrind manual, core
options): ``%p`` is the process id, ``%q{VAR}`` the content of an environment
variable, ``%n`` a number that tells files of one process apart, ``%%`` a
percent sign; anything else behind ``%`` is an error, and so is an unset
variable.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, TextIO

from livepro.errors import LiveproError

SPECIFIER = re.compile(r"%(?:q\{(?P<variable>[^}]*)\}|(?P<letter>.?))", re.DOTALL)


def expand(pattern: str, pid: int, environ: Mapping[str, str], option: str, sequence: int = 1) -> str:
    """`pattern` with its specifiers replaced; `sequence` stands for ``%n``.

    Raises LiveproError, naming `option`, for an empty name, a leading ``~``
    (the shell did not expand it), an unknown specifier or an unset variable.
    """
    if not pattern:
        raise LiveproError(f"{option} got an empty file name.", "Give the name of the file to write.")
    if pattern.startswith("~"):
        raise LiveproError(
            f"{option}={pattern} begins with '~', which the shell did not expand.", "Write $HOME instead."
        )

    def replace(match: re.Match[str]) -> str:
        variable, letter = match["variable"], match["letter"]
        if variable is not None:
            if variable not in environ:
                raise LiveproError(
                    f"{option}={pattern}: the environment variable '{variable}' is not set.",
                    "Set it, or name the file without it.",
                )
            return environ[variable]
        if letter == "q":
            raise LiveproError(
                f"{option}={pattern}: '%q' is not followed by a variable's name in braces.",
                "Write %q{VAR}, in quotes where the shell expands braces.",
            )
        known = {"p": str(pid), "n": str(sequence), "%": "%"}
        if letter not in known:
            raise LiveproError(
                f"{option}={pattern}: '%{letter}' means nothing in a file name.",
                "Known are %p (process id), %q{VAR} (environment variable), %n (number), %% (percent sign).",
            )
        return known[letter]

    return SPECIFIER.sub(replace, pattern)


def names_for_images(
    pattern: str, images: Iterable[tuple[int, int]], environ: Mapping[str, str], option: str
) -> list[str]:
    """One file name for each process image, given as (pid, image number from 0), none twice.

    ``%n`` is the image number + 1. A name that another process has already
    gets ``.pidP`` appended, P being the process id; one that an earlier image
    of the same process has gets ``.imageN``, N being the image number + 1.
    (Words, not bare numbers: those tell threads apart.) Raises LiveproError
    as `expand` does.
    """
    taken: dict[str, int] = {}
    for pid, image in images:
        name = expand(pattern, pid, environ, option, image + 1)
        if taken.get(name, pid) != pid:
            name = with_suffix(name, f"pid{pid}")
        if name in taken:
            name = with_suffix(name, f"image{image + 1}")
        taken[name] = pid
    return list(taken)


def with_suffix(name: str, suffix: str) -> str:
    """`name` with ``.suffix`` appended, before a final ``.gz``: bb.out.gz becomes bb.out.2.gz."""
    return f"{name[:-3]}.{suffix}.gz" if name.endswith(".gz") else f"{name}.{suffix}"


def name_for_thread(name: str, number: int) -> str:
    """The file of thread `number` (from 1): `name` itself for the first, `name.N` for the others.

    As exp-bbv names its files (bbv_main.c, open_tracefile).
    """
    return name if number == 1 else with_suffix(name, str(number))


def check_writable(name: str, option: str) -> None:
    """Raise LiveproError, naming `option`, if file `name` could not be written now.

    Meant for the time before a run: it leaves no trace, and an existing file
    keeps its content. `name` has its specifiers already expanded.
    """
    if not name or name.endswith("/"):
        raise LiveproError(f"{option}={name} names no file.", "Give the name of the file to write.")
    path = Path(name)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        _check_directory(path.parent, f"{option}={name}")
        return
    except OSError as error:
        raise _cannot_write(f"{option}={name}", error) from error
    if stat.S_ISDIR(mode):
        raise LiveproError(f"{option}={name} is a directory.", "Give the name of a file.")
    if stat.S_ISREG(mode):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError as error:
            raise _cannot_write(f"{option}={name}", error) from error
    elif not os.access(path, os.W_OK, effective_ids=True):
        # A pipe or device: to open it could block, or be noticed at the other end.
        raise LiveproError(f"{option}={name} cannot be written.", "Check its permissions.")


def prepare_directory(name: str, option: str) -> None:
    """Create directory `name` (and its parents) if needed. LiveproError if it cannot be written into."""
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(f"{option}={name}", error) from error
    _check_directory(Path(name), f"{option}={name}")


def open_text(name: str, mode: Literal["r", "w"] = "w") -> TextIO:
    """Open `name` to write (``w``) or read (``r``) text, through gzip if it ends in ``.gz``.

    UTF-8; bytes that are none survive (symbol names can hold any). Newlines
    are left as they are. Raises LiveproError if it cannot be opened.
    """
    try:
        if name.endswith(".gz"):
            # No time stamp: equal content gives equal files.
            packed = gzip.GzipFile(name, f"{mode}b", compresslevel=6, mtime=0)
            return io.TextIOWrapper(packed, encoding="utf-8", errors="surrogateescape", newline="\n")
        return open(name, mode, encoding="utf-8", errors="surrogateescape", newline="\n")
    except OSError as error:
        if mode == "w":
            raise _cannot_write(name, error) from error
        raise LiveproError(
            f"{name} cannot be read: {_reason(error)}.", "Check its name and permissions."
        ) from error


def _check_directory(path: Path, subject: str) -> None:
    try:
        # Permission bits do not tell (root, read-only mounts, /proc); an unnamed file does.
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise _cannot_write(subject, error) from error


def _cannot_write(subject: str, error: OSError) -> LiveproError:
    return LiveproError(
        f"{subject} cannot be written: {_reason(error)}.",
        "Choose a file in a directory that you may write to.",
    )


def _reason(error: OSError) -> str:
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
