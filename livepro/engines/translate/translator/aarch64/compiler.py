"""The way to compiled code that translates, imported when there is much to translate and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livepro.engines.translate.translator.aarch64.coherence import synchronise
from livepro.engines.translate.translator.backend import Emitter
from livepro.engines.translate.translator.compiling.preparation import Preparation

if TYPE_CHECKING:
    from livepro.engines.translate.translator.aarch64.compiled.module import CompiledModule, Text
    from livepro.engines.translate.translator.compiling.native import Native, ObjectFile
    from livepro.engines.translate.translator.compiling.store import KernelStore


class Compiler:
    """See `livepro.engines.translate.translator.backend.Compiler`. `waits`: nothing is compiled by this
    process itself, but by another one meanwhile, if it has not been yet."""

    waits = True
    changes = answering = False

    def __init__(self) -> None:
        self._kernels = Preparation(_store, _loaded)

    def ready(self, emitter: Emitter) -> bool:
        """See `Compiler`."""
        return emitter.plain and self._kernels.ready(waits=self.waits)

    @property
    def at_hand(self) -> bool:
        """See `Compiler`."""
        return self._kernels.loaded is not None

    @property
    def prepared(self) -> bool | None:
        """See `Compiler`."""
        return self._kernels.prepared

    def prepare(self) -> int:
        """See `Compiler`."""
        store = _store()
        _loaded(store, store.read())
        return 0

    def close(self) -> None:
        """See `Compiler`."""

    def text(self, start: int, size: int) -> Text:
        """See `Compiler`."""
        from livepro.engines.translate.translator.aarch64.compiled.module import Text

        return Text(start, size)

    def module(
        self, text: Any, base: int, image: Any, emitter: Emitter, *, low: bool, checks: bool = False
    ) -> CompiledModule:
        """See `Compiler`."""
        from livepro.engines.translate.translator.aarch64.compiled.module import CompiledModule

        native = self._kernels.loaded
        assert native is not None
        lookup = np.frombuffer(emitter.lookup, np.uint32)
        return CompiledModule(
            *(text, base, image, native.kernels(), lookup, emitter.landing, synchronise),
            charges=emitter.charges,
        )


def _store() -> KernelStore:
    from livepro.engines.translate.translator.aarch64.compiled.store import kernels

    return kernels()


def _loaded(store: KernelStore, kept: tuple[ObjectFile, object] | None) -> Native:
    """The kernels that are kept, loaded; compiled first if they are not. Raises ImportError without numba."""
    from livepro.engines.translate.translator.aarch64.compiled.specifications import SPECIFICATIONS
    from livepro.engines.translate.translator.compiling.native import Native

    if kept is not None:
        return Native(kept[0], SPECIFICATIONS)
    from livepro.engines.translate.translator.aarch64.compiled.entries import built

    store.discard_others()
    native = Native(built().object_file(), SPECIFICATIONS)
    store.write(native.made, {})
    return native
