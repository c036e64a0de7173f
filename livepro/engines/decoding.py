"""What stepped threads have been found to execute: decoded blocks, by process image."""

from __future__ import annotations

from livepro.engines.base import EngineOptions
from livepro.engines.recording import ImageRecord
from livepro.engines.regional import Regional
from livepro.engines.stepping import StepBlock, StepThread
from livepro.isa.base import Isa
from livepro.tracee import TracedProcess

_PROT_EXEC = 4  # include/uapi/asm-generic/mman-common.h


class Decoding(Regional):
    """Decodes blocks once, and again where they may have changed."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        self._states: dict[int, StepThread] = {}
        self._known: dict[ImageRecord, dict[int, StepBlock]] = {}
        self._versions: dict[ImageRecord, dict[tuple[int, bytes], int]] = {}

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        super().process_started(process, parent)
        record = self.records[process]
        self._known[record] = {}
        self._versions[record] = {}

    def process_ended(self, process: TracedProcess) -> None:
        record = self.records[process]
        self._known.pop(record, None)
        self._versions.pop(record, None)
        super().process_ended(process)

    def _remapped(self, state: StepThread, address: int, size: int, protection: int) -> None:
        """Forget decoded code if the call may have changed what is executable."""
        process = state.thread.process
        touched = process.space.holds_code(address, address + size)
        process.remapped()
        if touched or protection & _PROT_EXEC:
            known = self._known[state.record]
            for block in (*known.values(), *(other.block for other in self._states.values())):
                block.links.clear()
            known.clear()

    def _decode(self, process: TracedProcess, record: ImageRecord, pc: int) -> StepBlock:
        code = self._read_block(process, process.memory, pc)
        mapping = process.space.find(pc)
        versions = self._versions[record]
        row = versions.get((pc, code.code))
        if row is None:
            row = versions[pc, code.code] = record.store.add(code, mapping)
        block = StepBlock(code, row, mapping is not None and mapping.stable_code)
        self._known[record][pc] = block
        return block
