"""Names of output files, whether they can be written, gzip on the fly."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from livepro.errors import LiveproError
from livepro.formats import files

ENVIRON = {"JOB": "seven", "EMPTY": "", "ODD": "a%pb"}


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("bb.out.%p", "bb.out.42"),
        ("%p%p", "4242"),
        ("a%%p", "a%p"),
        ("x.%q{JOB}.%p", "x.seven.42"),
        ("x%q{EMPTY}y", "xy"),
        ("%q{ODD}", "a%pb"),  # what a variable holds is not expanded again
        ("f.%n", "f.1"),
        ("plain", "plain"),
        ("dir/~x", "dir/~x"),
    ],
)
def test_specifiers(pattern: str, name: str) -> None:
    assert files.expand(pattern, 42, ENVIRON, "--bb-out-file") == name


@pytest.mark.parametrize(
    ("pattern", "cause"),
    [
        ("x%q{NOPE}", "--bb-out-file=x%q{NOPE}: the environment variable 'NOPE' is not set."),
        ("x%z", "--bb-out-file=x%z: '%z' means nothing in a file name."),
        ("x%", "--bb-out-file=x%: '%' means nothing in a file name."),
        ("x%q{JOB", "--bb-out-file=x%q{JOB: '%q' is not followed by a variable's name in braces."),
        ("x%qJOB}", "--bb-out-file=x%qJOB}: '%q' is not followed by a variable's name in braces."),
        ("", "--bb-out-file got an empty file name."),
        ("~/x", "--bb-out-file=~/x begins with '~', which the shell did not expand."),
    ],
)
def test_what_valgrind_refuses_is_refused(pattern: str, cause: str) -> None:
    with pytest.raises(LiveproError) as error:
        files.expand(pattern, 42, ENVIRON, "--bb-out-file")
    assert error.value.cause == cause
    assert error.value.remedy
    assert error.value.status == 2


def test_every_process_image_gets_a_name_of_its_own() -> None:
    images = [(5, 0), (5, 1), (6, 0), (6, 1), (7, 0)]

    def names(pattern: str) -> list[str]:
        return files.names_for_images(pattern, images, ENVIRON, "-o")

    assert names("a") == ["a", "a.image2", "a.pid6", "a.pid6.image2", "a.pid7"]
    assert names("a.%p.gz") == ["a.5.gz", "a.5.image2.gz", "a.6.gz", "a.6.image2.gz", "a.7.gz"]
    assert names("a.%p.%n") == ["a.5.1", "a.5.2", "a.6.1", "a.6.2", "a.7.1"]


def test_names_of_threads() -> None:
    assert [files.name_for_thread("bb.out", n) for n in (1, 2, 13)] == ["bb.out", "bb.out.2", "bb.out.13"]
    assert files.name_for_thread("bb.out.gz", 2) == "bb.out.2.gz"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_text_survives(tmp_path: Path, suffix: str) -> None:
    text = "one\r\ntwo \u2028 \udcff ünï\n\nlast without newline"
    name = str(tmp_path / f"file{suffix}")
    with files.open_text(name) as out:
        out.write(text)
    with files.open_text(name, "r") as stream:
        assert stream.read() == text
    with files.open_text(name, "r") as stream:
        assert list(stream) == ["one\r\n", "two \u2028 \udcff ünï\n", "\n", "last without newline"]


def test_gz_is_gzip_and_repeatable(tmp_path: Path) -> None:
    name = tmp_path / "file.gz"
    seen = []
    for _ in range(2):
        with files.open_text(str(name)) as out:
            out.write("T:1:2   \n" * 100)
        seen.append(name.read_bytes())
    assert gzip.decompress(seen[0]) == b"T:1:2   \n" * 100
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", ["missing/file", "missing/file.gz", "."])
def test_what_cannot_be_opened(tmp_path: Path, name: str) -> None:
    for mode, verb in (("w", "written"), ("r", "read")):
        with pytest.raises(LiveproError, match=f"cannot be {verb}: "):
            files.open_text(str(tmp_path / name), mode)  # type: ignore[arg-type]


def test_checks_leave_no_trace(tmp_path: Path) -> None:
    files.check_writable(str(tmp_path / "new"), "--json")
    assert list(tmp_path.iterdir()) == []
    old = tmp_path / "old"
    old.write_text("content")
    os.utime(old, (1, 1))
    files.check_writable(str(old), "--json")
    assert old.read_text() == "content"
    assert old.stat().st_mtime == 1
    files.check_writable("/dev/null", "--json")
    assert [p.name for p in tmp_path.iterdir()] == ["old"]


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a reader
    files.check_writable(str(tmp_path / "pipe"), "--json")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("/proc/livepro", "--json=/proc/livepro cannot be written: "),  # even root cannot
        ("/nowhere/at/all", "--json=/nowhere/at/all cannot be written: no such file or directory."),
        ("/dev/null/x", "--json=/dev/null/x cannot be written: not a directory."),
        ("", "--json= names no file."),
        ("/", "--json=/ names no file."),
        ("/tmp", "--json=/tmp is a directory."),
    ],
)
def test_what_cannot_be_written_is_seen_before(name: str, cause: str) -> None:
    with pytest.raises(LiveproError) as error:
        files.check_writable(name, "--json")
    assert error.value.cause.startswith(cause)


def test_directories_are_made_and_checked(tmp_path: Path) -> None:
    files.prepare_directory(str(tmp_path / "a" / "b"), "-o")
    assert (tmp_path / "a" / "b").is_dir()
    files.prepare_directory(str(tmp_path / "a" / "b"), "-o")
    (tmp_path / "file").write_text("")
    for name in (str(tmp_path / "file"), str(tmp_path / "file" / "below"), "/proc"):
        with pytest.raises(LiveproError, match=f"-o={name} cannot be written: "):
            files.prepare_directory(name, "-o")
