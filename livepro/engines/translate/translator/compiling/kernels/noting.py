"""What becomes of blocks, taken note of in the arrays of a module, whatever the instruction set."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.kernels.index import entry_of
from livepro.engines.translate.translator.compiling.tables import (
    AGAIN,
    FRAGMENT,
    LANDED,
    LANDINGS,
    LEFT,
    LINK,
    LINKS,
    PATCHES,
    PC,
    PYTHON,
    RETURNS,
    SIZE,
    START,
    STUB,
    STUBS,
    SUCCESSORS,
    WAIT,
)


@kernel
def note_link(state, keys, index, links, successors, field, target):
    """A branch is to lead to the module's offset `target`, which is likely to follow if it has no fragment.
    Returns its entry."""
    at = entry_of(state, keys, target)
    n = state[LINKS]
    links[n, 0], links[n, 1], links[n, 2] = field, target, index[at, LINK]
    state[LINKS] = n + 1
    if target >= 0 and target < state[SIZE]:
        index[at, LINK] = n + 1
        if not index[at, FRAGMENT] and state[SUCCESSORS] < len(successors):
            successors[state[SUCCESSORS]] = target
            state[SUCCESSORS] += 1
    return at


@kernel
def note_stub(state, index, stubs, at, target, stub):
    """There is a stub for an entry's offset."""
    index[at, STUB] = stub
    n = state[STUBS]
    stubs[n, 0], stubs[n, 1] = target, stub
    state[STUBS] = n + 1


@kernel
def landed(state, pc, at, likely, keys, index, landings):
    """There is a landing for `pc`, which is at `at`."""
    n = state[LANDINGS]
    landings[n, 0], landings[n, 1], landings[n, 2] = pc, at, 1 if likely else 0
    state[LANDINGS] = n + 1
    index[entry_of(state, keys, pc), LANDED] = at


@kernel
def note_return(state, keys, index, returns, offset):
    """Code returns to an offset, if that is in the module: it is likely to follow."""
    inside = offset >= 0 and offset < state[SIZE] and state[RETURNS] < len(returns)
    if inside and not index[entry_of(state, keys, offset), LANDED]:
        returns[state[RETURNS]] = offset
        state[RETURNS] += 1


@kernel
def note_patches(state, keys, index, links, made, patches, first, end):
    """All branches that wait for the blocks of some rows are to lead there, once those may be reached."""
    for row in range(first, end):
        follow = index[entry_of(state, keys, made[row, PC]), LINK]
        while follow:
            n = state[PATCHES]
            patches[n, 0], patches[n, 1] = links[follow - 1, 0], made[row, START]
            state[PATCHES] = n + 1
            follow = links[follow - 1, 2]


@kernel
def put_off(state, came, pc, lands, again, left):
    """What came of a block that was likely to follow: it may have to wait, or be left to Python."""
    if came == WAIT and state[AGAIN] < len(again):
        n = state[AGAIN]
        again[n, 0], again[n, 1] = pc, 1 if lands else 0
        state[AGAIN] = n + 1
    elif came == PYTHON and state[LEFT] < len(left):
        left[state[LEFT]] = pc
        state[LEFT] += 1


@kernel
def keep_rest(state, successors, first):
    """The successors before the first one have been seen to."""
    for i in range(first, state[SUCCESSORS]):
        successors[i - first] = successors[i]
    state[SUCCESSORS] -= first
