"""Ways into fragments: direct branches and landings, in code that nothing leads to yet."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.aarch64.compiled.kernels.writing import (
    branch,
    branch_if_zero,
    constant,
    lead,
    put,
    subtract,
)
from livepro.engines.translate.translator.aarch64.compiled.tables import STUB_SIZE
from livepro.engines.translate.translator.aarch64.counter import LOAD_PAIR
from livepro.engines.translate.translator.aarch64.encode import X0, X1
from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.kernels.index import entry_of
from livepro.engines.translate.translator.compiling.kernels.noting import landed, note_link, note_stub
from livepro.engines.translate.translator.compiling.tables import (
    BYTES,
    COLD,
    FRAGMENT,
    MODULE,
    SIZE,
    STUB,
)

_BRK, _B = encode.BRK, encode.B


@kernel
def link(state, image, field, target, keys, index, links, stubs, successors):
    """Let the branch at `field`, in code that nothing leads to yet, lead to the module's offset `target`."""
    at = note_link(state, keys, index, links, successors, field, target)
    if index[at, FRAGMENT] and target >= 0 and target < state[SIZE]:
        lead(image, field, index[at, FRAGMENT])
        return
    stub = index[at, STUB]
    if not stub:
        stub = state[COLD]
        state[COLD] = put(image, stub, _BRK)
        state[BYTES] += STUB_SIZE
        note_stub(state, index, stubs, at, target, stub)
    lead(image, field, stub)


@kernel
def put_landing(state, image, at, pc):
    """Write what the lookup table leads to for an offset: goes on behind itself if x0 is that, giving back x0
    and x1, else elsewhere."""
    at = constant(image, at, X1, state[MODULE] + pc)
    at = put(image, at, subtract(X1, X0, X1))
    at = put(image, at, branch_if_zero(X1, 8))
    at = put(image, at, _B)
    return put(image, at, LOAD_PAIR)


@kernel
def land(state, image, pc, keys, index, landings):
    """Make a landing for `pc`, which has a fragment."""
    begin = state[COLD] + 15 & -16
    field = put_landing(state, image, begin, pc)
    lead(image, field, index[entry_of(state, keys, pc), FRAGMENT])
    state[BYTES] += field + 4 - state[COLD]
    state[COLD] = field + 4
    landed(state, pc, begin, False, keys, index, landings)


@kernel
def publish(words, patches, count):
    """Let branches lead where their patches say, while threads run."""
    for i in range(count):
        words[patches[i, 0] >> 2] = branch(patches[i, 1] - patches[i, 0])  # one store
