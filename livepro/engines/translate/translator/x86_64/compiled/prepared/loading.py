"""The kernels and shapes that are kept, loaded; compiled first if they are not."""

from __future__ import annotations

from livepro.engines.translate.translator.compiling.native import Native
from livepro.engines.translate.translator.x86_64.compiled.prepared.store import Kept, ShapeStore
from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable
from livepro.engines.translate.translator.x86_64.compiled.specifications import SPECIFICATIONS


def loaded(store: ShapeStore, kept: Kept | None) -> ShapeTable:
    """What is `kept` in a store. Where that is nothing all is compiled here and now, and kept: raises
    ImportError without numba."""
    if kept is not None:
        return ShapeTable(Native(kept.made, SPECIFICATIONS), kept.learnt)
    from livepro.engines.translate.translator.x86_64.compiled.entries import compiled

    store.discard_others()
    shapes = ShapeTable(Native(compiled(), SPECIFICATIONS))
    store.write(shapes.kept())
    return shapes
