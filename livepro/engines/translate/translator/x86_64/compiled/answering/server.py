"""The kernel that answers stops, and what it is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livepro.engines.translate.codecache.compiled_code import Reached
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.compiled.native import Native
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
        self,
        tids: Sequence[int],
        modules: Sequence[tuple[int, ...]],
        miss: int,
        cell: int,
        first: tuple[int, int],
    ) -> tuple[list[Reached], tuple[int, int] | None]:
        """See `Answers`."""
        log, heard = self.log, self._heard
        heard[:] = first
        count = self._answer(
            *(np.array(tids, np.int64), np.array(modules, np.int64), log, heard),
            *(heard.ctypes.data, miss, cell, WAIT_FLAGS, _PATIENCE),
        )
        tid, status = heard.tolist()
        return [Reached(*row) for row in log[:count].tolist()], (tid, status) if tid else None
