"""Which faults are made, one in each attachment, and what becomes of the program attached to."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixtures import Builder
from injection.faults import CALLS_FAIL, KINDS, MOMENTS, Fault, Point
from injection.targets import start
from injection.tracer import Tracers
from livepro.linux import proc

PATIENCE = 10.0
"""Seconds that a program may take to end."""
LETTING_GO = 30.0
"""Seconds that livepro may take in all."""


@dataclass(frozen=True)
class Outcome:
    """What became of one attachment. `verdict` is "right" or what was wrong with the program."""

    target: str
    engine: str
    fault: Fault
    made: bool
    verdict: str
    livepro: int | None
    errors: str
    left: bool
    """Whether memory of livepro's has stayed in the program."""

    @property
    def survived(self) -> bool:
        """Whether the program was as if nothing had been."""
        return self.verdict == "right"

    def document(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {**vars(self), "fault": self.fault.document()}

    @classmethod
    def read(cls, document: dict[str, Any]) -> Outcome:
        """What `document` has made."""
        return cls(**{**document, "fault": Fault.read(document["fault"])})


class Campaign:
    """Attachments to one program under one engine, `duration` long."""

    def __init__(
        self, tracers: Tracers, builder: Builder, target: str, engine: str, duration: str, fresh: bool
    ) -> None:
        self.target = target
        self.engine = engine
        self._tracers = tracers
        self._builder = builder
        self._arguments = ["--engine", engine, "--duration", duration, "--quiet", "--no-live"]
        self._fresh = fresh
        self._kept = builder.directory / f"kept-{target}"

    def record(self, times: int = 2) -> Counter[Point]:
        """All points that are met while a program is attached to, and how often (the least of some
        attachments, the most where one does not meet it)."""
        found: Counter[Point] = Counter()
        for _ in range(times):
            program = start(self.target, self._builder)
            ended = self._attach(program.target.pid, None)
            verdict = program.verdict(PATIENCE)
            if ended.status != 0 or verdict != "right":
                raise RuntimeError(
                    f"without any fault: {verdict}, livepro's status {ended.status}\n{ended.errors}"
                )
            for point, number in ended.counted.items():
                found[point] = min(found.get(point, number), number)
        return found

    def make(self, fault: Fault) -> Outcome:
        """Attach to a new program, with a fault."""
        program = start(self.target, self._builder)
        ended = self._attach(program.target.pid, fault)
        found = ""
        left = False
        if program.target.process.poll() is None:
            if proc.tracer(program.target.pid):
                found = "still traced"
            left = "memfd:livepro" in Path(f"/proc/{program.target.pid}/maps").read_text()
        verdict = program.verdict(PATIENCE)
        if verdict == "right":
            verdict = "livepro hung" if ended.status is None else found or verdict
        return Outcome(
            self.target, self.engine, fault, ended.made, verdict, ended.status, ended.errors[-4000:], left
        )

    def _attach(self, pid: int, fault: Fault | None) -> Any:
        if self._fresh:
            shutil.rmtree(self._kept, ignore_errors=True)
        return self._tracers.attach(pid, self._arguments, fault, self._kept, LETTING_GO)


def numbers(count: int) -> list[int]:
    """The calls that are made to fail, of so many: first, second, last."""
    return sorted({1, min(2, count), count})


def exhaustive(
    points: Counter[Point], kinds: Sequence[str], moments: Sequence[str], seed: int, every: bool = False
) -> Iterator[Fault]:
    """Every point's first, second and last call, at each of `moments`, in one of `kinds` of ways by turns,
    which begin with `seed`; in all of them with `every`. What is not one of livepro's functions fails as
    the kernel has it fail, before it has done anything."""
    turn = seed
    for point, count in sorted(points.items()):
        able = [kind for kind in kinds if point.is_function or kind in CALLS_FAIL]
        for number in numbers(count):
            for moment in moments if point.is_function else MOMENTS[:1]:
                turn += 1
                chosen = able if every else able[turn % len(able) :][:1] if able else []
                yield from (Fault(point, number, moment, kind) for kind in chosen)


def sampled(points: Counter[Point], times: int, seed: int, kinds: Sequence[str] = KINDS) -> Iterator[Fault]:
    """So many faults, drawn: any point and kind alike, any of its calls."""
    random_ = random.Random(seed)
    ordered = sorted(points)
    for _ in range(times):
        point = random_.choice(ordered)
        count = points[point]
        number = random_.choice([1, count, random_.randint(1, count)])
        if point.is_function:
            kind, moment = random_.choice(kinds), random_.choice(["call", "call", "return"])
        else:
            kind, moment = random_.choice(CALLS_FAIL), "call"
        yield Fault(point, number, moment, kind)
