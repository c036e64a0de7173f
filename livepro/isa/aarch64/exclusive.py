"""Load-exclusive to store-exclusive: code that no trap may interrupt.

Taking an exception, and returning from it, clears the local exclusive monitor
(Arm ARM B2.12.1, B2.12.5), so that a store-exclusive with a stop between it and its
load always fails, and the program tries again for ever.
"""

from __future__ import annotations

from typing import Final

from livepro.isa.aarch64.decoder import decode_word
from livepro.isa.base import ExclusiveSequence
from livepro.model import Flow

LONGEST: Final = 16
"""Instructions behind the load-exclusive among which its store must be. The architecture promises
progress to at most 128 bytes (B2.12.5), compilers and libraries need less than half of it."""


def exclusive_sequence(code: bytes, address: int) -> ExclusiveSequence | None:
    """The sequence that begins at `address`; None where calls, jumps or too much code come
    before a store-exclusive."""
    branches: list[tuple[int, int]] = []
    for index in range(1, min(len(code) // 4, LONGEST + 1)):
        word = int.from_bytes(code[4 * index : 4 * index + 4], "little")
        here = address + 4 * index
        if stores_exclusive(word):
            return ExclusiveSequence(tuple(range(address, here + 1, 4)), here + 4, tuple(branches))
        flow, distance = decode_word(word)
        if flow is Flow.BRANCH and distance is not None:
            branches.append((here, here + distance))
        elif flow is not Flow.NEXT:
            return None
    return None


def stores_exclusive(word: int) -> bool:
    """ "Load/store exclusive register" and "... pair": STXR and family. Bits 29:25 are 00100,
    bits 23 and 22 (load) clear; with bit 21 set the pair needs bit 31, for CASP has it clear."""
    return word & 0x3EC00000 == 0x08000000 and (word & 0x00200000 == 0 or word >> 31 == 1)
