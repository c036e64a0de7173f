"""What can be made to fail, when, and how."""

from __future__ import annotations

import errno
from dataclasses import asdict, dataclass
from typing import Any

ERRORS = ("RuntimeError", "KeyError", "EIO", "ESRCH", "EPERM", "ENOMEM", "EMFILE")
"""Faults of livepro's own: two exceptions that nobody expects, and OSError by its number."""
CALLS_FAIL = ERRORS[2:]
"""How a system call fails."""
KILLS = ("KILL", "KILL-FRONT")
"""SIGKILL to the process that traces, and to the one that the user has started (`livepro.front`)."""
KINDS = (*ERRORS, *KILLS)
PHASES = ("attach", "run", "detach")
"""While processes are taken over; while all threads run watched; once they are to be let go."""
MOMENTS = ("call", "return")
"""Before a function has done anything; when it has done all it does."""


@dataclass(frozen=True, order=True)
class Point:
    """Something that livepro does while it is attached.

    `name` is `MODULE:QUALIFIED NAME` of a function of livepro's, the same and ` -> CALLED` for what is built
    into Python and called there (`posix.pwrite`), or `ptrace REQUEST` and `writev` for C functions.
    """

    name: str
    phase: str

    @property
    def is_function(self) -> bool:
        """Whether it is one of livepro's functions."""
        return ":" in self.name and "->" not in self.name


@dataclass(frozen=True, order=True)
class Fault:
    """Call number `number` (from 1) of a point fails, at one of `MOMENTS`, in one of `KINDS` of ways."""

    point: Point
    number: int
    moment: str
    kind: str

    def __str__(self) -> str:
        return f"{self.point.phase} {self.point.name} #{self.number} at its {self.moment}: {self.kind}"

    def document(self) -> dict[str, Any]:
        """As JSON knows it."""
        return asdict(self)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Fault:
        """What `document` has made."""
        return cls(**{**document, "point": Point(**document["point"])})


def exception(kind: str, what: str) -> Exception:
    """The exception of a kind of `ERRORS`."""
    text = f"injected into {what}"
    if kind == "RuntimeError":
        return RuntimeError(text)
    if kind == "KeyError":
        return KeyError(text)
    return OSError(getattr(errno, kind), text)  # the subclass, too: ProcessLookupError for ESRCH
