"""The socket through which `livepro ctl` gives commands to a run.

A Unix socket PID.sock, PID being livepro's own, in a directory that only the user can
enter. A request is one line of JSON, `{"command": NAME, "label": TEXT}`, the answer another:
what `Engine.status` says after the command, or `{"error": CAUSE, "remedy": TEXT}`.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from livepro.engines.base import Engine
from livepro.errors import LiveproError
from livepro.serving.answering import PATIENCE, Few, answering
from livepro.serving.place import private_directory

_LONGEST = 1 << 16  # bytes of a request
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid (unix(7))


class _Handler(socketserver.StreamRequestHandler):
    server: _Server
    timeout = PATIENCE

    def handle(self) -> None:
        credentials = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        if _CREDENTIALS.unpack(credentials)[1] not in (0, os.getuid()):
            return
        line = self.rfile.readline(_LONGEST)
        answer = json.dumps(self.server.answer(line)).encode() + b"\n"
        with suppress(OSError):  # whoever asked has gone
            self.wfile.write(answer)


class _Server(Few, socketserver.UnixStreamServer):
    def __init__(self, path: Path, engine: Engine) -> None:
        super().__init__(str(path), _Handler)
        self._engine = engine

    def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out one request."""
        try:
            request = json.loads(line)
            command, label = request["command"], request.get("label", "")
            if not isinstance(command, str) or not isinstance(label, str):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {"error": "The request is not understood.", "remedy": "Use `livepro ctl`."}
        try:
            return self._engine.control.perform(command, label)
        except LiveproError as error:
            return {"error": error.cause, "remedy": error.remedy}


@contextmanager
def endpoint(engine: Engine) -> Iterator[None]:
    """Answer commands to `engine` meanwhile. Raises OSError when there can be no socket."""
    path = private_directory() / f"{os.getpid()}.sock"
    path.unlink(missing_ok=True)
    server = _Server(path, engine)
    path.chmod(0o600)
    try:
        with answering(server, "livepro-ctl"):
            yield
    finally:
        path.unlink(missing_ok=True)
