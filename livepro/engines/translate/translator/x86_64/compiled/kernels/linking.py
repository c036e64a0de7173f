"""Ways into fragments: direct branches and landings, in code that nothing leads to yet."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.x86_64.compiled.kernels import kernel
from livepro.engines.translate.translator.x86_64.compiled.kernels.emitting import pad
from livepro.engines.translate.translator.x86_64.compiled.kernels.index import entry_of
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import put, write_32, write_64
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    BYTES,
    COLD,
    FRAGMENT,
    JUMP_PIECE,
    LANDED,
    LANDING,
    LANDINGS,
    LINK,
    LINKS,
    MODULE,
    SIZE,
    STUB,
    STUB_SIZE,
    STUBS,
    SUCCESSORS,
)

_STOP = 0xCC  # int3


@kernel
def link(state, image, field, target, keys, index, links, stubs, successors):
    """Let the branch whose displacement is at `field`, in code that nothing leads to yet, lead to the
    module's offset `target`."""
    at = entry_of(state, keys, target)
    n = state[LINKS]
    links[n, 0], links[n, 1], links[n, 2] = field, target, index[at, LINK]
    state[LINKS] = n + 1
    inside = target >= 0 and target < state[SIZE]
    if inside:
        index[at, LINK] = n + 1
        if index[at, FRAGMENT]:
            write_32(image, field, index[at, FRAGMENT] - field - 4)
            return
        if state[SUCCESSORS] < len(successors):
            successors[state[SUCCESSORS]] = target
            state[SUCCESSORS] += 1
    stub = index[at, STUB]
    if not stub:
        stub = state[COLD]
        state[COLD] += STUB_SIZE
        image[stub] = _STOP
        write_32(image, stub + 1, target)
        state[BYTES] += STUB_SIZE
        index[at, STUB] = stub
        n = state[STUBS]
        stubs[n, 0], stubs[n, 1] = target, stub
        state[STUBS] = n + 1
    write_32(image, field, stub - field - 4)


@kernel
def landed(state, pc, at, likely, keys, index, landings):
    """Take note of a landing for `pc`, which is at `at`."""
    n = state[LANDINGS]
    landings[n, 0], landings[n, 1], landings[n, 2] = pc, at, 1 if likely else 0
    state[LANDINGS] = n + 1
    index[entry_of(state, keys, pc), LANDED] = at


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
