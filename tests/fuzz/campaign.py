"""Programs, one after the other, under several engines; what fails is explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .build import Placement, build, placement
from .code import Sequence
from .explain import Explainer
from .generator import sequence
from .runner import Comparison, Executor


def make(seed: str, count: int, place: Placement | None = None) -> list[Sequence]:
    """The sequences of the program with that seed."""
    options = (place or placement(seed)).options()
    return [sequence(f"{seed}:{index}", options) for index in range(count)]


@dataclass
class Campaign:
    """Runs programs in `directory` under `engines` (name to executor).

    The first engine is the reference for the counts of the others. Shrinking a
    failure takes at most about `shrink_seconds`. `strict`: see `Comparison`.
    """

    engines: Mapping[str, Executor]
    directory: Path
    shrink_seconds: float = 60.0
    strict: bool = False
    sequences_run: int = 0
    instructions: dict[str, int] = field(default_factory=dict)
    codes: set[int] = field(default_factory=set)
    """Encodings that were executed, by iced's numbers."""

    def program(self, seed: str, count: int, place: Placement | None = None) -> list[str]:
        """Run the program with that seed; return a report for each engine that failed."""
        place = place or placement(seed)
        return self.run(make(seed, count, place), place, seed)

    def run(self, sequences: list[Sequence], place: Placement, name: str) -> list[str]:
        """Run these sequences as one program; return a report for each engine that failed.

        The files of a program that does not fail are removed.
        """
        program = build(sequences, place, self.directory, f"fuzz.{name}")
        comparison = Comparison.of(program, strict=self.strict)
        reports = []
        if comparison.unstable:
            seeds = ", ".join(sequences[index].seed for index in sorted(comparison.unstable))
            reports.append(f"not the same in two native runs (a fault of the harness): {seeds}")
        first = next(iter(self.engines), "")
        for engine, execute in self.engines.items():
            outcome = execute(program)
            failures = comparison.failures(outcome)
            if failures:
                counter = self.engines[first] if comparison.reference is not None else None
                explainer = Explainer(
                    engine, execute, counter, self.directory, self.shrink_seconds, self.strict
                )
                reports.append(explainer.report(comparison, failures))
            if engine == first and not outcome.trouble:
                comparison.reference = outcome
                comparison.uncounted = frozenset(failure.index for failure in failures)
            self.codes |= outcome.codes
            self.instructions[engine] = self.instructions.get(engine, 0) + outcome.total
        self.sequences_run += len(sequences)
        if not reports:
            for file in self.directory.glob(f"fuzz.{name}*"):
                file.unlink()
        return reports
