"""For programs that are measured: say from inside what is to be counted.

    from livepro import inprocess

    warm_up()
    inprocess.reset()
    work()
    inprocess.snapshot("work")

Every function is harmless, and fast, where livepro does not watch the process: it then
returns None (or False). The same for C is in `livepro.h`, for Java in `Livepro.java`, both in this
directory (`livepro api` copies them). All speak the protocol of
`livepro.engines.inprocess`. Nothing but the standard library is imported.

Commands concern the whole run, and are exact for the thread that gives them: it has
executed everything before the call, and nothing behind it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

__all__ = [
    "HEADER",
    "JAVA",
    "JMH",
    "active",
    "instructions",
    "pause",
    "reset",
    "resume",
    "simd",
    "snapshot",
    "status",
]

HEADER = Path(__file__).with_name("livepro.h")
"""The C header."""

JAVA = Path(__file__).with_name("Livepro.java")
"""The Java class."""

JMH = Path(__file__).with_name("livepro.java")
"""The profiler for JMH, which finds one by the name of its class; it uses the Java class."""

_ROOT = "/proc/livepro/"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def _ask(command: str) -> str | None:
    try:
        answer = os.readlink(_ROOT + command)
    except OSError:
        return None
    if answer.startswith("error: "):
        raise RuntimeError(answer)
    return answer


def active() -> bool:
    """Whether livepro watches this process."""
    return _ask("status") is not None


def reset() -> bool:
    """Count from here: forget what has been counted. False where livepro is not there."""
    return _ask("reset") is not None


def snapshot(label: str = "") -> bool:
    """Keep the counts of this moment for the report. False where livepro is not there."""
    encoded = "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in os.fsencode(label))
    return _ask(f"snapshot/{encoded}") is not None


def pause() -> bool:
    """Count nothing until `resume`. False where livepro is not there."""
    return _ask("pause") is not None


def resume() -> bool:
    """Count again. False where livepro is not there."""
    return _ask("resume") is not None


def instructions() -> int | None:
    """Instructions that this thread has executed since the last reset, without pauses."""
    answer = _ask("instructions")
    return None if answer is None else int(answer)


def simd() -> int | None:
    """SIMD instructions among them."""
    answer = _ask("simd")
    return None if answer is None else int(answer)


def status() -> dict[str, Any] | None:
    """How far the run is, as `livepro ctl PID status` says it."""
    answer = _ask("status")
    return None if answer is None else json.loads(answer)
