"""Real programs under the step engine."""

from __future__ import annotations

from programs.real import RealPrograms


class TestStepPrograms(RealPrograms):
    engine = "step"
