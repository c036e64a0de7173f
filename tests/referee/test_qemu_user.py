"""qemu-user as the referee of the AArch64 fixtures: their proved counts are its own.

It logs an instruction when it begins, so one that faults counts; where that, or
something else, keeps it from judging, a fixture says so in its REFEREE line. It runs
here, on whatever machine; livepro's counts of the same programs are tested on AArch64.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from guest.tools import COMPILER, count, executed

from fixtures import FOLDERS, Builder, Fixture, assembly


@pytest.fixture(scope="module")
def cross_builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("aarch64"), COMPILER)


def confirmed() -> list[Fixture]:
    return [f for f in assembly("aarch64") if not (f.no_referee or f.fuzzy)]


@pytest.mark.parametrize("fixture", confirmed(), ids=lambda fixture: fixture.name)
def test_proved_counts_are_confirmed(fixture: Fixture, cross_builder: Builder) -> None:
    program: Path = cross_builder.assembly(fixture)
    assert count([str(program), *fixture.args]) == fixture.instructions


def test_a_block_that_was_stopped_before_it_began_is_traced_again_and_counts_once() -> None:
    log = [
        b"Trace 0: 0x7f8435401280 [00000000/0000000000400120/00000000/00000100]\n",
        b"Trace 0: 0x7f84354013c0 [00000000/0000000000400124/00000000/00000100]\n",
        b"Stopped execution of TB chain before 0x7f84354013c0 [0000000000400124] \n",
        b"Trace 0: 0x7f84354013c0 [00000000/0000000000400124/00000000/00000100]\n",
    ]
    assert executed(log) == 2


def test_every_machine_has_the_fixtures_that_tests_name() -> None:
    common = {"straight", "nested_loops", "mid_block", "tables", "threads_handoff", "signal_nested"}
    common |= {"threads_exit_group", "signal_segv", "smc_mprotect", "vfork"}
    for machine in FOLDERS:
        assert common <= {fixture.name for fixture in assembly(machine)}
