"""Threads brought to rest: what they were about to count is counted then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from livepro.engines.translate.threads.suspending import Suspender
from livepro.engines.translate.threads.table import ThreadTable
from livepro.engines.translate.translator.emitted import Countdown

WAY = [*range(0x100, 0x104), *range(0x900, 0x905), *range(0x104, 0x107), 0x20]
"""Where a thread is one instruction after the other: out of the way of a block's copy, where it is given an
allowance, out of the way again, and back in the copy."""
REFILL, COLD = range(0x900, 0x910), range(0x100, 0x110)


def left(pc: int, *, stops: tuple[int, ...] = ()) -> int | None:
    """Where a thread that was interrupted at `pc` is then; None if it has been left alone."""
    found: list[int] = []
    registers = SimpleNamespace(pc=pc)

    def roll_forward(registers: Any, *_: object) -> bool:
        registers.pc = WAY[WAY.index(registers.pc) + 1]
        return True

    block = SimpleNamespace(counting=lambda at: at in COLD)
    memory = SimpleNamespace(
        refill=REFILL,
        locate=lambda at: None if at in REFILL else SimpleNamespace(block=block),
        stop_at=lambda at: SimpleNamespace() if at in stops else None,
    )
    space = SimpleNamespace(memory=memory)
    thread = SimpleNamespace(
        tid=1,
        registers=lambda: registers,
        set_registers=lambda registers: found.append(registers.pc),
        read=None,
    )
    suspender = Suspender(
        isa=cast(Any, SimpleNamespace(registers=SimpleNamespace(pc="pc"))),
        backend=cast(Any, SimpleNamespace(roll_forward=roll_forward)),
        tracer=cast(Any, None),
        table=ThreadTable(),
        pc=cast(Any, SimpleNamespace(of=lambda tid: pc, advance=1)),
        stops=cast(Any, None),
        countdown=Countdown.ALLOWANCES,
        woken=lambda thread: None,
        resynchronise=lambda state: None,
    )
    suspender.leave_counter(
        cast(Any, SimpleNamespace(thread=thread, space=space, words=None, area_address=0))
    )
    return found[0] if found else None


@pytest.mark.parametrize("pc", WAY[:-1])
def test_who_is_about_to_be_counted_is_counted(pc: int) -> None:
    """Wherever it is: also on its way to where all blocks are given their allowances."""
    assert left(pc) == WAY[-1]


def test_a_stop_on_the_way_is_not_passed() -> None:
    assert left(WAY[0], stops=(WAY[10],)) == WAY[10]
    assert left(WAY[11], stops=(WAY[10],)) is None  # it has run into it
    assert left(WAY[10], stops=(WAY[10],)) is None
    assert left(WAY[-1]) is None
