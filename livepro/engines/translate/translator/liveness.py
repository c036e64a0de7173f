"""Which flags the successors of a block may read: the others a fragment need not preserve."""

from __future__ import annotations

from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.translator.backend import Reader
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.text import ProgramText


class Liveness:
    """Knows which flags are live at the blocks of one process."""

    def __init__(self, registry: BlockRegistry, text: ProgramText, reader: Reader) -> None:
        self._registry = registry
        self._text = text
        self._reader = reader
        self._live: dict[int, int] = {}

    def fork_into(self, child: Liveness) -> None:
        """Let a forked child know the same."""
        child._live = self._live.copy()

    def out_of(self, source: SourceBlock) -> int:
        """Flags that the direct successors of a block may read before overwriting them."""
        live = 0
        last = source.facts[-1]
        if source.target:
            live |= self._into(source.target)
        if not last.ends or last.condition_falls:
            live |= self._into(source.end)
        return live

    def _into(self, pc: int) -> int:
        live = self._live.get(pc)
        if live is None:
            slot = self._registry.slots.get(pc)
            known = None if slot is None else self._registry.known(slot)
            source = known.source if known is not None else self._text.decode(pc)
            live = self._live[pc] = self._reader.live_in(source)
        return live

    def forget(self) -> None:
        """The program's code has changed."""
        self._live = {}
