"""A thread that answers requests while a run lasts, and is gone at once when it ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

PATIENCE = 10.0
"""Seconds that somebody who asks may take over a word, before nobody listens any more."""

_AT_ONCE = 16  # requests that are answered side by side; more are turned away


class Few(ThreadingMixIn):
    """Answers requests in threads of their own, few at once. What goes wrong with one is told to nobody:
    standard error is the program's."""

    daemon_threads = True

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__(*arguments, **named)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # type: ignore[attr-defined]  # the server's that this is mixed into

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        return


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
