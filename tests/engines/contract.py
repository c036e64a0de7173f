"""The contract of the engines: one suite that every engine's tests inherit.

    class TestStep(EngineContract):
        engine = "step"

Counts are proved in the fixtures' sources and asserted exactly. What is exact
in a program that uses libc (whose start-up differs from machine to machine) is
the part between markers: a function of its own, seen by its symbol.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import pytest
from engines.observed import TIMEOUT, Observed, observe

from fixtures import Builder, Fixture, assembly

SIGNAL_PERIOD = os.environ.get("LIVEPRO_TESTS_PERIOD", "")
"""Microseconds between a timer's signals: a slow machine would do nothing but take them."""
SLOW = "LIVEPRO_TESTS_SLOW" in os.environ
"""Whether the machine is emulated: what is done a thousand times elsewhere is done some times there."""
FEW_NUMBERED = os.environ.get("LIVEPRO_TESTS_NUMBERED", "")
"""Numbered signals for an engine that stops often: between two, a thread spins some thousand turns."""


class Runner:
    """Runs commands under one engine, each result in a file of its own."""

    def __init__(self, engine: str, directory: Path, **options: Any) -> None:
        self.engine = engine
        self.directory = directory
        self.options = options
        self._runs = 0

    def __call__(self, *command: str | Path, **options: Any) -> Observed:
        self._runs += 1
        options = self.options | options
        seen = observe(command, self.directory / f"run{self._runs}.json", engine=self.engine, **options)
        if "error" not in seen.result:
            assert seen.faults == []
            assert seen.result["warnings"] == []
        return seen


_NAMED = {
    "test_intervals_are_exact": ("nested_loops", "threads_handoff", "signal_nested", "rep_scas", "exclusive"),
    "test_two_runs_are_equal": (
        "mid_block",
        "tables",
        "threads_exit_group",
        "signal_segv",
        "smc_mprotect",
        "vfork",
    ),
}
"""The fixtures that a test is for, on the machines that have them."""


class EngineContract:
    """What every engine must do.

    `heavy` says whether it is fast enough for the long fixtures, `unfit` names
    the fixtures that it cannot run, with the reason. `signal_period` are microseconds between two
    ticks of a timer that leave it time for what is between their handlers, on a busy machine, too;
    `few_numbered` is how many numbered signals are sent to a program under an engine that is not heavy.
    """

    engine: ClassVar[str]
    heavy: ClassVar[bool] = False
    unfit: ClassVar[dict[str, str]] = {}
    signal_period: ClassVar[str] = "1000"
    few_numbered: ClassVar[str] = "8"

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        if "fixture" in metafunc.fixturenames:
            chosen = [f for f in assembly() if (cls.heavy or not f.heavy) and f.name not in cls.unfit]
            metafunc.parametrize("fixture", chosen, ids=lambda fixture: fixture.name)
        names = _NAMED.get(metafunc.function.__name__, ())
        if names:
            metafunc.parametrize("name", [f.name for f in assembly() if f.name in names])

    @pytest.fixture
    def run(self, tmp_path: Path) -> Runner:
        return Runner(self.engine, tmp_path, cache=False)

    # -- proved counts

    def test_proved_counts(self, fixture: Fixture, builder: Builder, run: Runner) -> None:
        if fixture.missing:
            pytest.skip(f"the processor, or its emulation, has no {' '.join(fixture.missing)}")
        program = builder.assembly(fixture)
        seen = run(program, *fixture.args)
        got = [
            (p["exit"], p["instructions"], _sum(p, "rep_instructions"), _sum(p, "rep_iterations"))
            for p in seen.processes
        ]
        proved = [(p.exit, p.instructions, p.rep_instructions, p.rep_iterations) for p in fixture.processes]
        if fixture.varies:
            more = got[0][0]
            proved[0] = (more, more + fixture.instructions, *proved[0][2:])
        if fixture.fuzzy:
            assert [row[0] for row in got] == [row[0] for row in proved]
            assert seen.result["instructions"] >= fixture.instructions
        else:
            assert got == proved
        threads = [t["instructions"] for t in seen.processes[0]["threads"]]
        if fixture.threads:
            assert len(threads) == len(fixture.threads)
            assert [t for t, p in zip(threads, fixture.threads, strict=True) if p is not None] == [
                p for p in fixture.threads if p is not None
            ]
        assert seen.result["exit"] == proved[0][0] or proved[0][0] is None
        assert seen.total("fldcw") == fixture.fldcw
        if fixture.simd:
            assert seen.processes[0]["simd"] == dict(fixture.simd)
        assert seen.stderr == b""

    # -- agreement of a result with itself

    @pytest.mark.parametrize("size", [1, 7, 1000])
    def test_intervals_are_exact(self, name: str, size: int, builder: Builder, run: Runner) -> None:
        """Basic block vectors are cut at exact instruction numbers, per thread, and sum to the
        counts (which the run's self-check compares block by block)."""
        fixture = next(f for f in assembly() if f.name == name)
        seen = run(builder.assembly(fixture), interval_size=size)
        more = seen.result["exit"] if fixture.varies else 0
        assert seen.result["instructions"] == fixture.instructions + more
        for thread in seen.threads:
            whole, rest = divmod(thread["instructions"], size)
            assert thread["intervals"] == [size] * whole + [rest] * (rest > 0)

    def test_two_runs_are_equal(self, name: str, builder: Builder, run: Runner) -> None:
        fixture = next(f for f in assembly() if f.name == name)
        program = builder.assembly(fixture)
        first, second = (run(program, aslr=False) for _ in range(2))
        assert [t["digest"] for t in first.threads] == [t["digest"] for t in second.threads]

    def test_two_runs_of_a_dynamic_program_are_equal(self, run: Runner) -> None:
        first, second = (run("/bin/echo", "hello", aslr=False) for _ in range(2))
        assert first.stdout == second.stdout == b"hello\n"
        assert [t["digest"] for t in first.threads] == [t["digest"] for t in second.threads]

    def test_address_space_is_randomised_unless_asked(self, builder: Builder, run: Runner) -> None:
        source = next(f.source for f in assembly() if f.name == "straight")
        program = builder.build(source, ("-nostdlib", "-static-pie"))
        starts = {
            aslr: {run(program, aslr=aslr).processes[0]["addresses"][0] for _ in range(3)}
            for aslr in (True, False)
        }
        assert len(starts[False]) == 1
        assert len(starts[True]) > 1

    # -- programs with libc

    def test_threads_have_their_own_counts(self, builder: Builder, run: Runner) -> None:
        program = builder.hosted("pthreads")
        seen = run(program)
        assert seen.stdout == b"total 10000\n"
        (process,) = seen.processes
        spins = [t["functions"].get("spin", 0) for t in process["threads"]]
        # spin is mov, then 2 instructions a turn, then ret: 1000, 2000, 3000, 4000 turns.
        assert spins == [0] + [2 * turns + 2 for turns in (1000, 2000, 3000, 4000)]
        assert [t["name"] for t in process["threads"]] == [program.name[:15], "one", "two", "three", "four"]

    def test_many_short_threads(self, builder: Builder, run: Runner) -> None:
        count = 1000 if self.heavy and not SLOW else 24
        seen = run(builder.hosted("many_threads", "-static"), str(count))
        assert seen.stdout == f"joined {count}\n".encode()
        spins = [t["functions"].get("spin", 0) for t in seen.processes[0]["threads"]]
        assert spins == [0] + [2 * 10 + 2] * count

    def test_processes_of_every_kind(self, builder: Builder, run: Runner) -> None:
        """fork, vfork and exec, posix_spawn, system: every process with its own count and exit."""
        seen = run(builder.hosted("processes", "-static"), aslr=False)
        assert seen.stdout == b"forked 11\nvforked 12\nspawned 13\nsystem 14\n"
        rows = [(p["image"], p["exit"], _function(p, "spin")) for p in seen.processes]
        spin = {turns: 2 * turns + 2 for turns in (100, 200, 300, 400, 500)}
        assert rows == [
            (0, 0, spin[500]),
            (0, 11, spin[100]),
            (0, None, 0),
            (1, 12, spin[200]),
            (0, None, 0),
            (1, 13, spin[300]),
            (0, None, 0),
            (1, None, 0),  # the shell
            (2, 14, spin[400]),
        ]
        first, *others = seen.processes
        assert {p["ppid"] for p in others} == {first["pid"]}

    def test_children_of_who_is_killed_as_it_forks(self, builder: Builder, tmp_path: Path) -> None:
        """A child whose parent was killed before it could tell of it goes on, and is counted: it stood still,
        or the run waited for ever for one that there never was."""
        rounds, least = (3, 900_000) if SLOW else (40, 1000)
        program = builder.hosted("killed_forking", "-static")
        seen = observe([program, str(rounds), str(least)], tmp_path / "seen.json", engine=self.engine)
        assert seen.faults == []
        for warning in seen.result["warnings"]:  # of the killed ones, which were not at a stop
            assert "killed without a word" in warning or "counts may be off" in warning
        exits = [process["exit"] for process in seen.processes]
        assert seen.result["exit"] == 0
        rounds, born = map(int, seen.stdout.split())
        assert exits.count(3) == born > 0
        assert len(exits) == 1 + rounds + exits.count(3)

    def test_children_that_ask_not_to_be_traced(self, builder: Builder, run: Runner) -> None:
        """They died of livepro's breakpoints, or stood still; followed or not, they do as natively."""
        command = [builder.hosted("untraced", "-static"), *(["both"] if SLOW else [])]
        count = 4 if SLOW else 12
        native = subprocess.run(command, capture_output=True, timeout=TIMEOUT)
        assert native.stdout == f"made {count} failed {count // 2} wrong 0\n".encode()
        seen = run(*command)
        assert (seen.stdout, seen.result["warnings"]) == (native.stdout, [])
        first, *children = seen.processes
        assert _function(first, "spin") == 0
        assert [_function(child, "spin") for child in children] == [2 * 100 + 2] * count
        assert [process["exit"] for process in seen.processes] == [0] + [3] * count
        if not SLOW:
            ignored = run(*command, children="ignore")
            assert ignored.stdout == native.stdout
            assert len(ignored.processes) == 1

    @pytest.mark.parametrize("children", ["follow"] if SLOW else ["follow", "ignore"])
    def test_traps_that_threads_send_themselves(self, children: str, builder: Builder, run: Runner) -> None:
        """The step and the block engine took them for those of their own steps; a program that ignores
        them died under the translate engine. Children that clone3 had leave all handlers behind had them
        given back, where they were let go."""
        program = builder.hosted("raised", "-static")
        native = subprocess.run([program], capture_output=True, timeout=TIMEOUT)
        assert (
            native.stdout
            == b"raised 5\nignored 0\nraised 5\nhandled 20\nleft 0\nraised 5\nraised a\nhandled 21\n"
        )
        assert run(program, children=children).stdout == native.stdout

    def test_a_handler_of_traps_that_a_thread_has_blocked(self, builder: Builder, run: Runner) -> None:
        """The kernel forgets it when such a thread is made to trap: the program died of the next one."""
        program = builder.hosted("trap_handled", "-static")
        native = subprocess.run([program], capture_output=True, timeout=TIMEOUT)
        assert native.stdout.startswith(b"begin 1\nblocked 1 ")
        assert native.stdout.endswith(b"end 1 4\nover 0\n")
        assert run(program).stdout == native.stdout

    def test_children_ignored(self, builder: Builder, run: Runner) -> None:
        seen = run(builder.hosted("processes", "-static"), children="ignore")
        assert seen.stdout == b"forked 11\nvforked 12\nspawned 13\nsystem 14\n"
        (process,) = seen.processes
        assert _function(process, "spin") == 2 * 500 + 2
        assert seen.result["exit"] == 0

    @pytest.mark.parametrize(
        ("name", "output"),
        [
            ("jumps", b"longjmp 10 siglongjmp 10 context 20 handled 10\n"),
            ("dynamic", b"loaded 42\n"),
            ("timers", b"ticks 3\n"),
            ("job_control", b"stopped continued exited 7\n"),
            ("groups", b"terminated 3\n"),
        ],
    )
    def test_behaves_as_without(self, name: str, output: bytes, builder: Builder, run: Runner) -> None:
        """Output and status are the program's own; `spin` ran 10 times 50 turns in each."""
        program = builder.hosted(name, *(["-static"] if name in ("groups", "job_control") else []))
        native = subprocess.run([program], capture_output=True, timeout=TIMEOUT)
        seen = run(program)
        assert native.stdout == output
        assert (seen.stdout, seen.result["exit"]) == (native.stdout, native.returncode)
        assert _function(seen.processes[0], "spin") == 10 * (2 * 50 + 2)

    def test_actions_that_change_under_signals(self, builder: Builder, run: Runner) -> None:
        """The kernel looks at an action when a thread takes the signal, maybe after another has changed it: a
        thread that was let go on into a handler ran on with registers that were not its own."""
        seen = run(builder.hosted("signal_actions"))
        assert (seen.stdout, seen.result["exit"]) == (b"right\n", 0)

    def test_children_of_a_process_whose_first_thread_has_ended(self, builder: Builder, run: Runner) -> None:
        """By whose pid the kernel shows no memory any more."""
        seen = run(builder.hosted("leaderless"))
        assert (seen.stdout, seen.result["exit"]) == (b"3 4 1\n", 5)
        assert sorted(process["exit"] or 0 for process in seen.processes)[-3:] == [3, 4, 5]

    def test_code_that_is_patched(self, builder: Builder, run: Runner) -> None:
        """The program rewrites its own function between calls of it."""
        seen = run(builder.hosted("patched", "-static"))
        assert (seen.stdout, seen.result["exit"]) == (b"1 2 3\n", 0)

    @pytest.mark.parametrize(
        ("name", "many"),
        [("generated", "2000"), ("signal_storm", "2000"), ("signal_flood", "200"), ("signal_deferred", "40")],
    )
    def test_generated_code_and_signals_in_a_loop(
        self, name: str, many: str, builder: Builder, run: Runner
    ) -> None:
        """What is printed does not depend on time, though the signal counts do."""
        program = builder.hosted(name, "-static")
        timed = ("signal_storm", "signal_flood")
        few = (FEW_NUMBERED or self.few_numbered) if name == "signal_flood" else "8"
        turns = many if self.heavy and not SLOW else few
        arguments = [turns, *([SIGNAL_PERIOD or self.signal_period] if name in timed else [])]
        native = subprocess.run([program, *arguments], capture_output=True, timeout=TIMEOUT)
        seen = run(program, *arguments)
        assert native.returncode == 0
        assert (seen.stdout, seen.result["exit"]) == (native.stdout, 0)

    @pytest.mark.parametrize("children", ["follow", "ignore"])
    def test_handlers_are_inherited(self, children: str, builder: Builder, run: Runner) -> None:
        """By children that are followed and by those that are let go."""
        seen = run(builder.hosted("signal_fork", "-static"), children=children)
        assert seen.stdout == b"in the child 7, after exec default, in the parent 9\n"
        assert len({p["pid"] for p in seen.processes}) == (3 if children == "follow" else 1)


def _sum(process: dict[str, Any], field: str) -> int:
    return sum(thread[field] for thread in process["threads"])


def _function(process: dict[str, Any], name: str) -> int:
    """Instructions that a process executed in a function."""
    return sum(thread["functions"].get(name, 0) for thread in process["threads"])
