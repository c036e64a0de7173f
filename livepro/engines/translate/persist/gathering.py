"""What is known of each fragment of a module's cache that has been made since it was opened."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.codecache.cache import Cache
from livepro.isa.kinds import Kinds

Array = npt.NDArray[np.int64]


class Gathered(NamedTuple):
    """By row (int64): the slots of fragments and of their blocks; the addresses of blocks and of fragments,
    of slow paths where there are any; bytes of fragments, instructions and bytes of blocks, the flags live at
    their ends. Then for all instructions of all blocks their sizes (uint8) and kinds (uint16), and for all
    blocks their bytes (uint8)."""

    own: Array
    counted: Array
    pcs: Array
    starts: Array
    colds: Array
    sizes: Array
    lengths: Array
    code_sizes: Array
    live: Array
    steps: npt.NDArray[np.uint8]
    kinds: npt.NDArray[np.uint16]
    code: npt.NDArray[np.uint8]


def gather(cache: Cache, kind_of: Kinds) -> Gathered:
    """What is known of the rows of a cache behind those that were put back; `kind_of` numbers kinds."""
    module, rows = cache.module, cache.blocks[cache.kept :]
    assert module is not None
    n = len(rows)
    columns = np.zeros((8, n), np.int64)
    own, counted, pcs, starts, sizes, lengths, code_sizes, live = columns
    colds = np.zeros(n, np.int64)
    made = cache.made
    if made is not None:
        here = made.rows - cache.kept
        own[here] = counted[here] = made.slots
        offsets, begins, sizes[here], lengths[here], code_sizes[here], live[here], slow, _ = made.blocks.T
        colds[here] = np.where(slow == 0, 0, slow + cache.base)
        pcs[here], starts[here] = offsets + module.start, begins + cache.base
    looked = [(row, block) for row, block in enumerate(rows) if block is not None]
    for row, block in looked:
        source = block.source
        columns[:, row] = (
            *(block.own, block.slot, source.pc, block.start, block.size, len(source.facts)),
            *(len(source.code), block.details.live),
        )
        colds[row] = block.cold
    steps, kinds = np.zeros(int(lengths.sum()), np.uint8), np.zeros(int(lengths.sum()), np.uint16)
    code = np.zeros(int(code_sizes.sum()), np.uint8)
    step_at, code_at = np.cumsum(lengths) - lengths, np.cumsum(code_sizes) - code_sizes
    for row, block in looked:
        source, at, behind = block.source, int(step_at[row]), int(code_at[row])
        mine = source.steps()
        steps[at : at + len(mine)] = np.frombuffer(mine, np.uint8)
        kinds[at : at + len(mine)] = kind_of.split(source.code, mine)
        code[behind : behind + len(source.code)] = np.frombuffer(source.code, np.uint8)
    if cache.text is not None:
        seen = np.ones(n, bool)
        seen[[row for row, _ in looked]] = False
        unseen = np.flatnonzero(seen)
        offsets = pcs[unseen] - module.start
        told = cache.text.instructions(offsets, lengths[unseen], code_sizes[unseen], kind_of)
        where = np.repeat(seen, lengths)  # in order, and much faster than by numbers
        steps[where], kinds[where] = told.steps, told.kinds
        code[np.repeat(seen, code_sizes)] = told.code
    return Gathered(
        *(own, counted, pcs, starts, colds[colds != 0], sizes, lengths, code_sizes, live),
        *(steps, kinds, code),
    )
