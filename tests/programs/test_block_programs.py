"""Real programs under the block engine."""

from __future__ import annotations

from programs.real import RealPrograms


class TestBlockPrograms(RealPrograms):
    engine = "block"
