"""Gives a command to a run: finds its socket, asks, returns the answer."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from livepro.errors import LiveproError
from livepro.serving.place import directory

_PATIENCE = 40.0  # seconds; the run itself gives up after 30


def ask(pid: int, command: str, label: str = "") -> dict[str, Any]:
    """Give a command to the run of livepro process `pid`, or to the one that measures process
    `pid`. Raises LiveproError when there is none, or the command fails."""
    answer = _request(_find(pid), command, label)
    if answer is None:
        raise LiveproError(f"The run of process {pid} has just ended.")
    if "error" in answer:
        raise LiveproError(answer["error"], answer.get("remedy", ""))
    return answer


def _find(pid: int) -> Path:
    own = directory() / f"{pid}.sock"
    if own.exists():
        return own
    runs = {}
    for path in sorted(directory().glob("*.sock")):
        status = _request(path, "status", "")
        if status is not None and (pid in status.get("pids", ()) or _is_front(pid, int(path.stem))):
            return path
        if status is not None and "pids" in status:
            runs[path.stem] = status
    known = ", ".join(f"{run} (measuring {_few(status['pids'])})" for run, status in runs.items())
    raise LiveproError(
        f"No run of yours measures process {pid}, and no livepro has that pid.",
        f"Runs in progress: {known}." if known else "None is in progress.",
    )


def _is_front(pid: int, child: int) -> bool:
    """Whether `pid` is the `livepro attach` that was started, and `child` its own child that traces."""
    try:
        text = Path(f"/proc/{child}/stat").read_text(errors="replace")
        same = Path(f"/proc/{child}/cmdline").read_bytes() == Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return same and int(text.rpartition(")")[2].split()[1]) == pid


def _few(pids: list[int]) -> str:
    return ", ".join(map(str, pids[:4])) + (" ..." if len(pids) > 4 else "")


def _request(path: Path, command: str, label: str) -> dict[str, Any] | None:
    """The answer of the run behind a socket; None where nobody answers any more."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        try:
            connection.connect(str(path))
            connection.sendall(json.dumps({"command": command, "label": label}).encode() + b"\n")
            line = connection.makefile("rb").readline()
        except TimeoutError:
            raise LiveproError(f"The livepro behind {path} does not answer.", "Is it stopped?") from None
        except OSError:
            return None
    found: dict[str, Any] | None = json.loads(line) if line else None
    return found
