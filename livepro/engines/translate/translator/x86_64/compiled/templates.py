"""The pieces of code that fragments are put together from, written by `encode` once."""

from __future__ import annotations

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Landing
from livepro.engines.translate.translator.x86_64 import counter, encode
from livepro.engines.translate.translator.x86_64.compiled.tables import MANY
from livepro.engines.translate.translator.x86_64.counter import (
    LOAD_RAX,
    LOAD_RCX,
    SAVE_RAX,
    SAVE_RCX,
    allowed,
    asking,
)
from livepro.engines.translate.translator.x86_64.emitter import NOPS, SAVE_BELOW_STACK
from livepro.engines.translate.translator.x86_64.events.encodings import IS_FULL
from livepro.engines.translate.translator.x86_64.events.entries import ACCESS
from livepro.engines.translate.translator.x86_64.events.entries import FULL as STOP
from livepro.engines.translate.translator.x86_64.events.recording import CHECK_FULL
from livepro.engines.translate.translator.x86_64.events.recording import IS_FULL as SEE_FULL
from livepro.engines.translate.translator.x86_64.events.slow_paths import (
    GIVE_FLAGS_BACK,
    HOLD_FLAGS,
    RELEASE_FLAGS,
    SAVE_FLAGS,
    call,
)

_NO_ADDING = (4, 12)  # lea cannot use rsp and r12 as they are


def _add_one(register: int) -> bytes:
    if register in _NO_ADDING:
        return b""
    return encode.load_area(register, 0) + encode.lea_increment(register, 1) + encode.store_area(register, 0)


def pieces(lookup: bytes, landing: Landing) -> tuple[np.ndarray, np.ndarray]:
    """All pieces behind each other (uint8), and where each begins and ends (int64), in the order of
    `tables`; `lookup` is what looks rax up, `landing` any landing."""
    parts = [
        *(SAVE_RAX, SAVE_RCX, LOAD_RAX, LOAD_RCX, encode.increment_area(0), encode.POP_RAX),
        *(encode.adjust_rsp(0), encode.LOAD_RCX_BELOW_STACK + SAVE_BELOW_STACK),
        *(encode.push_immediate(0), encode.push_at(0), encode.store_area_immediate(layout.SITE, 0), lookup),
        *(landing.code, encode.jump(0)),
        *map(_add_one, range(16)),
        CHECK_FULL,
        *(allowed(0).code, asking(0)[0]),
        *(SAVE_FLAGS, GIVE_FLAGS_BACK, HOLD_FLAGS, RELEASE_FLAGS, call(ACCESS), call(STOP), IS_FULL),
        SEE_FULL,
        *(counter.SAVE_FLAGS, counter.GIVE_FLAGS_BACK),
        *(encode.subtract_area(layout.BUDGET, 0), encode.subtract_area(layout.BUDGET, MANY)),
        encode.JUMP_INTO_NOP + encode.STOP_IN_NOP,
        *(encode.compare(1 << power, 0, 0) for power in range(4)),
        *NOPS,
    ]
    bounds = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), bounds
