"""The blocks that a process had fragments of before a flush: each keeps its slot."""

from __future__ import annotations

from collections.abc import Sequence

from livepro.engines.recording import located
from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.linux.proc import Mapping
from livepro.tracee import TracedProcess

_Key = tuple[int, bytes, str, int, object]


class FormerSlots:
    """Which slot a block has that is the same in all: its address, its bytes, the file that it is in, and
    what generated code says of itself."""

    def __init__(self, process: TracedProcess, generated: GeneratedCode) -> None:
        self._process = process
        self._generated = generated
        self._slots: dict[_Key, int] = {}

    def fork_into(self, child: FormerSlots) -> None:
        """Let a forked child know the same."""
        child._slots = self._slots.copy()

    def __bool__(self) -> bool:
        return bool(self._slots)

    def note(self, slot: int, pc: int, code: bytes, mapping: Mapping | None) -> None:
        """Keep in mind that the block of `slot` is that with these bytes at `pc`."""
        self._slots[pc, code, *located(pc, mapping), self._generated.labels.get(slot)] = slot

    def slot(self, pc: int, code: bytes) -> int | None:
        """The slot of a block that is at `pc` now, None if it is a new one."""
        if not self._slots:
            return None
        mapping = self._process.space.find(pc)
        generated = mapping is not None and not mapping.file_backed
        label = self._generated.label(pc) if generated else None
        return self._slots.get((pc, code, *located(pc, mapping), label))

    def slots(self, pcs: Sequence[int], codes: Sequence[bytes], module: Mapping | None) -> list[int | None]:
        """The same for blocks of a module, or (None) of code that may change."""
        find = self._slots.get
        if module is None:
            return [self.slot(pc, code) for pc, code in zip(pcs, codes, strict=True)]
        return [find((pc, code, *located(pc, module), None)) for pc, code in zip(pcs, codes, strict=True)]
