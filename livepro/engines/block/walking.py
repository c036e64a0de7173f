"""Where threads get to that run from breakpoint to breakpoint, or are stepped."""

from __future__ import annotations

from collections.abc import Iterable

from livepro.engines.block.barring import Barrier
from livepro.engines.block.plan import Node
from livepro.engines.block.planning import Planner
from livepro.engines.block.spaces import FAILED, Spaces
from livepro.engines.block.thread import BlockThread
from livepro.engines.inprocess import InProcess
from livepro.engines.step.decoding import Decoder
from livepro.engines.step.regional import RegionKeeper
from livepro.engines.step.stepping import NEVER, StepThread, unchanged
from livepro.engines.step.walking import StepWalk
from livepro.engines.traps import IgnoredTraps
from livepro.isa.base import Isa, Quirk
from livepro.tracee.births import Births


class BlockWalk(StepWalk):
    """Leads threads from block to block, or from instruction to instruction. `strays` counts threads that
    something else than an instruction led out of their plan."""

    def __init__(
        self,
        isa: Isa,
        keeper: RegionKeeper,
        decoder: Decoder,
        inprocess: InProcess,
        births: Births,
        traps: IgnoredTraps,
        planner: Planner,
        spaces: Spaces,
        barrier: Barrier,
    ) -> None:
        super().__init__(isa, keeper, decoder, inprocess, births, traps)
        self.strays = 0
        self._planner = planner
        self._spaces = spaces
        self._barrier = barrier

    def enter(self, state: StepThread, pc: int) -> None:
        assert isinstance(state, BlockThread)
        node = state.known.get(pc)
        if node is None or not (node.stable or unchanged(state, node, 0)):
            node = self._planner.node(state, pc)
        self.stand_at(state, node, 0)
        self.place(state)

    def arrive(self, state: StepThread) -> None:
        assert isinstance(state, BlockThread)
        node, index = state.block, state.index
        if not node.stable and not unchanged(state, node, index):
            self.leave(state, index)
            self.enter(state, node.code.addresses[index])
        else:
            self.place(state)

    def place(self, state: BlockThread) -> None:
        """The thread is about to execute instruction `index`: by a step, or running on to the terminator."""
        node, index = state.block, state.index
        state.expected = NEVER
        self._keeper.arrive(state)
        may_run = self._keeper.may_run(state, len(node.code))
        if state.trace is None and index >= node.tail and node.runnable and may_run:
            plan = self._planner.plan(state, node)
            if len(plan.nodes) == 1 or self._keeper.may_run(state, plan.length):
                state.plan = plan
                return
        state.plan = None
        self.attempt(state, asks=not may_run)

    def stand_at(self, state: BlockThread, node: Node, index: int) -> None:
        """The thread stands at an instruction, and is not running."""
        if node.row < 0:
            self._planner.row(state, node)
        state.plan = None
        state.block = node
        state.index = index
        state.expect = node.expect
        state.expected = NEVER

    def stand(self, state: BlockThread, pc: int) -> None:
        """A running thread has stopped at `pc`: count what it has left behind."""
        assert state.plan is not None
        place = state.plan.locate(pc)
        if place is None:
            self.astray(state, pc)
            return
        number, index = place
        self.walked(state, state.plan.nodes[:number])
        self.stand_at(state, state.plan.nodes[number], index)

    def astray(self, state: BlockThread, pc: int) -> None:
        """A running thread is where its plan does not lead: how it came there is not known."""
        self.strays += 1
        self.leave(state, state.index)
        self.enter(state, pc)

    def walked(self, state: BlockThread, nodes: Iterable[Node]) -> None:
        """Count complete executions."""
        for node in nodes:
            row, length = node.row if node.row >= 0 else self._planner.row(state, node), len(node.code)
            self._keeper.passes(state, row, length, length)
            state.tally.complete(row)

    def after_quirk(self, state: StepThread, quirk: Quirk, *, returned: bool) -> None:
        super().after_quirk(state, quirk, returned=returned)
        assert isinstance(state, BlockThread)
        if quirk is not Quirk.SYSCALL or state.text.closed or not self._isa.guards_returns(state.before):
            return
        if getattr(state.thread.registers(), self._isa.registers.syscall_result) not in FAILED:
            # From now on the processor must execute every call and return itself.
            state.text.closed = True
            self._barrier.bar(state.text, list(state.text.sites.values()), state)

    def remapped(self, state: StepThread, address: int, size: int, protection: int) -> None:
        assert isinstance(state, BlockThread)
        self._spaces.remapped(state, address, size)
