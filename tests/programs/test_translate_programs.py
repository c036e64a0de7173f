"""Real programs under the translate engine."""

from __future__ import annotations

from programs.real import RealPrograms


class TestTranslatePrograms(RealPrograms):
    engine = "translate"
    heavy = True
