"""Every place that a thread can be at in the code cache, and what is known of the thread there.

The programs are stepped through the cache (`stepped_cache`), so that no emitted sequence and none of its
instructions is met by chance only; a new sequence is covered by the first fixture that has it.
"""

from __future__ import annotations

import os
import platform
import signal
from typing import Any

import pytest
from engines import stepped_cache
from engines.stepped_cache import ISA, Injected, SteppedEngine, content, native_trace, run_stepped
from tools import turn

from fixtures import Builder, Fixture, assembly
from livepro.engines import can_translate
from livepro.engines.translate import layout
from livepro.engines.translate.lifecycle.detaching import before_call

pytestmark = pytest.mark.skipif(not can_translate(platform.machine()), reason="no emitter for this machine")

X86_64 = platform.machine() == "x86_64"
_ORDER = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
)  # as instructions number them: SDM vol. 2, 2.2.1.2
PROGRAMS = {
    "x86_64": (
        *("returns", "jump_table", "loop_family", "rep_movs", "rep_cmps", "flags_alive", "self_loops"),
        *("smc_immediate", "smc_same_block", "smc_branch", "stack_operands"),
        *("tables", "segments", "accesses_lent", "accesses_masked"),
    ),
    # Not those with exclusive sequences, which no step gets through.
    "aarch64": ("returns", "branches", "pc_relative", "smc_mprotect", "tables"),
}[platform.machine()]
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "budget": {"cut": lambda n: 37 * (n + 1)},
    "allowances": {"cut": lambda n: 997 * (n + 1), "allowing": True},
    "recorded": {"recorded": True},
    "recorded, budget": {"recorded": True, "cut": lambda n: 37 * (n + 1)},
} | ({"filtered": {"filtered": True}} if X86_64 else {})


def without(registers: bytes, free: list[str]) -> bytes:
    """Registers but for some."""
    kept = ISA.registers.structure.from_buffer_copy(registers)
    for name in free:
        setattr(kept, name, 0)
    return bytes(kept)


def dead(place: Any, pc: int) -> list[str]:
    """The registers that a block overwrites, from the program's address `pc` on, before it reads them: one
    of them may hold its counter."""
    source = None if place is None else place.block.source
    if not X86_64 or source is None or pc - source.pc not in source.offsets[:-1]:
        return []
    read = free = 0
    for facts in source.facts[source.offsets.index(pc - source.pc) :]:
        read |= facts.registers_read
        free |= facts.registers_killed & ~read
    return [name for number, name in enumerate(_ORDER) if free >> number & 1]


class Homes:
    """Compares what a thread would be in the program's own code with what it is there natively.

    At every boundary the last line of defence must say so, with the registers that the program has there;
    between two boundaries it must say nothing. What the ordinary ways ask of a place is asked at each, and a
    snapshot taken there has the instructions that have been executed until there natively.
    """

    def __init__(self, trace: list[tuple[int, bytes, int]]) -> None:
        self._trace = trace
        self._at = -1
        self.places: set[int] = set()
        self.boundaries = 0
        self.between = 0
        self.engine: SteppedEngine | None = None

    def look(self, state: Any, registers: Any) -> None:
        engine, name = self.engine, ISA.registers.pc
        assert engine is not None
        pc = getattr(registers, name)
        self.places.add(pc)
        engine.ledger.position_at(state, pc)
        place = state.space.memory.locate(pc)
        if place is not None:
            before_call(place, pc)
        found = type(registers).from_buffer_copy(registers)
        if not engine.homing().home(state.thread.tid, found, trapped=False, faulted=False):
            self.between += 1
            assert place is None or not place.exact or place.block.details.retreat[1], hex(pc)
            return
        self.boundaries += 1
        target = getattr(found, name)
        self._give_back(state, found)
        for free in dead(place, target):
            setattr(found, free, 0)
        code = state.thread.read(target, ISA.max_instruction)
        self._find(target, content(found, code), hex(pc), dead(place, target))
        if place is None or not place.block.counting(pc):  # else it is brought out of there first
            counted = engine.raw_counts(state.tally).at(engine.ledger.position_at(state, pc))
            assert counted.instructions(state.space.registry.lengths()) == self._trace[self._at][2], hex(pc)

    @staticmethod
    def _give_back(state: Any, registers: Any) -> None:
        """Let the register that leads to the area, or is lent, be the program's own."""
        if not X86_64:
            registers.x18 = int(state.words[layout.OWN // 8])
        elif state.lends:
            registers.r11 = int(state.words[layout.OWN // 8])

    def _find(self, pc: int, registers: bytes, where: str, free: list[str]) -> None:
        """Go on in the native trace to where the thread is: never back."""
        for at in (self._at, *range(self._at + 1, len(self._trace))):
            if at >= 0 and self._trace[at][0] == pc and without(self._trace[at][1], free) == registers:
                self._at = at
                return
        near = [hex(p) for p, *_ in self._trace[self._at : self._at + 4]]
        other = next((r for p, r, _ in self._trace[max(self._at, 0) :] if p == pc), None)
        mine = ISA.registers.structure.from_buffer_copy(registers)
        native = ISA.registers.structure.from_buffer_copy(other or registers)
        names = [name for name, *_ in mine._fields_]
        different = {
            name: (hex(getattr(mine, name)), hex(getattr(native, name)))
            for name in names
            if getattr(mine, name) != getattr(native, name)
        }
        raise AssertionError(f"at {where}: {pc:#x} is not behind {near} natively: {different}")


def _fixture(name: str) -> Fixture:
    fixture = next(f for f in assembly() if f.source.stem == name)
    if fixture.missing:
        pytest.skip(f"the processor has no {' '.join(fixture.missing)}")
    return fixture


def ways(name: str) -> list[str]:
    """The ways in which a program is looked at."""
    if name == "jump_table":
        return ["plain"]
    # Registers hold its process's number where a full chunk has it stepped on behind its signals.
    return [way for way in WAYS if name != "self_loops" or way in ("plain", "budget", "allowances")]


@pytest.mark.some(17)
@pytest.mark.parametrize(("name", "way"), [(name, way) for name in PROGRAMS for way in ways(name)])
def test_each_place_is_known(name: str, way: str, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "allowances" and not X86_64:
        pytest.skip("no allowances on this machine")
    monkeypatch.setattr(stepped_cache, "allow_always", lambda: allow(monkeypatch))
    program = builder.assembly(fixture := _fixture(name))
    seen = Homes(native_trace(program))
    options = dict(WAYS[way])
    watch(seen, monkeypatch)
    engine = run_stepped(seen.look, [str(program)], **options)
    assert os.waitstatus_to_exitcode(engine.tracer.root_status or 0) == fixture.processes[0].exit
    assert seen.boundaries > 10
    assert seen.between > 5


EVENTS = ("let go", "let go after an error", "sent a signal")
"""What happens to a program at a place. The signal is one that the kernel drops (SIGWINCH), which no
tracer can know: it is delivered like any other."""


class Happening:
    """Something happens, one of `EVENTS`, as a thread is at its `number`-th place of all that it comes to."""

    def __init__(self, number: int, event: str) -> None:
        self._number = number
        self._event = event
        self._places: set[int] = set()
        self.pc = 0
        self.engine: SteppedEngine | None = None

    def look(self, state: Any, registers: Any) -> None:
        pc = getattr(registers, ISA.registers.pc)
        self._places.add(pc)
        if len(self._places) < self._number or self.pc:
            return
        self.pc = pc
        if self._event == "let go after an error":
            raise Injected
        assert self.engine is not None
        self.engine.own = True
        if self._event == "let go":
            self.engine.leave()
        else:
            os.kill(state.thread.tid, signal.SIGWINCH)


HAPPENS_TO = {
    "x86_64": (
        *("returns", "rep_movs", "smc_immediate", "stack_operands", "segments", "signal_nested"),
        *("accesses_lent", "accesses_masked", "masked_fault", "signal_segv"),
    ),
    "aarch64": ("returns", "branches", "smc_mprotect"),
}[platform.machine()]


def happens(
    name: str, number: int, event: str, builder: Builder, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> bool:
    """Have it happen at one place, and see that the program ends as ever, and that what it executed watched
    is exact; whether there is such a place."""
    fixture = _fixture(name)
    happening = Happening(number, event)
    watch(happening, monkeypatch)
    engine = run_stepped(happening.look, [str(builder.assembly(fixture))], **options)
    where = f"{event} at place {number}, {happening.pc:#x}"
    status = os.waitstatus_to_exitcode(engine.tracer.root_status or 0)
    assert status == fixture.processes[0].exit, where
    if event == "sent a signal":
        tallies = [tally for image in engine.images for tally in image.tallies]
        counted = sum(tally.raw_counts().instructions(tally.store.lengths) for tally in tallies)
        assert counted == fixture.instructions, where
    return bool(happening.pc)


def watch(seen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what looks at places know the engine."""

    class Watched(SteppedEngine):
        def launch(self, *arguments: Any, **more: Any) -> None:
            seen.engine = self
            super().launch(*arguments, **more)

    monkeypatch.setattr(stepped_cache, "SteppedEngine", Watched)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("name", HAPPENS_TO)
def test_what_happens_at_some_places(
    name: str, event: str, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 7, 19, 40):
        assert happens(name, number, event, builder, monkeypatch, recorded=number in (7, 40))
    if X86_64:
        for number in (11, 30, 47):
            assert happens(name, number, event, builder, monkeypatch, filtered=True)


@pytest.mark.skipif(not X86_64, reason="returns from handlers stay in the cache on x86-64 only")
def test_an_error_as_a_thread_returns_from_its_handler(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread gets the signal mask that it returns to: with its handler's the next fault would end it."""
    for number in range(50, 62, 2):
        assert happens("signal_segv", number, "let go after an error", builder, monkeypatch)


@pytest.mark.long(seconds=40)
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("name", HAPPENS_TO)
def test_what_happens_at_each_place(
    name: str, event: str, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each third place, others than the last time: the program is run as often as it has places."""
    number = 1 + turn(3)
    ways = ({}, {"recorded": True}, {"filtered": True})[: 3 if X86_64 else 2]
    while happens(name, number, event, builder, monkeypatch, **ways[turn(len(ways))]):
        number += 3
    assert number > 40


def allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """`allow_always`, taken back behind the test."""
    from livepro.engines.translate import engine
    from livepro.engines.translate.counting import budget
    from livepro.engines.translate.translator.x86_64 import refilling

    monkeypatch.setattr(engine, "LONG", 0)
    monkeypatch.setattr(budget, "FEW", 20)
    monkeypatch.setattr(refilling, "FEW", 20)
