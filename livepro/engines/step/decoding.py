"""What stepped threads have been found to execute: decoded blocks, by process image."""

from __future__ import annotations

from collections.abc import Mapping

from livepro.engines.recording import ImageRecord
from livepro.engines.step.regional import RegionKeeper
from livepro.engines.step.stepping import StepBlock, StepThread
from livepro.isa.base import CodeBlock
from livepro.tracee import TracedProcess

_PROT_EXEC = 4  # include/uapi/asm-generic/mman-common.h


class Decoder:
    """Decodes blocks once, and again where they may have changed. `states` are the threads by tid."""

    def __init__(self, keeper: RegionKeeper, states: Mapping[int, StepThread]) -> None:
        self._keeper = keeper
        self._states = states
        self._known: dict[ImageRecord, dict[int, StepBlock]] = {}
        self._rows: dict[ImageRecord, dict[tuple[int, bytes], int]] = {}

    def begin(self, record: ImageRecord) -> None:
        """A process image has begun."""
        self._known[record] = {}
        self._rows[record] = {}

    def end(self, record: ImageRecord) -> None:
        """A process image has ended."""
        self._known.pop(record, None)
        self._rows.pop(record, None)

    def remapped(self, state: StepThread, address: int, size: int, protection: int) -> None:
        """Forget decoded code if a thread's system call may have changed what is executable."""
        process = state.thread.process
        touched = process.space.holds_code(address, address + size)
        process.remapped()
        if touched or protection & _PROT_EXEC:
            known = self._known[state.record]
            for block in (*known.values(), *(other.block for other in self._states.values())):
                block.links.clear()
            known.clear()

    def find(self, record: ImageRecord, pc: int) -> StepBlock | None:
        """The block at `pc`, if it has been decoded."""
        return self._known[record].get(pc)

    def decode(self, process: TracedProcess, record: ImageRecord, pc: int) -> StepBlock:
        """Decode the block at `pc`."""
        code = self._keeper.read_block(process, process.memory, pc)
        mapping = process.space.find(pc)
        row = self.row(process, record, code)
        block = StepBlock(code, row, mapping is not None and mapping.stable_code)
        self._known[record][pc] = block
        return block

    def row(self, process: TracedProcess, record: ImageRecord, code: CodeBlock) -> int:
        """The row of a block in its image's table."""
        rows, key = self._rows[record], (code.address, code.code)
        row = rows.get(key)
        if row is None:
            row = rows[key] = record.store.add(code, process.space.find(code.address))
        return row
