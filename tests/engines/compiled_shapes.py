"""A table of shapes for tests."""

from __future__ import annotations

from livepro.engines.translate.translator.x86_64.compiled.prepared import loading, store
from livepro.engines.translate.translator.x86_64.compiled.shapes import ShapeTable


def shapes_of_none() -> ShapeTable:
    """A table that is empty, with the kernels."""
    kept = store.ShapeStore()
    return ShapeTable(loading.loaded(kept, kept.read()).native)
