"""The kernel that answers stops, and what it is given."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from livepro.engines.translate.codecache.compiled_code import Reached, Standing
from livepro.engines.translate.translator.compiling.native import Native
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.tracee.stops import WAIT_FLAGS

_PATIENCE = 600
"""How often the processor is left to others before no more stops are waited for: half a millisecond where
nobody wants it. What was made is entered then, while the program runs. (With 30, 150, 600 and 3,000 rustc
takes 18, 13, 11 and 11 s, gcc 6.7, 4.4, 3.4 and 3.7.)"""
_AT_ONCE = 64  # stops that are answered before what was made for them is entered


class StopServer:
    """See `livepro.engines.translate.codecache.compiled_code.Answers`."""

    def __init__(self, native: Native) -> None:
        self.log = np.zeros((_AT_ONCE, tables.LOG_COLUMNS), np.int64)
        self._answer = native.kernels().answer
        self._heard = np.zeros(2, np.int64)

    def answer(
        self, tids: Sequence[tuple[int, int]], standing: Sequence[Standing], first: tuple[int, int]
    ) -> tuple[list[list[Reached]], tuple[int, int] | None]:
        """See `Answers`."""
        log, heard = self.log, self._heard
        heard[:] = first
        begins = [0, *accumulate(len(each.modules) for each in standing)]
        modules = [module for each in standing for module in each.modules]
        spaces = [
            (each.miss, each.cell, *bounds) for each, bounds in zip(standing, pairwise(begins), strict=True)
        ]
        count = self._answer(
            *(np.array(each, np.int64) for each in (tids, spaces, modules)),
            *(log, heard, heard.ctypes.data, WAIT_FLAGS, _PATIENCE),
        )
        reached: list[list[Reached]] = [[] for _ in standing]
        for which, *place in log[:count].tolist():
            space = bisect(begins, which) - 1
            reached[space].append(Reached(which - begins[space], *place))
        tid, status = heard.tolist()
        return reached, (tid, status) if tid else None
