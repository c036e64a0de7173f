"""The way to compiled code that translates, imported when there is much to translate and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livepro.engines.translate.translator.backend import Emitter
from livepro.engines.translate.translator.compiling.preparation import Preparation

if TYPE_CHECKING:
    from livepro.engines.translate.translator.x86_64.compiled.answering.server import StopServer
    from livepro.engines.translate.translator.x86_64.compiled.changing import ChangingText, CodeOfBlocks
    from livepro.engines.translate.translator.x86_64.compiled.module import CompiledModule, Text
    from livepro.engines.translate.translator.x86_64.compiled.prepared.store import Kept, ShapeStore
    from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable

_GROWN = 8  # shapes are kept again once there are so much more: one to so many


class Compiler:
    """See `livepro.engines.translate.translator.backend.Compiler`. `waits`: nothing is compiled by this
    process itself, but by another one meanwhile, if it has not been yet."""

    waits = True
    changes = answering = True

    def __init__(self) -> None:
        self._shapes = Preparation(_store, self._load)
        self._known = 0
        self._pieces: dict[Emitter, Any] = {}

    def ready(self, emitter: Emitter) -> bool:
        """See `Compiler`."""
        return emitter.plain and self._shapes.ready(waits=self.waits)

    @property
    def at_hand(self) -> bool:
        """See `Compiler`."""
        return self._shapes.loaded is not None

    def _load(self, store: ShapeStore, kept: Kept | None) -> ShapeTable:
        from livepro.engines.translate.translator.x86_64.compiled.prepared.loading import loaded

        shapes = loaded(store, kept)
        self._known = len(shapes)
        return shapes

    @property
    def _loaded(self) -> ShapeTable:
        shapes = self._shapes.loaded
        assert shapes is not None
        return shapes

    @property
    def prepared(self) -> bool | None:
        """See `Compiler`."""
        return self._shapes.prepared

    def prepare(self) -> int:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.prepared.preparing import prepare

        return prepare()

    def close(self) -> None:
        """See `Compiler`."""
        shapes = self._shapes.loaded
        if shapes is not None and (len(shapes) - self._known) * _GROWN > self._known:
            _store().write(shapes.kept())

    def answers(self) -> StopServer:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.answering.server import StopServer

        return StopServer(self._loaded.native)

    def text(self, start: int, size: int) -> Text:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.module import Text

        return Text(start, size, self._loaded)

    def changing(self, start: int, size: int) -> tuple[ChangingText, CodeOfBlocks]:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.changing import ChangingText, CodeOfBlocks

        return ChangingText(start, size, self._loaded), CodeOfBlocks(self._loaded)

    def module(
        self, text: Any, base: int, image: Any, emitter: Emitter, *, low: bool, checks: bool = False
    ) -> CompiledModule:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.module import CompiledModule
        from livepro.engines.translate.translator.x86_64.compiled.templates import pieces

        made = self._pieces.get(emitter)
        if made is None:
            made = self._pieces[emitter] = pieces(emitter.lookup, emitter.landing(0))
        return CompiledModule(
            *(text, base, image, *made),
            low=low,
            records=emitter.records,
            addresses=emitter.recording is not None and emitter.recording.blocks.accessing,
            filter=emitter.filter,
            asks=emitter.asks,
            charges=emitter.charges,
            checks=checks,
        )


def _store() -> ShapeStore:
    from livepro.engines.translate.translator.x86_64.compiled.prepared.store import ShapeStore

    return ShapeStore()
