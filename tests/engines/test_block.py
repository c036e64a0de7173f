"""The block engine keeps the contract."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from engines.blocked_traps_contract import BlockedTrapsContract
from engines.contract import EngineContract, Runner
from engines.control_contract import ControlContract
from engines.observed import REPOSITORY, TIMEOUT
from engines.region_contract import RegionContract, late

import livepro
from fixtures import Builder
from livepro.engines.block.engine import BlockEngine
from livepro.engines.step.engine import StepEngine
from livepro.linux import proc


class TestBlock(EngineContract, BlockedTrapsContract, ControlContract, RegionContract):
    engine = "block"
    unfit: ClassVar[dict[str, str]] = {
        "self_reading": "a program that reads its own code sees the breakpoints in it",
    }

    @pytest.mark.parametrize("size", [0, 1000])
    def test_agrees_with_the_step_engine(self, size: int, run: Runner, tmp_path: Path) -> None:
        """Block by block, partial executions and rep iterations included, on a program with libc."""
        (tmp_path / "step").mkdir()
        step = Runner("step", tmp_path / "step")
        seen = [each("/bin/echo", "hello", aslr=False, interval_size=size) for each in (run, step)]
        ours, theirs = ([dict(p, pid=0, ppid=0) for p in one.processes] for one in seen)
        for process in ours + theirs:
            process["threads"] = [dict(thread, tid=0) for thread in process["threads"]]
        assert ours == theirs

    def test_the_vdso_is_run_like_any_code(self) -> None:
        """All processes share its pages until one is written: the breakpoints are the target's own."""
        script = (
            "import livepro; r = livepro.run(['/bin/date'], engine='block'); (p,) = r.processes;"
            "print(r.exit, '[vdso]' in p.table.module, r.stats['stops'] < r.instructions / 2)"
        )
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT)
        assert done.stdout.splitlines()[-1:] == ["0 True True"], done.stderr

    def test_who_ends_while_all_are_let_go_is_waited_for_no_longer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those that have stopped wait for all that may run towards a breakpoint: they waited for good."""
        engine: Any = object.__new__(BlockEngine)  # as much of it as the question takes
        monkeypatch.setattr(StepEngine, "exiting", lambda *_: None)
        halted: list[str] = []
        engine._running = {7: SimpleNamespace(plan=None, text="its code")}
        engine.barrier = SimpleNamespace(no_longer_running=lambda _: None)
        engine.detacher = SimpleNamespace(halted=halted.append)
        engine.leaving = True
        engine.exiting(SimpleNamespace(tid=7), False)
        assert halted == ["its code"]

    def test_stepped_onto_a_breakpoint_when_all_are_let_go(
        self, builder: Builder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Which is lifted before the thread's stop is heard of: it stands before what was there."""
        leave = BlockEngine.leave

        def leaving(engine: BlockEngine) -> None:
            for tid, state in engine._running.items():
                while state.plan is None and proc.thread_state(tid) == "R":  # until it has made its step
                    os.sched_yield()
            leave(engine)

        monkeypatch.setattr(BlockEngine, "leave", leaving)
        program = builder.hosted("pthreads", "-static")
        for count in range(2000, 2004):
            result = livepro.run([str(program)], engine="block", start_at="spin", skip=500, count=count)
            assert late(result.warnings) >= abs(result.instructions - count)
            assert os.waitpid(result.processes[0].pid, 0)[1] == 0
