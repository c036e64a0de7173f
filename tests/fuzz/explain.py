"""What a failing program's report says: the failures by kind, each shrunk and disassembled."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass
from pathlib import Path

from iced_x86 import Decoder, Formatter, FormatterSyntax

from .build import Placement, Program, build
from .code import Sequence, assemble
from .runner import Comparison, Executor, Failure, Unfinished
from .shrink import shrink, shrink_company, size

_CLASSES = 4  # kinds of failures that are shrunk and shown
_LINES = 16  # items shown of one failure
_NATIVE_SECONDS = 2  # for candidates, which take milliseconds if they end: some go round without end


@dataclass(frozen=True)
class Explainer:
    """Explains failures of `engine`, run by `execute`. `reference` (None: none)
    runs what its counts are compared with."""

    engine: str
    execute: Executor
    reference: Executor | None
    directory: Path
    seconds: float
    strict: bool = False

    def report(self, comparison: Comparison, failures: list[Failure]) -> str:
        """All failures of a program in words."""
        program = comparison.program
        out = [
            f"engine {self.engine}: {len(failures)} of {len(program.sequences)} sequences of {program.path} "
            f"(code {program.placement.kind} at {program.placement.base:#x}) differ"
        ]
        classes: dict[frozenset[str], list[Failure]] = {}
        for failure in failures:
            classes.setdefault(_kinds(failure), []).append(failure)
        for kinds, members in list(classes.items())[:_CLASSES]:
            out.append(f"- {len(members)} in {', '.join(sorted(kinds))}")
            out.append(self._explain(comparison, members[0]))
        if len(classes) > _CLASSES:
            out.append(f"- and {len(classes) - _CLASSES} other combinations of items")
        return "\n".join(out)

    def _explain(self, comparison: Comparison, failure: Failure) -> str:
        """One failure: how to see it again, and what is left of it when shrunk."""
        program = comparison.program
        place = program.placement
        if failure.index < 0:
            return "\n".join(["in the driver:", *_first(failure.lines())])
        culprit = program.sequences[failure.index]
        head = [f"again: python -m tests.fuzz --engine {self.engine} --sequence {culprit.seed}"]
        head += _first(failure.lines())
        (alone,) = self._try([culprit], place)
        if alone is None:
            head.append("It does not fail alone.")
            company = self._shrink_company(list(program.sequences[: failure.index + 1]), place, failure)
            head.append(f"It fails in the company of {len(company) - 1} others:")
            return "\n".join([*head, *self._listing(company, place, failure)])

        def fails(candidates: Many[Sequence]) -> list[bool]:
            results = self._try(candidates, place, lambda other: _alike(alone, other))
            return [other is not None and _alike(alone, other) for other in results]

        small = shrink(culprit, fails, self.seconds)
        head.append(f"shrunk from {size(culprit)} to {size(small)} instructions:")
        return "\n".join([*head, *self._listing([small], place, alone)])

    def _shrink_company(
        self, sequences: list[Sequence], place: Placement, failure: Failure
    ) -> list[Sequence]:
        def fails(candidates: list[Sequence]) -> bool:
            try:
                comparison = self._compare(candidates, place)
            except (AssertionError, ValueError, subprocess.CalledProcessError):
                return False
            found = comparison.failures(self.execute(comparison.program))
            return any(_alike(failure, other) for other in found)

        return shrink_company(sequences, fails, self.seconds)

    def _listing(self, sequences: list[Sequence], place: Placement, failure: Failure) -> list[str]:
        """A program's sequences disassembled, and what goes wrong in the first that fails."""
        comparison = self._compare(sequences, place, "small")
        failures = comparison.failures(self.execute(comparison.program))
        out = []
        for index in range(len(sequences)):
            mine = next((other for other in failures if other.index == index), None)
            out.append(disassembly(comparison, index, mine or Failure(index)))
        last = failures[0] if failures else failure
        return [*out, *_first(last.lines()), f"  (program {comparison.program.path})"]

    # -- runs

    def _compare(self, sequences: Many[Sequence], place: Placement, name: str = "shrink") -> Comparison:
        """A new program of these sequences, run natively and counted by the reference."""
        program = build(sequences, place, self.directory, f"fuzz.{self.engine}.{name}")
        comparison = Comparison.of(program, strict=self.strict, limit=_NATIVE_SECONDS)
        if self.reference is not None:
            comparison.reference = self.reference(program)
            comparison.uncounted = frozenset(f.index for f in comparison.failures(comparison.reference))
        return comparison

    def _try(
        self,
        candidates: Many[Sequence],
        place: Placement,
        enough: Callable[[Failure], bool] = lambda failure: True,
    ) -> list[Failure | None]:
        """How each of these does in a program of only them.

        One that cannot be built, or does not come to its end even natively, is
        no failure. Behind one that stops the program the rest runs only if that
        one was not `enough`.
        """
        usable = [index for index, candidate in enumerate(candidates) if _assembles(candidate)]
        out: list[Failure | None] = [None] * len(candidates)
        deadline = time.monotonic() + self.seconds
        while usable and time.monotonic() < deadline:
            try:
                comparison = self._compare([candidates[index] for index in usable], place)
            except Unfinished as endless:
                if endless.index == len(usable):
                    break  # none of them, but the driver
                del usable[endless.index]
                continue
            failures = comparison.failures(self.execute(comparison.program))
            for failure in failures:
                if failure.index >= 0:
                    out[usable[failure.index]] = failure
            stopped = next((f for f in failures if f.index >= 0 and f.trouble), None)
            usable = [] if stopped is None or enough(stopped) else usable[stopped.index + 1 :]
        return out


def _kinds(failure: Failure) -> frozenset[str]:
    """What kinds of items went wrong: failures of the same kind may have one cause."""
    found = {re.split(r"[\[\d(]|(?<=frame) ", difference.item)[0].strip() for difference in failure.state}
    return frozenset(found | {name for name in ("counts", "trouble") if getattr(failure, name)})


def _alike(one: Failure, other: Failure) -> bool:
    return bool(_kinds(one) & _kinds(other))


def _assembles(candidate: Sequence) -> bool:
    try:
        assemble(candidate.items(), 0x1000_0000, 0x1100_0000)
    except ValueError:
        return False
    return True


def _first(lines: list[str]) -> list[str]:
    shown = [f"  {line}" for line in lines[:_LINES]]
    return shown + ([f"  ... and {len(lines) - _LINES} more"] if len(lines) > _LINES else [])


def disassembly(comparison: Comparison, index: int, failure: Failure) -> str:
    """A sequence's instructions; with how often each ran, where the counts are known."""
    program: Program = comparison.program
    reference = comparison.reference
    formatter = Formatter(FormatterSyntax.NASM)
    counts = reference.counts if reference is not None and reference.counts is not None else {}
    wrong = {address: actual for address, _, actual in failure.counts}
    code = program.codes[index]
    out = []
    for address, length in code.instructions:
        start = address - code.address
        text = code.code[start : start + length]
        decoder = Decoder(64, text.ljust(length + 15, b"\x90"), ip=address)
        line = f"  {address:#x}  {text.hex():<24} {formatter.format(decoder.decode())}"
        if counts:
            line += f"    ; {counts.get(address, 0)} times"
        if address in wrong:
            line += f", here {wrong[address]}"
        out.append(line)
    sequence = program.sequences[index]
    start_state = " ".join(f"{value:#x}" for value in sequence.state.registers)
    anchor = "" if sequence.state.anchor is None else f" (register {sequence.state.anchor}: the data area)"
    out.append(f"  registers at the start: {start_state}{anchor}; flags {sequence.state.flags:#x}")
    return "\n".join(out)
