"""The way to compiled code that translates, imported when there is much to translate and not before."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from livepro.engines.translate.translator.backend import Emitter

if TYPE_CHECKING:
    from livepro.engines.translate.translator.x86_64.compiled.answering.server import StopServer
    from livepro.engines.translate.translator.x86_64.compiled.changing import ChangingText, CodeOfBlocks
    from livepro.engines.translate.translator.x86_64.compiled.module import CompiledModule, Text
    from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable

_LOOK_AGAIN = 5  # seconds until it is looked again whether all has been compiled meanwhile
_GROWN = 8  # shapes are kept again once there are so much more: one to so many


class Compiler:
    """See `livepro.engines.translate.translator.backend.Compiler`. `waits`: nothing is compiled by this
    process itself, but by another one meanwhile, if it has not been yet."""

    waits = True

    def __init__(self) -> None:
        self._shapes: ShapeTable | None = None
        self._known = 0
        self._asked = -float(_LOOK_AGAIN)
        self._pieces: dict[Emitter, Any] = {}

    def ready(self, emitter: Emitter) -> bool:
        """See `Compiler`."""
        if not emitter.plain:
            return False
        if self._shapes is None and time.monotonic() - self._asked >= _LOOK_AGAIN:
            self._look()
        return self._shapes is not None

    @property
    def at_hand(self) -> bool:
        """See `Compiler`."""
        return self._shapes is not None

    def _look(self) -> None:
        from livepro.engines.translate.translator.x86_64.compiled.prepared.store import ShapeStore

        self._asked = time.monotonic()
        store = ShapeStore()
        if not store.possible:
            self._asked = float("inf")  # there is no numba: all is translated in Python
            return
        kept = store.read()
        if kept is None and self.waits:
            from livepro.engines.translate.translator.x86_64.compiled.prepared.preparing import (
                prepare_meanwhile,
            )

            prepare_meanwhile()
            return
        from livepro.engines.translate.translator.x86_64.compiled.prepared.loading import loaded

        try:
            self._shapes = loaded(store, kept)
        except (ImportError, OSError, RuntimeError):
            # (A kernel may refuse memory that can be written and executed.)
            self._asked = float("inf")
            return
        self._known = len(self._shapes)

    @property
    def prepared(self) -> bool | None:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.prepared.store import ShapeStore

        store = ShapeStore()
        return store.read() is not None if store.possible else None

    def prepare(self) -> int:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.prepared.preparing import prepare

        return prepare()

    def close(self) -> None:
        """See `Compiler`."""
        shapes = self._shapes
        if shapes is not None and (len(shapes) - self._known) * _GROWN > self._known:
            from livepro.engines.translate.translator.x86_64.compiled.prepared.store import ShapeStore

            ShapeStore().write(shapes.kept())

    def answers(self) -> StopServer:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.answering.server import StopServer

        assert self._shapes is not None
        return StopServer(self._shapes.native)

    def text(self, start: int, size: int) -> Text:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.module import Text

        assert self._shapes is not None
        return Text(start, size, self._shapes)

    def changing(self, start: int, size: int) -> tuple[ChangingText, CodeOfBlocks]:
        """See `Compiler`."""
        from livepro.engines.translate.translator.x86_64.compiled.changing import ChangingText, CodeOfBlocks

        assert self._shapes is not None
        return ChangingText(start, size, self._shapes), CodeOfBlocks(self._shapes)

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
