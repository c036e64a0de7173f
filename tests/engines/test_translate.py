"""The translate engine keeps the contract, with translations of its own and with kept ones."""

from __future__ import annotations

import platform
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from engines.contract import EngineContract, Runner
from engines.control_contract import ControlContract, spin
from engines.observed import OBSERVE, REPOSITORY, TIMEOUT, Observed, observe
from engines.region_contract import RegionContract, run_cases

from fixtures import ASM_FLAGS, Builder, assembly

CATCHING_UP = OBSERVE.with_name("catching_up.py")


class TestTranslate(EngineContract, ControlContract, RegionContract):
    engine = "translate"
    heavy = True


class RunTwice(Runner):
    """Runs each command twice: what is observed ran from translations kept by the first."""

    def __call__(self, *command: str | Path, **options: Any) -> Observed:
        super().__call__(*command, **options)
        return super().__call__(*command, **options)


TINY, SMALL = 1_000, 20_000
"""Bytes of copies: some ten blocks, some hundred."""


class Evicting(Runner):
    """Runs commands in a code cache that holds only a part of them."""

    def __call__(self, *command: str | Path, **options: Any) -> Observed:
        tiny = Path(command[0]).stat().st_size < SMALL  # a program without libc
        return super().__call__(*command, cache=False, cache_size=TINY if tiny else SMALL, **options)


class Compiled(Runner):
    """Runs commands twice, whose modules compiled code translates: the second time from what it has made."""

    def __call__(self, *command: str | Path, **options: Any) -> Observed:
        super().__call__(*command, compiled=True, **options)
        return super().__call__(*command, compiled=True, **options)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for translations that the tests share, as runs do."""
    return tmp_path_factory.mktemp("kept")


class TestTranslateKept(EngineContract):
    engine = "translate"

    @pytest.fixture
    def run(self, tmp_path: Path, kept: Path) -> Runner:
        return RunTwice(self.engine, tmp_path, cache=str(kept))


@pytest.mark.long
class TestTranslateCompiled(EngineContract):
    """Compiled code translates what it can. (In the ordinary suite `test_translate_compiled`.)"""

    engine = "translate"

    @pytest.fixture
    def run(self, tmp_path: Path) -> Runner:
        return Compiled(self.engine, tmp_path, cache=str(tmp_path / "kept"))


@pytest.mark.long
class TestTranslateEvicting(EngineContract, ControlContract, RegionContract):
    """Everything is dropped again and again. (In the ordinary suite `test_translate_evicting`.)"""

    engine = "translate"
    options: ClassVar[dict[str, Any]] = {"cache_size": TINY}

    @pytest.fixture
    def run(self, tmp_path: Path) -> Runner:
        return Evicting(self.engine, tmp_path)


class Allowing(Runner):
    """Runs commands with short intervals, and allowances all the same."""

    def __call__(self, *command: str | Path, **options: Any) -> Observed:
        return super().__call__(*command, **{"interval_size": 1000, "allowing": True} | options)


class CompiledAllowing(Compiled):
    """The same, with modules that compiled code translates."""

    def __call__(self, *command: str | Path, **options: Any) -> Observed:
        return super().__call__(*command, **{"interval_size": 1000, "allowing": True} | options)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="copies know allowances only there")
class TestAllowances(ControlContract):
    """Blocks are allowed many executions at once, few at the end of an interval."""

    engine = "translate"
    options: ClassVar[dict[str, Any]] = {"allowing": True}

    @pytest.mark.parametrize("size", [1, 7, 1000])
    @pytest.mark.parametrize("name", ["nested_loops", "threads_handoff", "signal_nested", "rep_scas"])
    def test_intervals_are_exact(self, name: str, size: int, builder: Builder, tmp_path: Path) -> None:
        EngineContract.test_intervals_are_exact(
            EngineContract(), name, size, builder, Allowing(self.engine, tmp_path, cache=False)
        )

    def test_copies_dropped_with_allowances_of_theirs(self, builder: Builder, tmp_path: Path) -> None:
        """What blocks have been allowed is left to be executed, though other copies do."""
        run = Allowing(self.engine, tmp_path, cache=False, cache_size=3 * SMALL)
        seen = run("/bin/echo", "hello", interval_size=20_000)
        assert seen.stdout == b"hello\n"
        assert seen.result["stats"]["flushes"] > 1
        (thread,) = seen.threads
        whole, rest = divmod(thread["instructions"], 20_000)
        assert thread["intervals"] == [20_000] * whole + [rest] * (rest > 0)

    def test_copies_kept_with_what_is_out_of_their_way(self, builder: Builder, tmp_path: Path) -> None:
        run = Allowing(self.engine, tmp_path, cache=str(tmp_path / "kept"), aslr=False)
        first, *kept = (run("/bin/echo", "x", interval_size=size) for size in (1000, 1000, 100_000, 200))
        assert {each.result["instructions"] for each in kept} == {first.result["instructions"]}
        assert len({tuple(thread["digest"] for thread in each.threads) for each in kept}) == 1

    def test_ten_thousand_signals_a_second(self, builder: Builder, tmp_path: Path) -> None:
        run = Allowing(self.engine, tmp_path)
        seen = run(builder.hosted("signal_clock", "-static"), "40", interval_size=10_000)
        assert seen.stdout.endswith(b" disorder 0 elsewhere 0 read back the same\n")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="copies know allowances only there")
@pytest.mark.long
class TestAllowancesThroughout(EngineContract):
    engine = "translate"
    heavy = True

    @pytest.fixture
    def run(self, tmp_path: Path) -> Runner:
        return Allowing(self.engine, tmp_path, cache=False)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="copies know allowances only there")
@pytest.mark.long
class TestAllowancesCompiled(EngineContract):
    engine = "translate"

    @pytest.fixture
    def run(self, tmp_path: Path) -> Runner:
        return CompiledAllowing(self.engine, tmp_path, cache=str(tmp_path / "kept"))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program writes x86-64 code")
def test_threads_run_code_that_another_patches(builder: Builder, tmp_path: Path) -> None:
    """Operands, targets of calls and entries change under four threads, and change back."""
    program = builder.hosted("generated_threads", "-static")
    for rounds in ("12", "12", "12"):
        seen = observe([program, rounds, "4"], tmp_path / "out", engine="translate")
        assert (seen.stdout, seen.stderr) == (b"12 rounds, 0 wrong\n", b"")
        assert seen.result["exit"] == 0


def test_code_that_was_rewritten_is_called_without_stops(builder: Builder) -> None:
    """And so is code that was put back as it had been: 10,000 calls more take no stop more. (Whether the page
    has been protected again when it is rewritten depends on time: a stop, each of ten times. How many stops
    there are at new code does, too, where it is translated by compiled code, which may be ready for one run
    and not yet for the other.)"""
    program = builder.hosted("rewritten", "-static")
    script = (
        "import livepro, sys; from livepro.engines.translate.translator.x86_64.compiler import Compiler;"
        "Compiler.ready = lambda *_: False;"
        "runs = [livepro.run([*sys.argv[1:], n], engine='translate', cache=False)"
        "for n in ('1000', '2000')]; print([r.exit for r in runs], [r.stats['stops'] for r in runs])"
    )
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", script, program],
        env=environment,
        capture_output=True,
        timeout=TIMEOUT,
        text=True,
    )
    *sums, told = done.stdout.splitlines()
    exits, fewer, more = re.fullmatch(r"(\[.*\]) \[(\d+), (\d+)\]", told).groups()
    assert (*sums, exits) == ("19000", "38000", "[0, 0]"), done.stderr
    assert abs(int(more) - int(fewer)) <= 10


def test_what_is_mapped_elsewhere_is_no_reason_to_translate_anew(builder: Builder, tmp_path: Path) -> None:
    """A thread's stack, say: mmap's address is 0 then, and the program itself may be within the
    stack's size of that."""
    program = builder.hosted("pthreads", "-static", "-no-pie")
    (process,) = observe([program], tmp_path / "out", engine="translate", cache=False).processes
    assert len(process["addresses"]) == len(set(process["addresses"]))


def test_kept_copies_do_not_lead_to_those_of_generated_code(builder: Builder, tmp_path: Path) -> None:
    """What generated code jumped to in the run that kept a module's copies is not there in the next."""
    program = builder.hosted("generated_calls")
    kept = str(tmp_path / "kept")
    for words in ((), ("direct",), ()):
        seen = observe([program, *words], tmp_path / "out", engine="translate", cache=kept)
        assert (seen.stdout, seen.result["exit"]) == (b"generated 21 direct 25\n", 0)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only there are translations kept")
def test_code_in_two_segments_is_kept(builder: Builder, tmp_path: Path) -> None:
    """Two mappings of a file that branch to each other, as large libraries have them: the second run
    translates nothing."""
    (fixture,) = (f for f in assembly() if f.name == "two_segments")
    apart = (*ASM_FLAGS, "-Wl,--section-start=.second=0x4000000")
    run = Runner("translate", tmp_path, cache=str(tmp_path / "kept"))
    program = builder.build(fixture.source, apart)
    for turn in range(2):
        seen = run(program)
        assert (seen.result["exit"], seen.result["instructions"]) == (0, fixture.instructions)
        stats = seen.result["stats"]
        assert (stats["blocks kept from before"] > 0) == (turn > 0)
        if turn:
            assert stats["stops"] < 10


@pytest.mark.parametrize("interval", [None, 10_000])
def test_ten_thousand_signals_a_second(interval: int | None, builder: Builder, tmp_path: Path) -> None:
    """A program that they interrupt all the time gets its work done, and right; its
    handlers see its own code interrupted."""
    program = builder.hosted("signal_clock", "-static")
    options = {} if interval is None else {"interval_size": interval}
    native = subprocess.run([program, "400"], capture_output=True, timeout=TIMEOUT)
    seen = observe([program, "400"], tmp_path / "out", engine="translate", **options)
    assert native.stdout.endswith(b" disorder 0 elsewhere 0 read back the same\n")
    assert (seen.stdout, seen.stderr) == (native.stdout, b"")
    assert seen.faults == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only there does the tracer carry code out itself")
@pytest.mark.parametrize("options", [[], ["--allowing"]], ids=["counting", "allowing"])
@pytest.mark.parametrize(
    ("name", "turns"),
    [("signal_flood", "40"), ("signal_clock", "100"), ("signal_deferred", "40"), ("signal_table", "60000")],
)
def test_the_tracer_does_what_the_thread_would(
    name: str, turns: str, options: list[str], builder: Builder
) -> None:
    """Emitted sequences in which signals find threads, carried out by both."""
    program = [str(builder.hosted(name, "-static", "-fno-pie")), turns]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}"}
    done = subprocess.run(
        [sys.executable, str(CATCHING_UP), *options, *program],
        env=environment,
        capture_output=True,
        timeout=TIMEOUT,
        text=True,
    )
    *printed, last = done.stdout.splitlines()
    assert last == "exit 0 compared some different []", done.stdout + done.stderr
    native = subprocess.run(program, capture_output=True, timeout=TIMEOUT, text=True)
    assert name == "signal_clock" or "\n".join(printed) + "\n" == native.stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only there is the kernel told of other handlers")
@pytest.mark.parametrize("children", ["follow", "ignore"])
def test_children_are_born_while_handlers_are_set(children: str, builder: Builder, tmp_path: Path) -> None:
    """A child that is let go has the program's own handlers, also one that was just being set."""
    program = builder.hosted("acting_forks", "-static")
    seen = observe([program, "60"], tmp_path / "out", engine="translate", children=children)
    assert seen.stdout == b"60 children, wrong 0\n"
    assert (seen.result["exit"], seen.faults, seen.result["warnings"]) == (0, [], [])


def test_region_in_a_library_that_is_loaded_later(builder: Builder, tmp_path: Path) -> None:
    """The program itself is loaded at a random address."""
    library = builder.hosted("loaded", "-shared", "-fPIC")
    cases: list[dict[str, Any]] = [
        {"start_at": f"{library.name}!portion", "stop_at": f"{library.name}!portion"},
        {"start_at": f"{library.name}!portion", "skip": 10},
        {"start_at": "main", "stop_at": f"{library.name}!spin"},
    ]
    program = builder.hosted("loader", "-pie", "-fPIE")
    once, rest, before = run_cases("translate", program, cases, tmp_path, str(library))
    for seen in (once, rest, before):
        assert (seen["exit"], seen["warnings"], seen["faults"]) == (0, [], [])
    assert once["functions"]["spin"] == spin(100)
    assert 0 < once["instructions"] - spin(100) < 20
    assert 0 < spin(100, 200, 300) - rest["functions"]["spin"] < 10
    assert "spin" not in before["functions"]
    assert "main" in before["functions"]


@pytest.mark.parametrize("way", ["unmap", "over", "protect"])
def test_a_program_that_takes_its_memory_away(way: str, builder: Builder, tmp_path: Path) -> None:
    """It dies of that, as of any of its own faults, and is told why."""
    seen = observe([builder.hosted("hostile"), way], tmp_path / "out", engine="translate")
    assert seen.result["exit"] == 128 + signal.SIGSEGV
    (warning,) = seen.result["warnings"]
    assert re.match(r"Process \d+ changes mappings between 0x\w+ and 0x\w+ that are livepro's", warning)


def test_a_program_that_writes_all_over_its_memory(builder: Builder, tmp_path: Path) -> None:
    """Whatever becomes of the program: livepro ends, with a result."""
    seen = observe([builder.hosted("hostile"), "scribble"], tmp_path / "out", engine="translate")
    assert seen.result["exit"] in {128 + number for number in (signal.SIGSEGV, signal.SIGILL, signal.SIGTRAP)}


def test_a_program_that_takes_other_memory_away(builder: Builder, tmp_path: Path) -> None:
    seen = observe([builder.hosted("hostile"), "protect", "[heap]"], tmp_path / "out", engine="translate")
    assert (seen.result["exit"], seen.result["warnings"]) == (128 + signal.SIGSEGV, [])
