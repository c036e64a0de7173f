"""Running an exclusive sequence as a unit, between two stops, and telling what was executed.

A stop between a load-exclusive and its store-exclusive makes the store fail, so a
thread is let run from the load to breakpoints behind the store and at the targets
of the branches that leave the sequence. The breakpoints are there for as long as
it runs, while the other threads are left waiting where they stopped; one that is
under way and meets such a breakpoint finds its own code again when it is resumed.

**What is known.** Straight code between two stops: where it was left says what was
executed, and every attempt to store ends in a stop, so repeated attempts are
counted. In a sequence with branches that meet (two that lead to one place, or one
that goes back: a lock waited for) the way is first looked for in single steps. If it
leads out, or back to the load, that was its execution. If it leads to the store, the
registers are set back and the sequence is run.

**What cannot be known.** In such a sequence the value may change between the two:
when it is then left elsewhere, which way it took is not known. `doubtful` counts this.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from livepro.isa.base import ExclusiveSequence, Isa
from livepro.linux import ptrace
from livepro.linux.wait import TRAP_STATUS, is_stop
from livepro.tracee import TracedThread
from livepro.tracee.stops import WAIT_FLAGS

SEQUENCE_BYTES = 256
"""Code to look for a sequence in."""

_SPINS = (
    200  # polls before sleeping between them: it takes microseconds, when it takes long it is a page fault
)
_PATIENCE = 0.5  # seconds; one that then still runs goes round in circles until others go on

Way = list[int]
"""Where a thread's pc was after each instruction that it has executed."""


def way_taken(sequence: ExclusiveSequence, pc: int, looked: Way) -> tuple[Way, bool]:
    """The way from the start of a sequence that was run to `pc`, and whether that is certain.
    `looked` is the one to the store that was seen before, if any."""
    addresses = sequence.addresses
    straight = list(addresses[1:])
    if pc == addresses[0]:
        return [], True  # it has not moved, or is back: a turn nobody has seen
    if pc == sequence.end:
        return [*(looked or straight), pc], True
    if pc in looked:
        return looked[: looked.index(pc) + 1], True
    if pc in addresses:
        return straight[: straight.index(pc) + 1], not looked
    for branch, target in sequence.branches:
        if target == pc:
            return [*straight[: addresses.index(branch)], pc], not looked
    return [], False


class Exclusives:
    """Runs exclusive sequences for an engine. `doubtful` is how many may be miscounted."""

    def __init__(self, isa: Isa, program_counter: Callable[[int], int]) -> None:
        self._isa = isa
        self._pc = program_counter
        self.doubtful = 0
        self._exits: set[int] = set()

    def tell(self, warnings: list[str]) -> None:
        """Add what the user must know to read the counts."""
        if self.doubtful:
            warnings.append(
                f"{self.doubtful} exclusive sequences were left in a way that cannot be told from where they "
                "were left; counts may be off by a few instructions for each."
            )

    def run(self, thread: TracedThread, sequence: ExclusiveSequence) -> tuple[Way, int | None] | None:
        """Run a thread that stands at `sequence`: the way it took, and None when it stands behind it
        or at its start again, else the wait status that came instead and is to be dealt with.
        No result where breakpoints cannot be planted. Raises OSError when the thread is gone."""
        way: Way = []
        if not sequence.plain:
            before = thread.registers()
            way, status = self._look(thread, sequence)
            if status is not None or way[-1] != sequence.addresses[-1]:
                return way, status
            thread.set_registers(before)
        planted: dict[int, bytes] = {}
        try:
            if not self._plant(thread, sequence, planted):
                return None
            ptrace.call(ptrace.PTRACE_CONT, thread.tid)
            status = self._wait(thread.tid)
        finally:
            for address, original in planted.items():
                with contextlib.suppress(OSError):
                    thread.write(address, original)
        if not is_stop(status):
            return [], status
        pc = self._pc(thread.tid)
        way, certain = way_taken(sequence, pc, way)
        self.doubtful += not certain
        return way, None if status == TRAP_STATUS and self._is_breakpoint(thread, sequence, pc) else status

    def _look(self, thread: TracedThread, sequence: ExclusiveSequence) -> tuple[Way, int | None]:
        """Step to the store, or out of the sequence, or back to its start."""
        way: Way = []
        pc = sequence.addresses[0]
        while True:
            ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid)
            status = self._wait(thread.tid)
            now = self._pc(thread.tid) if is_stop(status) else pc
            if now not in (pc, -1):
                way.append(now)
            pc = now
            if status != TRAP_STATUS:
                return way, status
            if pc not in sequence.addresses[1:-1]:
                return way, None

    def _plant(self, thread: TracedThread, sequence: ExclusiveSequence, planted: dict[int, bytes]) -> bool:
        """Put breakpoints at the exits, what they replace into `planted`; False if that cannot be."""
        code = self._isa.breakpoint.code
        for address in sequence.exits:
            original = thread.read(address, len(code))
            if len(original) == len(code) and original != code:
                try:
                    thread.write(address, code)
                except OSError:
                    return False
                planted[address] = original
                self._exits.add(address)
        return True

    def met(self, thread: TracedThread, pc: int, kind: int) -> bool:
        """Whether a trap with si_code `kind` at `pc` is of a breakpoint that was there for
        another thread, and is no more: the thread goes on with what stands there."""
        if kind != self._isa.breakpoint.si_code:
            return False
        at = pc - self._isa.breakpoint.pc_advance
        code = self._isa.breakpoint.code
        return at in self._exits and thread.read(at, len(code)) != code

    def _is_breakpoint(self, thread: TracedThread, sequence: ExclusiveSequence, pc: int) -> bool:
        if pc not in sequence.exits:
            return False
        info = ptrace.signal_info(thread.tid)
        return info is not None and info.code == self._isa.breakpoint.si_code

    @staticmethod
    def _wait(tid: int) -> int:
        """The thread's next wait status."""
        deadline = time.monotonic() + _PATIENCE
        polls = 0
        while True:
            got, status = os.waitpid(tid, WAIT_FLAGS | os.WNOHANG)
            if got:
                return status
            polls += 1
            if polls < _SPINS:
                os.sched_yield()
                continue
            time.sleep(0.0002)
            if time.monotonic() > deadline:
                deadline += 3600.0
                ptrace.raw(ptrace.PTRACE_INTERRUPT, tid, None, None)
