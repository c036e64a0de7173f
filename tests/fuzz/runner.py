"""Run a program natively and under engines, and compare what each sequence left behind."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .build import Program
from .deadflags import dead_flags
from .state import RECORD_SIZE, Difference, differences, fault_address

_ROOT = Path(__file__).resolve().parent.parent.parent
ALLOWANCES = "allowances"
"""The translate engine with vectors, for which blocks are allowed many executions at once."""
_WORKER = Path(__file__).with_name("worker.py")
_NATIVE_TIMEOUT = 10.0


@dataclass(frozen=True)
class Outcome:
    """What a run left: a record per sequence that came to its end, how the run
    ended (`trouble` is empty when all was well), and, unless native, how often
    the instruction at each address was executed."""

    records: tuple[bytes, ...]
    trouble: str = ""
    counts: Mapping[int, int] | None = None
    total: int = 0
    warnings: tuple[str, ...] = ()
    codes: frozenset[int] = frozenset()
    """Encodings that were executed, by iced's numbers."""


Executor = Callable[[Program], Outcome]
"""Runs a program in some way."""


@dataclass(frozen=True)
class Failure:
    """A sequence that went otherwise than natively, or was counted otherwise than
    by the reference. `index` is its place in the program; -1 is the driver."""

    index: int
    state: tuple[Difference, ...] = ()
    counts: tuple[tuple[int, int, int], ...] = ()  # address, reference, here
    trouble: str = ""

    def lines(self) -> list[str]:
        """The failure in words, a line for each item."""
        out = [self.trouble] if self.trouble else []
        out += [str(difference) for difference in self.state]
        return out + [
            f"executions at {address:#x}: reference {old}, here {new}" for address, old, new in self.counts
        ]


def native(program: Program, limit: float = _NATIVE_TIMEOUT) -> Outcome:
    """Run without an engine, for so many seconds: the truth about states. Counts are not known."""
    return _capture([str(program.path)], program, limit)


@dataclass(frozen=True)
class UnderEngine:
    """Runs a program under livepro's engine of that name, or as `ALLOWANCES` says."""

    engine: str
    timeout: float | None = None  # seconds; None: by the number of sequences

    def __call__(self, program: Program) -> Outcome:
        counted = program.path.with_name(f"{program.path.name}.{self.engine}.npz")
        counted.unlink(missing_ok=True)
        command = [sys.executable, str(_WORKER), self.engine, str(program.path), str(counted)]
        timeout = 15 + len(program.sequences) / 10 if self.timeout is None else self.timeout
        outcome = _capture(command, program, timeout)
        if outcome.trouble or not counted.exists():
            return Outcome(outcome.records, outcome.trouble or "livepro wrote no counts")
        with np.load(counted) as found:
            addresses, counts = found["addresses"].tolist(), found["counts"].tolist()
            status, total = int(found["exit"]), int(found["total"])
            warnings, codes = tuple(found["warnings"].tolist()), frozenset(found["codes"].tolist())
        return Outcome(
            outcome.records,
            f"the program ended with status {status}" if status else "",
            dict(zip(addresses, counts, strict=True)),
            total,
            warnings,
            codes,
        )


def _capture(command: list[str], program: Program, timeout: float) -> Outcome:
    """Run `command`, which runs the program, with its output in a file."""
    out = program.path.with_name(f"{program.path.name}.out")
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    trouble = ""
    with out.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.PIPE, env=environment, preexec_fn=_limit_output(program)
        )
        try:
            _, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()  # the engine's death is the program's, too
            _, errors = process.communicate()
            trouble = f"not finished after {timeout:g} s"
        except KeyboardInterrupt:
            process.kill()
            raise
    if not trouble and process.returncode:
        trouble = f"status {process.returncode}"
    if errors and trouble:
        trouble += "\n" + errors.decode(errors="replace")[-2000:]
    data = out.read_bytes()
    whole = len(data) // RECORD_SIZE
    records = tuple(data[i * RECORD_SIZE : (i + 1) * RECORD_SIZE] for i in range(whole))
    return Outcome(records, trouble)


def _limit_output(program: Program) -> Callable[[], None]:
    """A program that writes records without end must not fill the disk."""
    # An engine's shared memory counts as files, too: sparse, but large.
    most = 2 * len(program.sequences) * RECORD_SIZE + (1 << 30)
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


class Unfinished(AssertionError):
    """A program that does not come to its end natively: its sequence `index`, or the driver behind all."""

    def __init__(self, message: str, index: int) -> None:
        super().__init__(message)
        self.index = index


@dataclass
class Comparison:
    """A program, what it does natively, and what a reference counted.

    `strict` compares, after a fault, also the flags that nothing would have
    read any more (see deadflags). `uncounted` are the sequences that the
    reference itself ran otherwise than natively, so that its counts say
    nothing about them, nor about the driver.
    """

    program: Program
    truth: Outcome
    reference: Outcome | None = None
    unstable: frozenset[int] = field(default_factory=frozenset)
    strict: bool = False
    uncounted: frozenset[int] = field(default_factory=frozenset)

    @classmethod
    def of(
        cls,
        program: Program,
        reference: Outcome | None = None,
        *,
        strict: bool = False,
        limit: float = _NATIVE_TIMEOUT,
    ) -> Comparison:
        """Run the program natively, twice: a sequence that differs from itself proves nothing.

        Raises Unfinished when the program itself does not come to its end within so many seconds:
        then the harness is wrong, or what has been taken away from a sequence is what ended its loop.
        """
        first = native(program, limit)
        if first.trouble or len(first.records) != len(program.sequences):
            index = len(first.records)
            seed = program.sequences[index].seed if index < len(program.sequences) else "(driver)"
            raise Unfinished(
                f"natively, sequence {seed} of {program.path}: {first.trouble or 'no record'}", index
            )
        second = native(program, limit)
        unstable = frozenset(
            index
            for index, (a, b) in enumerate(zip(first.records, second.records, strict=True))
            if differences(a, b)
        )
        return cls(program, first, reference, unstable, strict)

    def failures(self, outcome: Outcome) -> list[Failure]:
        """The sequences for which `outcome` differs, in order of execution."""
        out = []
        counted = self._count_differences(outcome)
        for index in range(len(self.truth.records)):
            if index >= len(outcome.records):
                out.append(Failure(index, trouble=f"did not come to its end: {outcome.trouble}"))
                return out
            state = self._state_differences(index, outcome.records[index])
            counts = counted.pop(index, ())
            if state or counts:
                out.append(Failure(index, state, tuple(counts)))
        if driver := counted.pop(-1, ()):
            out.append(Failure(-1, counts=tuple(driver)))
        if outcome.trouble:
            out.append(Failure(-1, trouble=outcome.trouble))
        return out

    def _state_differences(self, index: int, record: bytes) -> tuple[Difference, ...]:
        """In what a sequence's record differs from the native one."""
        expected = self.truth.records[index]
        if index in self.unstable or expected == record:
            return ()
        fault = None if self.strict else fault_address(expected)
        dead = 0 if fault is None else dead_flags(self.program.codes[index], fault)
        return tuple(differences(expected, record, dead))

    def _count_differences(self, outcome: Outcome) -> dict[int, list[tuple[int, int, int]]]:
        """Addresses executed more or less often than the reference says, by sequence."""
        if self.reference is None or self.reference.counts is None or outcome.counts is None:
            return {}
        old, new = self.reference.counts, outcome.counts
        found: dict[int, list[tuple[int, int, int]]] = {}
        for address in sorted(old.keys() | new.keys()):
            expected, actual = old.get(address, 0), new.get(address, 0)
            if expected != actual:
                found.setdefault(self._owner(address), []).append((address, expected, actual))
        if self.uncounted:
            return {index: items for index, items in found.items() if index not in self.uncounted | {-1}}
        if not found and self.reference.total != outcome.total:
            found[-1] = [(0, self.reference.total, outcome.total)]
        return found

    def _owner(self, address: int) -> int:
        """The sequence that the instruction at `address` belongs to, or -1."""
        for index, code in enumerate(self.program.codes):
            if code.address <= address < code.address + len(code.code):
                return index
        return -1


def available_engines() -> tuple[str, ...]:
    """The engines that livepro has, the slow reference first; translate also with allowances."""
    from livepro.api import ENGINES

    names = sorted((name for name in ENGINES if name != "auto"), key=lambda name: name != "step")
    return (*names, ALLOWANCES)
