"""One round: a program started, livepro at work on it in some way, and everything looked at afterwards."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attach.targets import Target, eventually, segment_bases

from fixtures import Builder
from soak import ways
from soak.program import Program
from soak.programs import PROGRAMS
from soak.runtimes import RUNTIMES, Busy
from soak.scene import PATIENCE, LiveproFailed, Scene

ENGINES = ("translate", "block", "step")


@dataclass(frozen=True)
class Round:
    """What a round is, by its number: see `draw`."""

    number: int
    program: str
    way: str
    engines: tuple[str, ...]
    fresh: bool
    """Whether nothing is kept of earlier rounds."""

    def __str__(self) -> str:
        kept = "nothing kept" if self.fresh else "with what was kept"
        return f"round {self.number}: {self.program}, {self.way}, {self.engines[0]}, {kept}"


@dataclass(frozen=True)
class Outcome:
    """How it went. `kind` is "right"; "death" for a program that has ended or hangs, "wrong" for one whose
    result is wrong or in which something has stayed, "error" for livepro's own failing beside an unharmed
    program. `told` says what, with livepro's own words; `attachments` how often it was attached."""

    number: int
    program: str
    way: str
    fresh: bool
    kind: str
    told: str = ""
    attachments: int = 0

    def document(self) -> dict[str, Any]:
        """As JSON knows it."""
        return dict(vars(self))


def draw(
    seed: int, number: int, programs: Sequence[str], engines: Sequence[str], only: Sequence[str] = ()
) -> tuple[Round, random.Random]:
    """Round `number` (from 0) of a seed, and the generator of all that is drawn in it. Programs are by
    turns; then whether anything is kept; then the engines. `only` are the ways to draw from."""
    generator = random.Random(f"{seed} {number}")
    turn, which = divmod(number, len(programs))
    name = programs[which]
    possible = list(only or [*ways.ATTACHED, "run"])
    if name not in RUNTIMES and "run" in possible:
        possible.remove("run")
    way = generator.choice(possible or [*ways.ATTACHED])
    first = (turn // 2 + which) % len(engines)
    return Round(
        number, name, way, (*engines[first:], *engines[:first], *engines)[:4], turn % 2 == 0
    ), generator


def remains(target: Target) -> list[str]:
    """What livepro has left in a process."""
    left = [f"thread {tid} is traced by {tracer}" for tid, tracer in target.tracers().items() if tracer]
    left += [f"thread {tid} has gs base {base:#x}" for tid, base in segment_bases(target.pid).items() if base]
    maps = Path(f"/proc/{target.pid}/maps").read_text()
    left += [line for line in maps.splitlines() if "memfd:livepro" in line]
    for entry in os.scandir(f"/proc/{target.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if "memfd:livepro" in os.readlink(entry.path):
                left.append(f"descriptor {entry.name} is livepro's")
    return left


def shape(program: Program) -> dict[str, Any]:
    """What attaching must leave as it was: signal handlers; mappings of code and its bytes, unless the
    program makes code itself; descriptors, unless it opens files itself meanwhile."""
    found = program.target.shape()
    if program.opens_files or program.generates:
        del found["descriptors"]
    if program.generates:
        del found["maps"], found["text"]
    return found


def check_unchanged(program: Program, before: dict[str, Any]) -> None:
    """Raises AssertionError, which says what it is, if something stays other than before.

    A program may need a moment to close what it opens now and then, as a Java virtual machine
    does the control group's files.
    """
    after: dict[str, Any] = {}

    def unchanged() -> bool:
        after.update(shape(program))
        return after == before

    try:
        eventually(unchanged)
    except AssertionError:
        left = {part: (before[part], after[part]) for part in before if after[part] != before[part]}
        raise AssertionError(f"before and after: {left}") from None


class Rounds:
    """Makes them. `directory` keeps what livepro keeps from round to round."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._builder = Builder(directory)
        self._kept = directory / "kept"

    def make(self, drawn: Round, generator: random.Random) -> Outcome:
        """One round, to its end, whatever comes."""
        with tempfile.TemporaryDirectory(prefix="livepro-soak-") as name:
            place = Path(name)
            if drawn.fresh:
                shutil.rmtree(place / "kept", ignore_errors=True)
            scene = Scene(generator, drawn.engines, place / "kept" if drawn.fresh else self._kept, place)
            kind, told = self._run(drawn, scene) if drawn.way == "run" else self._attached(drawn, scene)
        if kind != "right":
            told = "\n".join([told, *scene.commands, *(said[-3000:] for said in scene.said)])
        return Outcome(drawn.number, drawn.program, drawn.way, drawn.fresh, kind, told, scene.attachments)

    def _attached(self, drawn: Round, scene: Scene) -> tuple[str, str]:
        program = PROGRAMS[drawn.program](self._builder)
        found: tuple[str, str] = "right", ""
        with program.target as target:
            try:
                if isinstance(program, Busy):
                    time.sleep(scene.moment(0.05, 1.5))
                program.check()
                before = shape(program)
                try:
                    ways.ATTACHED[drawn.way](scene, program)
                except LiveproFailed as error:
                    found = "error", str(error)
                program.check()
                left = remains(target)
                if left:
                    found = "wrong", f"{found[1]} left: {left}"
                check_unchanged(program, before)
            except AssertionError as error:
                found = "wrong", f"{found[1]} {error}"
            except OSError as error:  # it is gone
                found = "death", f"{found[1]} {type(error).__name__}: {error}"
            ended = target.process.poll()
            if ended is not None:
                found = "death", f"{found[1]} the program has ended with {ended}"
            if isinstance(program, Busy):
                verdict = program.verdict(PATIENCE)
                if verdict != "right":
                    kind = "wrong" if verdict.startswith("wrong") else "death"
                    found = kind, f"{found[1]} the program: {verdict}"
            elif ended is None:
                try:
                    program.finish()
                except AssertionError as error:
                    found = "wrong", f"{found[1]} the program: {error}"
        return found

    def _run(self, drawn: Round, scene: Scene) -> tuple[str, str]:
        try:
            verdict = ways.run(scene, drawn.program, self._builder)
        except LiveproFailed as error:
            return "error", str(error)
        if verdict == "right":
            return "right", ""
        return "wrong" if verdict.startswith("wrong") else "death", verdict
