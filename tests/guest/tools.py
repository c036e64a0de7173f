"""What the host does for the guest (see tool.sh): compiling, and counting under qemu-user."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

COMPILER = "aarch64-linux-gnu-gcc"
_POLL = 0.05  # seconds

Answer = tuple[int, str]
"""Exit status, and what is printed."""


def gcc(directory: Path, arguments: Sequence[str], out: Path) -> Answer:
    """Compile with the cross compiler; the output goes to `out`."""
    words = list(arguments)
    if "-o" in words:
        words[words.index("-o") + 1] = str(out)
    else:
        words += ["-o", str(out)]
    where = directory if directory.is_dir() else None  # folders of the guest's own are not seen here
    done = subprocess.run(
        [COMPILER, *words], cwd=where, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return done.returncode, done.stdout


def count(command: Sequence[str]) -> int:
    """Instructions that an AArch64 program without libc executes, by qemu-user: an instruction is a
    translation block of its own, and each block executed is a line of the log."""
    with tempfile.NamedTemporaryFile(prefix="qemu-log.") as log:
        subprocess.run(
            ["qemu-aarch64", "-singlestep", "-d", "nochain,exec", "-D", log.name, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )
        return executed(log)


def executed(log: Iterable[bytes]) -> int:
    """Blocks that a log of qemu's (`-d nochain,exec`) says were executed: those traced, less those it
    stopped before. A block is traced before it is entered, and once more after another thread has
    asked for the machine to itself (qemu 7.2, accel/tcg/cpu-exec.c, cpu_tb_exec)."""
    count = 0
    for line in log:
        count += line.startswith(b"Trace") - line.startswith(b"Stopped execution of TB chain before")
    return count


def qemu_count(directory: Path, arguments: Sequence[str], out: Path) -> Answer:
    """Print how many instructions a command executes."""
    return 0, f"{count(arguments)}\n"


TOOLS: dict[str, Callable[[Path, Sequence[str], Path], Answer]] = {"gcc": gcc, "qemu-count": qemu_count}


class Tools:
    """Answers requests in a folder that the guest shares, while it is used as a context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="tools", daemon=True)

    def __enter__(self) -> Tools:
        self._folder.mkdir()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._over.wait(_POLL):
            for request in self._folder.glob("*.request"):
                self._answer(request)

    @staticmethod
    def _answer(request: Path) -> None:
        directory, tool, *arguments = request.read_text().splitlines()
        try:
            status, text = TOOLS[tool](Path(directory), arguments, request.with_suffix(".out"))
        except Exception as error:  # the guest must not wait for ever
            status, text = 1, f"{tool}: {error}\n"
        request.with_suffix(".text").write_text(text)
        request.unlink()
        done = request.with_suffix(".state")
        done.write_text(f"{status}\n")
        done.rename(request.with_suffix(".status"))
