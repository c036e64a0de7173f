"""The inlined functions that blocks are in, where debug information tells them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Frame = tuple[str, str, int]
"""A function, and the file and line of the code, or of the call of the function before (`linux.inlined`)."""

Frames = Callable[[str, npt.NDArray[np.uint64]], Sequence[Sequence[Frame]]]
"""From a module's path and addresses there (uint64, as its headers number them) to the functions that each
is in, the innermost first."""


def of_places(places: Sequence[tuple[str, int]], frames: Frames | None) -> list[list[Frame]]:
    """The functions that each of `places` (module, address) is in, the innermost first; none without
    `frames`."""
    out: list[list[Frame]] = [[] for _ in places]
    modules: dict[str, list[int]] = {}
    if frames is not None:
        for at, (module, _) in enumerate(places):
            modules.setdefault(module, []).append(at)
    for module, own in modules.items():
        assert frames is not None
        found = frames(module, np.array([places[at][1] for at in own], np.uint64))
        for at, chain in zip(own, found, strict=True):
            out[at] = list(chain)
    return out
