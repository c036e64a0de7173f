"""The kernels for AArch64, compiled into one object file (`objects`)."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.aarch64.compiled.kernels.eager import translate
from livepro.engines.translate.translator.aarch64.compiled.kernels.linking import publish
from livepro.engines.translate.translator.aarch64.compiled.specifications import SPECIFICATIONS
from livepro.engines.translate.translator.compiling.kernels.index import forget, links_to, rehash, take
from livepro.engines.translate.translator.compiling.objects import Built

_KERNELS = {
    "translate": translate,
    "take": take,
    "links_to": links_to,
    "forget": forget,
    "rehash": rehash,
    "publish": publish,
}


def built() -> Built:
    """Compile all of it."""
    return Built(_KERNELS, SPECIFICATIONS, ("translate", "links_to"))
