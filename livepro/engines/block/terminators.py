"""What follows a thread's stop at a terminator: it is carried out in the thread's registers, and counted."""

from __future__ import annotations

import ctypes

from livepro.engines.block.barring import Barrier
from livepro.engines.block.plan import Path
from livepro.engines.block.planning import Planner
from livepro.engines.block.running import BlockRunner
from livepro.engines.block.thread import BlockThread
from livepro.engines.block.walking import BlockWalk
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.tracee.stops import failed, killed


class Terminators:
    """The general registers of the thread at hand, and what is done with them.

    `registers` are those registers as words, the pc at `pc_index`; `where` is the address of the vector
    that the kernel reads and writes them by.
    """

    def __init__(
        self, isa: Isa, planner: Planner, walk: BlockWalk, barrier: Barrier, runner: BlockRunner
    ) -> None:
        self._pc = isa.registers.pc
        self._planner = planner
        self._walk = walk
        self._barrier = barrier
        self._runner = runner
        self._buffer = buffer = isa.registers.structure()
        self._vector = ptrace.IoVec(ctypes.addressof(buffer), ctypes.sizeof(buffer))
        self.where = ctypes.addressof(self._vector)
        self.registers = memoryview(buffer).cast("B").cast("Q")
        self.pc_index = getattr(isa.registers.structure, isa.registers.pc).offset // 8

    def meet(self, state: BlockThread) -> None:
        """A stepped thread has met the breakpoint on its terminator: carry that out, and let it go on.

        Raises OSError when the thread is gone.
        """
        ptrace.call(ptrace.PTRACE_GETREGSET, state.thread.tid, ptrace.NT_PRSTATUS, self.where)
        assert state.block.site is not None
        path = Path((state.block,), state.block.site.carry)
        if path.carry(self.registers, state.words):
            self.carried(state, path)
        else:
            self.refused(state, path)

    def carried(self, state: BlockThread, path: Path) -> None:
        """A thread's path has been walked to its end and the terminator carried out in the
        registers at hand: count, and let it go on."""
        state.owed = False
        if not path.rows:
            path.rows = tuple(self._planner.row(state, node) for node in path.nodes)
        self._walk.walked(state, path.nodes)
        tid = state.thread.tid
        if ptrace.raw(ptrace.PTRACE_SETREGSET, tid, ptrace.NT_PRSTATUS, self.where) == -1:
            failed(tid)
            return
        state.carried = True
        try:
            self._walk.enter(state, self.registers[self.pc_index])
        except OSError:
            if not killed(tid):
                raise
            return
        self._runner.go(state)

    def refused(self, state: BlockThread, path: Path) -> None:
        """Only the processor can execute the path's terminator: let it, without a breakpoint."""
        state.owed = False
        node = path.nodes[-1]
        assert node.site is not None
        registers = state.thread.registers()
        setattr(registers, self._pc, node.site.address)
        state.thread.set_registers(registers)
        self._walk.walked(state, path.nodes[:-1])
        self._walk.stand_at(state, node, len(node.code) - 1)
        self._barrier.bar(state.text, [node.site], state)
        self._runner.go(state)
