"""Which way an AArch64 instruction accesses memory, from its encoding.

Titles in quotes are those of the tables in the Arm ARM (DDI 0487), C4.1
"Loads and Stores". A compare-and-swap and a store-exclusive count as writes
whether or not they succeed; prefetches touch nothing. An allocation tag is
memory too.
"""

from __future__ import annotations

from typing import Final

Access = tuple[bool, bool]
"""Whether an instruction reads and whether it writes memory."""

NONE: Final[Access] = (False, False)
READ: Final[Access] = (True, False)
WRITE: Final[Access] = (False, True)
BOTH: Final[Access] = (True, True)

_LOAD_BIT: Final = 1 << 22

_ZEROING: Final = frozenset((0xD50B7420, 0xD50B7460, 0xD50B7480))
"""DC ZVA, DC GVA, DC GZVA without their register: they write a whole block of memory or tags."""


def is_load_store(word: int) -> bool:
    """Whether `word` is in the space "Loads and Stores" (op0 = x1x0)."""
    return word & 0x0A000000 == 0x08000000


def memory_access(word: int, prefetch: bool = False) -> Access:
    """How the instruction `word` accesses memory.

    `prefetch` says that its name is one of the SVE prefetches, which share the
    encoding space of SVE's gather loads.
    """
    if is_load_store(word):
        return _LOADS_AND_STORES[word >> 28 & 3](word)
    if word & 0x1E000000 == 0x04000000 and word >> 31:  # SVE memory, by bits 31:29
        return NONE if prefetch else WRITE if word >> 29 == 7 else READ
    if word & 0x9E000000 == 0x80000000:
        return _sme(word)
    return WRITE if word & ~0x1F in _ZEROING else NONE


def _by_load_bit(word: int) -> Access:
    return READ if word & _LOAD_BIT else WRITE


def _exclusive_and_structures(word: int) -> Access:
    """Bits 29:28 = 00: "Advanced SIMD load/store structures", exclusives, ordered, compare and swap."""
    vector, ordered, pair = word >> 26 & 1, word >> 23 & 1, word >> 21 & 1
    if not vector and pair and (ordered or not word >> 31):
        return BOTH  # CAS; CASP, which has the encodings of 32-bit exclusive pairs
    return _by_load_bit(word)


def _literal_and_rest(word: int) -> Access:
    """Bits 29:28 = 01: "Load register (literal)", memory copy and set, tags, RCpc, RCW."""
    size, opc, low = word >> 30, word >> 22 & 3, word >> 10 & 3
    vector = word >> 26 & 1
    if not word >> 24 & 1:
        return NONE if size == 3 and not vector else READ  # PRFM (literal)
    if word >> 21 & 1:
        if size < 2:
            return BOTH  # "RCW compare and swap", unprivileged atomics
        return READ if low == 0 and opc in (1, 3) else WRITE  # LDG, LDGM; STG and family
    if low == 1:  # "Memory Copy and Memory Set"
        return WRITE if opc == 3 else BOTH
    if low == 0:  # "LDAPR/STLR (unscaled immediate)"
        return READ if opc else WRITE
    if low == 2:  # LDIAPP, STILP, LDAPR and STLR with writeback; SIMD LDAPUR, STLUR
        return _by_load_bit(word)
    return WRITE  # GCSSTR, GCSSTTR


def _pair(word: int) -> Access:
    """Bits 29:28 = 10: "Load/store register pair" in all its addressing modes."""
    return _by_load_bit(word)


def _register(word: int) -> Access:
    """Bits 29:28 = 11: "Load/store register" in all its addressing modes, "Atomic memory operations"."""
    low = word >> 10 & 3
    if not word >> 24 & 1 and word >> 21 & 1:
        if low == 0:
            return _atomic(word)
        if low != 2:
            return READ  # LDRAA, LDRAB
    size, opc = word >> 30, word >> 22 & 3
    if word >> 26 & 1:
        return _by_load_bit(word)
    if size == 3 and opc >= 2:
        return NONE  # PRFM, PRFUM, RPRFM
    return READ if opc else WRITE


def _atomic(word: int) -> Access:
    """ "Atomic memory operations": all read and write but LDAPR and the 64-byte accesses."""
    if word >> 26 & 1 or not word >> 15 & 1:
        return BOTH
    opc = word >> 12 & 7
    if opc == 4:
        return READ  # LDAPR
    if word >> 30 == 3 and not word >> 22 & 3:
        return {5: READ, 1: WRITE, 2: WRITE, 3: WRITE}.get(opc, BOTH)  # LD64B, ST64B, ST64BV0, ST64BV
    return BOTH


def _sme(word: int) -> Access:
    """SME: "SME Memory" is 1110000; SME2's multi-vector loads and stores are 1010000 with
    bit 23 clear. Bit 21 tells stores from loads in both."""
    if word >> 25 == 0b1110000 or (word >> 25 == 0b1010000 and not word >> 23 & 1):
        return WRITE if word >> 21 & 1 else READ
    return NONE


_LOADS_AND_STORES: Final = (_exclusive_and_structures, _literal_and_rest, _pair, _register)
