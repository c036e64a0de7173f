"""A thread that answers requests while a run lasts, and is gone at once when it ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import TCPServer


@contextmanager
def answering(server: TCPServer, name: str) -> Iterator[None]:
    """Let a thread of that name answer requests to `server` meanwhile; closes it."""
    thread = threading.Thread(target=server.serve_forever, args=(None,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        # `BaseServer.shutdown` waits until the thread looks whether it is to end: that it does so from time
        # to time would hold every run up at its end. A listening socket shut down wakes it: POLLHUP.
        server.socket.shutdown(socket.SHUT_RDWR)
        server.shutdown()
        server.server_close()
