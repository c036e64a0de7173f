"""Which flags the successors of a block may read: the others a fragment need not preserve."""

from __future__ import annotations

from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.translator.backend import Reader
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.text import ProgramText
from livepro.linux.proc import Mapping


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

    def out_of(self, source: SourceBlock, module: Mapping | None) -> int:
        """Flags that the direct successors of a block may read before overwriting them. Of a block in the
        cache of a `module` those without are not looked into: its fragments are kept, and may meet others
        there."""
        live = 0
        last = source.facts[-1]
        if source.target:
            live |= self._into(source.target, module)
        if not last.ends or last.condition_falls:
            live |= self._into(source.end, module)
        return live

    def _into(self, pc: int, module: Mapping | None) -> int:
        if module is not None and not module.start <= pc < module.end:
            return self._reader.live_in(None)
        live = self._live.get(pc)
        if module is None and not self._text.lasts(pc):
            return self._reader.live_in(None)  # it may be other code the next time
        if live is None:
            slot = self._registry.slots.get(pc)
            known = None if slot is None else self._registry.known(slot)
            source = known.source if known is not None else self._text.decode(pc)
            live = self._live[pc] = self._reader.live_in(source)
        return live

    def forget(self) -> None:
        """The program's code has changed."""
        self._live = {}
