"""Threads brought to rest: what they were about to count is counted then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from livepro.engines.translate.emitted import Countdown
from livepro.engines.translate.halting import Halting

WAY = [*range(0x100, 0x104), *range(0x900, 0x905), *range(0x104, 0x107), 0x20]
"""Where a thread is one instruction after the other: out of the way of a block's copy, where it is given an
allowance, out of the way again, and back in the copy."""
REFILL, COLD = range(0x900, 0x910), range(0x100, 0x110)


def left(pc: int, *, stops: tuple[int, ...] = ()) -> int | None:
    """Where a thread that was interrupted at `pc` is then; None if it has been left alone."""
    found: list[int] = []
    registers = SimpleNamespace(pc=pc)

    def catch_up(registers: Any, *_: object) -> bool:
        registers.pc = WAY[WAY.index(registers.pc) + 1]
        return True

    block = SimpleNamespace(counting=lambda at: at in COLD)
    space = SimpleNamespace(
        refill=REFILL,
        locate=lambda at: None if at in REFILL else SimpleNamespace(block=block),
        stop_at=lambda at: SimpleNamespace() if at in stops else None,
    )
    thread = SimpleNamespace(
        tid=1,
        registers=lambda: registers,
        set_registers=lambda registers: found.append(registers.pc),
        read=None,
    )
    engine = SimpleNamespace(
        _countdown=Countdown.ALLOWANCES,
        _pc=lambda tid: pc,
        _pc_advance=1,
        _backend=SimpleNamespace(catch_up=catch_up),
        isa=SimpleNamespace(registers=SimpleNamespace(pc="pc")),
    )
    state = SimpleNamespace(thread=thread, space=space, words=None, area_address=0)
    Halting._leave_counter(cast(Halting, engine), cast(Any, state))
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
