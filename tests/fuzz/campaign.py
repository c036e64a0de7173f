"""Programs, one after the other, under several engines; what fails is shrunk and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from pathlib import Path

from iced_x86 import Decoder, Formatter, FormatterSyntax

from .build import Placement, Program, build, placement
from .code import Sequence, assemble
from .generator import sequence
from .runner import Comparison, Executor, Failure, Outcome
from .shrink import shrink, size


def make(seed: str, count: int, place: Placement | None = None) -> list[Sequence]:
    """The sequences of the program with that seed."""
    options = (place or placement(seed)).options()
    return [sequence(f"{seed}:{index}", options) for index in range(count)]


@dataclass
class Campaign:
    """Runs programs in `directory` under `engines` (name to executor).

    The first engine is the reference for the counts of the others. `report` is
    given the text about each failure.
    """

    engines: Mapping[str, Executor]
    directory: Path
    shrink_seconds: float = 60.0
    sequences_run: int = 0
    instructions: dict[str, int] = field(default_factory=dict)

    def program(self, seed: str, count: int, place: Placement | None = None) -> list[str]:
        """Run the program with that seed; return a report for each engine that failed."""
        place = place or placement(seed)
        return self.run(make(seed, count, place), place, seed)

    def run(self, sequences: list[Sequence], place: Placement, name: str) -> list[str]:
        """Run these sequences as one program; return a report for each engine that failed."""
        program = build(sequences, place, self.directory, f"fuzz.{name}")
        comparison = Comparison.of(program)
        reports = []
        if comparison.unstable:
            seeds = ", ".join(sequences[index].seed for index in sorted(comparison.unstable))
            reports.append(f"not the same in two native runs (a fault of the harness): {seeds}")
        for engine, execute in self.engines.items():
            outcome = execute(program)
            failures = comparison.failures(outcome)
            if failures:
                reports.append(self._report(comparison, engine, failures))
            elif comparison.reference is None:
                comparison.reference = outcome
            self.instructions[engine] = self.instructions.get(engine, 0) + outcome.total
        self.sequences_run += len(sequences)
        if not reports:
            for file in self.directory.glob(f"fuzz.{name}*"):
                file.unlink()
        return reports

    # -- when something differs

    def _report(self, comparison: Comparison, engine: str, failures: list[Failure]) -> str:
        program, failure = comparison.program, failures[0]
        head = [
            f"engine {engine}: {len(failures)} of {len(program.sequences)} sequences of {program.path} "
            f"(code {program.placement.kind} at {program.placement.base:#x}) differ"
        ]
        if failure.index < 0:
            return "\n".join([*head, "in the driver:", *failure.lines()])
        culprit = program.sequences[failure.index]
        head.append(f"first: sequence {culprit.seed}")
        head.append(f"again: python -m tests.fuzz --engine {engine} --sequence {culprit.seed}")
        head += _first(failure.lines())
        alone = self._alone(comparison, engine, [culprit], "alone")
        if not alone[1][0]:
            head.append("It does not fail alone; in its program:")
            return "\n".join([*head, disassembly(program, failure.index, failure, comparison.reference)])
        first = alone[1][0]

        def fails(candidates: Many[Sequence]) -> list[bool]:
            found = self._alone(comparison, engine, candidates, "shrink")[1]
            return [other is not None and _alike(first, other) for other in found]

        small = shrink(culprit, fails, self.shrink_seconds)
        small_comparison, small_failures = self._alone(comparison, engine, [small], "small")
        head.append(f"shrunk from {size(culprit)} to {size(small)} instructions:")
        last = small_failures[0] or failure
        text = disassembly(small_comparison.program, 0, last, small_comparison.reference)
        return "\n".join([*head, text, *_first(last.lines())])

    def _alone(
        self, comparison: Comparison, engine: str, candidates: Many[Sequence], name: str
    ) -> tuple[Comparison, list[Failure | None]]:
        """How each of these does in a program of only them. One that cannot be built,
        or does not come to its end even natively, is no failure."""
        place = comparison.program.placement
        usable = [index for index, candidate in enumerate(candidates) if _assembles(candidate)]
        out: list[Failure | None] = [None] * len(candidates)
        made = comparison
        while usable:
            program = build(
                [candidates[index] for index in usable], place, self.directory, f"fuzz.{engine}.{name}"
            )
            try:
                made = Comparison.of(program)
            except AssertionError:
                if len(usable) == 1:
                    break
                for index in usable:
                    out[index] = self._alone(comparison, engine, [candidates[index]], name)[1][0]
                break
            if comparison.reference is not None:
                reference = next(iter(self.engines))
                made.reference = self.engines[reference](program)
            failures = made.failures(self.engines[engine](program))
            for failure in failures:
                if failure.index >= 0:
                    out[usable[failure.index]] = failure
            # What comes behind one that stopped the program has yet to be run.
            stopped = next((f.index for f in failures if f.index >= 0 and f.trouble), None)
            usable = [] if stopped is None else usable[stopped + 1 :]
        return made, out


def _alike(first: Failure, other: Failure) -> bool:
    """Whether two failures may have one cause: something of the same kind went wrong."""

    def kinds(failure: Failure) -> set[str]:
        found = {re.split(r"[\[\d(]", difference.item)[0] for difference in failure.state}
        return found | {name for name in ("counts", "trouble") if getattr(failure, name)}

    return bool(kinds(first) & kinds(other))


def _assembles(candidate: Sequence) -> bool:
    try:
        assemble(candidate.items(), 0x1000_0000, 0x1100_0000)
    except ValueError:
        return False
    return True


def _first(lines: list[str], count: int = 16) -> list[str]:
    shown = [f"  {line}" for line in lines[:count]]
    return shown + ([f"  ... and {len(lines) - count} more"] if len(lines) > count else [])


def disassembly(program: Program, index: int, failure: Failure, reference: Outcome | None) -> str:
    """A sequence's instructions; with how often each ran, where the counts are known."""
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
    registers = program.sequences[index].state.registers
    flags = program.sequences[index].state.flags
    start_state = " ".join(f"{value:#x}" for value in registers)
    return "\n".join([*out, f"  registers at the start: {start_state}; flags {flags:#x}"])
