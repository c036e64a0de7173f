"""Errors that end a command: a cause, a remedy, an exit status."""

from __future__ import annotations


class LiveproError(Exception):
    """Something the user can act on.

    `cause` says what went wrong, `remedy` what to do about it; both are whole
    sentences. `status` is livepro's exit status (2 unless a shell would use
    another: 127 for a command not found, 126 for one that cannot be executed).
    """

    def __init__(self, cause: str, remedy: str = "", status: int = 2) -> None:
        super().__init__(f"{cause} {remedy}".strip())
        self.cause = cause
        self.remedy = remedy
        self.status = status
