"""Tests of an AArch64 machine, the emulated one or a real one: `python -m tests.guest`."""

from __future__ import annotations

import platform

collect_ignore_glob = [] if platform.machine() == "aarch64" else ["test_*.py"]
