"""Ways into fragments: direct branches and landings, in code that nothing leads to yet, and the lookup table
of indirect branches, in which landings are entered as `Lookup.enter` does one by one."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.kernels.index import entry_of
from livepro.engines.translate.translator.compiling.kernels.noting import landed, note_link, note_stub
from livepro.engines.translate.translator.compiling.tables import (
    BASE,
    BYTES,
    COLD,
    ELSEWHERE,
    ENTERED,
    FRAGMENT,
    MODULE,
    SIZE,
    STUB,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.emitting import pad
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import put, write_32, write_64
from livepro.engines.translate.translator.x86_64.compiled.tables import JUMP_PIECE, LANDING, STUB_SIZE

_STOP = 0xCC  # int3
_ENTRIES = layout.LOOKUP_ENTRIES - 1
_FAR_JUMP = 0x9090_0000_0002_25FF - (
    1 << 64
)  # jmp [rip + 2], what aligns its target: see `encode.jump_far_away`
_REACH = 1 << 31


@kernel
def link(state, image, field, target, keys, index, links, stubs, successors):
    """Let the branch whose displacement is at `field`, in code that nothing leads to yet, lead to the
    module's offset `target`."""
    at = note_link(state, keys, index, links, successors, field, target)
    if index[at, FRAGMENT] and target >= 0 and target < state[SIZE]:
        write_32(image, field, index[at, FRAGMENT] - field - 4)
        return
    stub = index[at, STUB]
    if not stub:
        stub = state[COLD]
        state[COLD] += STUB_SIZE
        image[stub] = _STOP
        write_32(image, stub + 1, target)
        state[BYTES] += STUB_SIZE
        note_stub(state, index, stubs, at, target, stub)
    write_32(image, field, stub - field - 4)


@kernel
def land(state, image, pc, pieces, bounds, keys, index, landings):
    """Make a landing for `pc`, which has a fragment."""
    at = begin = state[COLD] + 15 & -16
    at = put(image, at, pieces, bounds, LANDING)
    write_64(image, begin + 2, -(state[MODULE] + pc))
    at = pad(state, image, at, 1, pieces, bounds)
    at = put(image, at, pieces, bounds, JUMP_PIECE)
    write_32(image, at - 4, index[entry_of(state, keys, pc), FRAGMENT] - at)
    state[BYTES] += at - state[COLD]
    state[COLD] = at
    landed(state, pc, begin, False, keys, index, landings)


@kernel
def publish(words, patches, count):
    """Let branches lead where their patches say, while threads run."""
    for i in range(count):
        words[patches[i, 0] >> 2] = patches[i, 1] - patches[i, 0] - 4  # one store


@kernel
def _lead(state, image, field, destination):
    """Write the displacement at an index, where no thread runs, so that it leads to an address."""
    distance = destination - (state[BASE] + field + 4)
    if distance < -_REACH or distance >= _REACH:
        hop = state[COLD] + 7 & -8
        write_64(image, hop, np.int64(_FAR_JUMP))
        write_64(image, hop + 8, destination)
        state[BYTES] += hop + 16 - state[COLD]
        state[COLD] = hop + 16
        distance = hop - field - 4
    write_32(image, field, distance)


@kernel
def enter(state, image, words, table, tails, miss, landings, count, otherwise, elsewhere):
    """Enter the first `count` landings, but for those that have been entered. Each is (offset of what lands,
    offset in the cache, whether it is being branched to), and goes on over the displacement `otherwise` bytes
    behind. `words` are the 64-bit words of the image, `table` the lookup table, `tails` the last landing's
    displacement of each entry (addresses, 0: none). Returns how many displacements of other caches are to
    lead to a landing by now: `elsewhere` has them, and the addresses of the landings."""
    n, size = state[ELSEWHERE], len(image)
    for i in range(state[ENTERED], count):
        entry = state[MODULE] + landings[i, 0] & _ENTRIES
        at, likely = landings[i, 1], landings[i, 2]
        field, tail = at + otherwise, tails[entry]
        # (Nothing leads to a landing before its own way on is written.)
        _lead(state, image, field, np.int64(table[entry]) if likely else miss)
        if likely or tail == 0:
            table[entry] = state[BASE] + at
        else:
            there = tail - state[BASE]
            if there >= 0 and there < size:
                shift = np.uint64(8 * (there & 7))
                value = np.uint64(at - there - 4 & 0xFFFF_FFFF) << shift
                mask = np.uint64(0xFFFF_FFFF) << shift
                words[there >> 3] = words[there >> 3] & ~mask | value  # one store: threads run there
            else:
                elsewhere[n, 0], elsewhere[n, 1] = tail, state[BASE] + at
                n += 1
        if not likely or tail == 0:
            tails[entry] = state[BASE] + field
    state[ENTERED], state[ELSEWHERE] = max(count, state[ENTERED]), n
    return n
