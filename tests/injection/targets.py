"""The programs that are attached to while livepro fails."""

from __future__ import annotations

import time

from soak.runtimes import Busy

from fixtures import Builder

TARGETS = {
    "threads": ("checks", 0.01),
    "node": ("node", 0.3),
    "python": ("cpython", 0.1),
    "java": ("java-g1", 0.6),
}
"""By name, one of `tests.soak.runtimes.RUNTIMES`, and how many seconds it runs before it is attached to."""


def start(name: str, builder: Builder) -> Busy:
    """One of `TARGETS`, running."""
    runtime, settle = TARGETS[name]
    program = Busy(runtime, builder)
    time.sleep(settle)
    return program
