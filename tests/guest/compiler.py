"""Answers the guest's calls of gcc with the host's cross compiler (see gcc.sh)."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

COMPILER = "aarch64-linux-gnu-gcc"
_POLL = 0.05  # seconds


class Compiler:
    """Compiles what is asked for in a folder that the guest shares, while it is used as a context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="compiler", daemon=True)

    def __enter__(self) -> Compiler:
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

    def _answer(self, request: Path) -> None:
        directory, *arguments = request.read_text().splitlines()
        out = request.with_suffix(".out")
        if "-o" in arguments:
            arguments[arguments.index("-o") + 1] = str(out)
        else:
            arguments += ["-o", str(out)]
        where = (
            directory if Path(directory).is_dir() else None
        )  # folders of the guest's own are not seen here
        done = subprocess.run(
            [COMPILER, *arguments], cwd=where, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        request.with_suffix(".text").write_text(done.stdout)
        request.unlink()
        status = request.with_suffix(".state")
        status.write_text(f"{done.returncode}\n")
        status.rename(request.with_suffix(".status"))
