"""Threads let run on: to the breakpoint that their plan ends at, or by a step."""

from __future__ import annotations

from collections.abc import Callable

from livepro.engines.block.barring import Barrier, interrupt
from livepro.engines.block.plan import Plan
from livepro.engines.block.thread import BlockThread
from livepro.engines.block.walking import BlockWalk
from livepro.engines.block.watching import RepWatch
from livepro.engines.step.calling import Call, MaskedCalls
from livepro.engines.step.stepping import StepThread
from livepro.isa.base import Quirk
from livepro.linux import ptrace
from livepro.tracee.stops import failed


class BlockRunner:
    """Resumes threads.

    `pc` reads the program counter of a thread (tid). `before_call` sees to one that is about to
    make a system call: whether it has been let go. `whole` has one execute all of an exclusive sequence:
    None if it stands at none, False if it has met something else on the way.
    """

    def __init__(
        self,
        walk: BlockWalk,
        barrier: Barrier,
        watch: RepWatch,
        calls: MaskedCalls,
        pc: Callable[[int], int],
        before_call: Callable[[StepThread], bool],
        whole: Callable[[StepThread], bool | None],
    ) -> None:
        self._walk = walk
        self._barrier = barrier
        self._watch = watch
        self._calls = calls
        self._pc = pc
        self._before_call = before_call
        self._whole = whole

    def go(self, state: BlockThread) -> None:
        """Let a thread run on, or wait if sites that threads run to are being given back."""
        text, tid = state.text, state.thread.tid
        if state.call is Call.WITHIN:
            self._resume(state, self._calls.request(state))
            return
        if state.owed:
            self._barrier.no_longer_running(state)
            self._resume(state, ptrace.PTRACE_CONT)
            return
        if text.version < 0:
            text.waiting.append(tid)
            self._barrier.no_longer_running(state)
            return
        if state.plan is not None and self._calls.due(tid):  # it would be taken for a breakpoint's
            self._walk.stand_at(state, state.block, state.index)
        while state.plan is not None:
            plan = state.plan
            if plan.version == text.version or self._prepare(state, plan):
                state.muddled = False
                self._resume(state, ptrace.PTRACE_CONT)
                return
            if text.version < 0:  # making another plan has barred a site
                text.waiting.append(tid)
                return
        if state.muddled:
            # It stops again before it executes anything, and is then resumed from there.
            state.muddled = False
            interrupt(tid)
            self._resume(state, ptrace.PTRACE_CONT)
        elif state.block.code.reps[state.index] and self._watch.watch(state):
            self._resume(state, ptrace.PTRACE_CONT)
        else:
            quirk = state.block.code.quirks[state.index]
            if quirk is Quirk.SYSCALL and self._before_call(state):
                return
            whole = self._whole(state) if quirk is Quirk.EXCLUSIVE else None
            if whole is None:
                self._resume(state, self._calls.request(state))
            elif whole:
                self.go(state)

    @staticmethod
    def _resume(state: BlockThread, request: int) -> None:
        carried, state.carried = state.carried, False
        tid = state.thread.tid
        if ptrace.raw(request, tid, None, None) == -1:
            state.carried = carried
            failed(tid)

    def _prepare(self, state: BlockThread, plan: Plan) -> bool:
        """Plant the breakpoint that a plan ends at; if that may not be, find another plan."""
        stop, memory = plan.stop, state.thread.process.memory
        if not stop.barred and not stop.planted:
            try:
                state.text.plant(stop, memory)
            except OSError:
                stop.barred = True
                self._barrier.barred += 1
        if not stop.barred:
            plan.version = state.text.version
            return True
        try:
            self._walk.stand(state, self._pc(state.thread.tid))
            self._walk.place(state)
        except OSError:
            state.plan = None
        return False
