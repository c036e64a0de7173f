"""Generated code is trusted as long as nobody can write to it: the guard, and programs that do."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from engines.observed import REPOSITORY, TIMEOUT

from fixtures import Builder
from livepro.engines.translate.coherence import guard
from livepro.engines.translate.coherence.guard import Checked, Guard

PAGE = 4096
BASE = 0x7F00_0000_0000
COMPARING, TRUSTING = 4, 100  # what is written where a copy begins
PATIENCE = 10  # seconds until a test gives up


class Faults:
    """Pages of no process."""

    whole = True

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.written: list[int] = []
        self.protected: set[int] = set()
        self.refuses = False
        self.closed = False

    def watch(self, start: int, end: int) -> None:
        if self.refuses:
            raise OSError

    def protect(self, start: int, end: int) -> None:
        self.protected.add(start)

    def free(self, start: int, end: int) -> None:
        self.protected.discard(start)

    def wanted(self, timeout: float) -> list[int]:
        time.sleep(0.001)
        found, self.written = self.written, []
        return found

    def enough(self) -> None:
        time.sleep(0.01)  # whoever is told may be quick
        assert not self.closed

    def close(self) -> None:
        self.protected.clear()
        self.closed = True


class Setting:
    """A guard over copies that can be executed, written to and asked for the way they take."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.memory: dict[int, bytes] = {}
        self.words: dict[int, int] = {}
        self.history: list[tuple[int, int]] = []  # of `words`
        self.counts = np.zeros(100, np.int64)
        self.looked_at = 0  # copies, in the last look
        self.at_look: Callable[[], None] = lambda: None  # called in each
        self.guard = Guard(self.faults, self._read, self._write, self._executions)
        self.free_when_compared: list[bool] = []

    def _read(self, address: int, size: int) -> bytes:
        assert address & -PAGE in self.faults.protected  # else what is read may be written to
        return self.memory[address][:size]

    def _write(self, buffer: Any, at: int, word: int) -> None:
        self.words[at] = word
        self.history.append((at, word))

    def _executions(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        counts = self.counts[cells]
        self.looked_at = len(cells)
        self.at_look()
        return counts

    def add(self, cell: int, pc: int = BASE, code: bytes = b"code") -> None:
        self.memory.setdefault(pc, code)
        self.words[cell] = COMPARING
        extent = BASE, BASE + 64 * PAGE
        self.guard.add(Checked(cell, pc, code, cell, None, cell, COMPARING, TRUSTING, extent, False))

    def runs(self, *cells: int) -> None:
        self.counts[list(cells)] += 100_000

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.001)

    def settles(self, *cells: int) -> None:
        """Let copies be executed until they are trusted."""

        def trusted() -> bool:
            self.runs(*cells)
            return all(self.words[cell] == TRUSTING for cell in cells)

        self.until(trusted)

    def looks(self) -> None:
        """Let a few looks pass, in each of which everything has been executed often."""
        for _ in range(10):
            self.counts += 100_000
            time.sleep(0.005)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    monkeypatch.setattr(guard, "_PERIOD", 0.002)
    monkeypatch.setattr(guard, "_SOON", 1000.0)
    made = Setting()
    yield made
    made.guard.close()


def test_what_is_executed_often_is_trusted(setting: Setting) -> None:
    setting.add(1)
    setting.add(2, BASE + PAGE)
    setting.settles(1)
    assert setting.words == {1: TRUSTING, 2: COMPARING}
    assert setting.faults.protected == {BASE}


def test_what_is_copied_from_a_protected_page_is_trusted_at_once(setting: Setting) -> None:
    setting.add(1)
    setting.settles(1)
    setting.add(2, BASE + 64)
    assert setting.words == {1: TRUSTING, 2: TRUSTING}
    setting.memory[BASE + 128] = b"changed"
    setting.add(3, BASE + 128, b"as read")
    setting.add(4, BASE + PAGE - 2)
    setting.add(5, BASE + PAGE)
    setting.guard.moves(77, [])
    setting.add(6, BASE + 192)
    assert [setting.words[cell] for cell in (3, 4, 5, 6)] == [COMPARING] * 4
    setting.faults.written.append(BASE)
    setting.until(lambda: BASE not in setting.faults.protected)
    assert set(setting.words.values()) == {COMPARING}


def test_executions_of_a_page_add_up(setting: Setting) -> None:
    """And what has not been executed is left alone."""
    for cell in range(1, 12):
        setting.add(cell, BASE + 64 * cell)
    setting.add(12, BASE + PAGE)
    setting.counts[12] += 1  # too few
    setting.until(lambda: setting.looked_at == 12)
    setting.counts[1:11] += guard._OFTEN // 10
    setting.until(lambda: all(setting.words[cell] == TRUSTING for cell in range(1, 11)))
    assert (setting.words[11], setting.words[12]) == (COMPARING, COMPARING)


def test_a_write_has_copies_compare_again(setting: Setting) -> None:
    setting.add(1)
    setting.add(2, BASE + 64)
    setting.add(3, BASE + 2 * PAGE)
    setting.settles(1, 2, 3)
    before = len(setting.history)
    setting.faults.written.append(BASE + 70)
    # The next look, 2 ms later, may trust them again: what has happened counts, not what is.
    setting.until(lambda: len(setting.history) >= before + 2)
    assert sorted(setting.history[before : before + 2]) == [(1, COMPARING), (2, COMPARING)]
    assert setting.words[3] == TRUSTING
    assert all(cell != 3 for cell, _ in setting.history[before:])
    setting.settles(1, 2)  # nobody wrote for a while
    assert setting.guard.writes == 1


def test_where_it_pays_nobody_waits_for_a_look(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for those that were not executed of late. What has changed meanwhile compares on."""
    setting.add(1)
    setting.add(2, BASE + 64)
    setting.add(3, BASE + PAGE)
    setting.settles(1, 2, 3)
    before: list[dict[int, float]] = []

    def last_look() -> None:
        monkeypatch.setattr(guard, "_PERIOD", 1000.0)
        before.append(setting.guard._rates)

    setting.at_look = last_look
    setting.until(lambda: bool(before) and setting.guard._rates is not before[0])
    setting.guard._rates = {BASE // PAGE: 1e9, BASE // PAGE + 1: 1000.0}
    setting.memory[BASE + 64] = b"else"
    setting.faults.written += [BASE, BASE + PAGE]
    setting.until(lambda: not setting.faults.protected)
    assert set(setting.words.values()) == {COMPARING}
    assert [sorted(numbers) for _, numbers in setting.guard._again.values()] == [[0, 1]]
    setting.guard._again[BASE // PAGE] = 0.0, [0, 1]  # now, not in 1000 seconds
    setting.until(lambda: setting.words[1] == TRUSTING)
    with setting.guard._lock:  # until it has done the others, too
        assert setting.words == {1: TRUSTING, 2: COMPARING, 3: COMPARING}


def test_code_in_two_pages_needs_both(setting: Setting) -> None:
    setting.add(1, BASE + PAGE - 2)
    setting.settles(1)
    assert setting.faults.protected == {BASE, BASE + PAGE}
    setting.faults.written.append(BASE + PAGE)
    setting.until(lambda: BASE + PAGE not in setting.faults.protected)
    assert setting.words[1] == COMPARING


def test_what_has_changed_is_not_trusted(setting: Setting) -> None:
    setting.add(1)
    setting.memory[BASE] = b"cODE"
    setting.looks()
    assert setting.words[1] == COMPARING


def test_what_cannot_be_watched_is_not_trusted(setting: Setting) -> None:
    setting.faults.refuses = True
    setting.add(1)
    setting.looks()
    assert setting.words[1] == COMPARING
    assert setting.faults.protected == set()


def test_only_a_virtual_machine_s_code_where_system_calls_would_fail(setting: Setting) -> None:
    setting.faults.whole = False
    setting.add(1)
    setting.looks()
    assert setting.words[1] == COMPARING


def test_what_is_retired_is_left_alone(setting: Setting) -> None:
    setting.add(1)
    setting.add(2, BASE + PAGE)
    setting.settles(1, 2)
    setting.guard.retire(1)
    assert setting.words == {1: COMPARING, 2: TRUSTING}
    setting.words[1] = 12345  # its field leads elsewhere now
    setting.faults.written.append(BASE)
    setting.looks()
    assert setting.words[1] == 12345
    setting.words[1] = COMPARING
    setting.guard.revive(1)
    setting.settles(1)


def test_what_is_mapped_otherwise_is_exposed_first(setting: Setting) -> None:
    setting.add(1)
    setting.add(2, BASE + 4 * PAGE)
    setting.settles(1, 2)
    setting.guard.moves(77, [(BASE, BASE + PAGE)])
    assert setting.words == {1: COMPARING, 2: TRUSTING}
    setting.looks()
    assert setting.words[1] == COMPARING  # nothing is protected meanwhile
    setting.guard.moved(77)
    setting.settles(1)


def test_everything_compares_while_it_is_copied(setting: Setting) -> None:
    setting.add(1)
    setting.settles(1)
    with setting.guard.checking():
        setting.runs(1)
        time.sleep(0.01)
        assert setting.words[1] == COMPARING
    setting.settles(1)


def test_dropped_copies_are_written_to_no_more(setting: Setting) -> None:
    setting.add(1)
    setting.settles(1)
    setting.guard.forget()
    assert setting.words[1] == COMPARING
    del setting.words[1]
    setting.faults.written.append(BASE)
    setting.looks()
    assert setting.words == {}


def test_the_end(setting: Setting) -> None:
    setting.add(1)
    setting.settles(1)
    setting.guard.close()
    assert setting.words[1] == COMPARING
    assert setting.faults.protected == set()
    assert setting.faults.closed
    setting.guard.close()


def test_an_error_leaves_nobody_waiting(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threading.excepthook", lambda what: None)
    setting.add(1)
    setting.settles(1)
    setting.faults.written = [None]  # type: ignore[list-item]
    setting.until(lambda: setting.words[1] == COMPARING)
    setting.until(lambda: setting.faults.protected == set())


# -- programs

TURNS = 60_000_000
"""A hundred milliseconds or more: looks are fifty apart."""

SCRIPT = """
import livepro, sys
run = livepro.run(sys.argv[1:], engine='translate', cache=False)
made = 0
for process in run.processes[:1]:
    table = process.table
    for thread in process.threads:
        executed = thread.block_instructions(table)
        made += sum(int(executed[row]) for row in range(len(table)) if table.module[row] == '[anon]')
print(run.exit, made, run.stats['generated blocks trusted'], run.stats['writes to them'])
"""


REFUSED = """
from livepro.engines.translate.threads import room
def refuse(*_): raise PermissionError
room.WriteFaults = refuse
"""


def run_trusted(program: Path, way: str, before: str = "") -> tuple[list[str], list[int]]:
    """What a run of fixtures/c/trusted.c printed, and its status, the instructions that its code
    executed, and how often that was trusted and written to."""
    done = subprocess.run(
        [sys.executable, "-c", before + SCRIPT, program, way, str(TURNS)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        timeout=TIMEOUT,
        text=True,
    )
    *lines, last = done.stdout.splitlines() or [""]
    assert done.stderr == ""
    return lines, [int(word) for word in last.split()]


@pytest.fixture
def program(builder: Builder) -> Path:
    if platform.machine() != "x86_64":
        pytest.skip("the program writes x86-64 code")
    return builder.hosted("trusted", "-static")


@pytest.mark.parametrize("way", ["store", "read", "protect", "remap", "over", "discard", "move"])
def test_trusted_code_changes(way: str, program: Path) -> None:
    """Whatever changes it is noticed before it is executed again, and every instruction is counted."""
    lines, (status, made, trusted, writes) = run_trusted(program, way)
    assert (lines, status, made) == (["1", "2", "3"], 0, 3 * (3 * TURNS + 4))
    assert trusted > 0
    assert (writes > 0) is (way in ("store", "read"))  # the others' calls are seen


def test_trusted_code_that_is_running_changes(program: Path) -> None:
    """A loop that is never left notices that another thread has changed it."""
    lines, (status, _, trusted, writes) = run_trusted(program, "thread")
    assert (lines, status) == (["0", "0", "0"], 0)
    assert trusted > 0
    assert writes > 0


def test_trusted_code_is_the_child_s_own(program: Path) -> None:
    """A fork's child, which nobody guards as yet, changes its copy, and the parent its own."""
    lines, (status, made, trusted, _) = run_trusted(program, "fork")
    assert (lines, status) == (["1", "child 1", "child 2", "parent 1", "parent 3"], 0)
    assert made == 3 * (3 * TURNS + 4)
    assert trusted > 0


def test_where_nothing_can_be_watched(program: Path) -> None:
    """Everything is compared always."""
    lines, numbers = run_trusted(program, "store", REFUSED)
    assert (lines, numbers) == (["1", "2", "3"], [0, 3 * (3 * TURNS + 4), 0, 0])
