"""The memory accesses of AArch64 instructions: the encoding says what they touch, registers where.

Titles in quotes are those of the tables in the Arm ARM (DDI 0487), C4.1 "Loads and Stores". What lies side
by side is one access, of a pair or of a structure, too. A store-exclusive and a comparison and swap write
whether or not they succeed; a tag is accessed where the 16 bytes are that it is of. Prefetches touch nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

from livepro.errors import LiveproError
from livepro.isa.aarch64.addressing import scalable
from livepro.isa.aarch64.addressing.zeroing import block_size
from livepro.isa.aarch64.encoding import signed
from livepro.isa.aarch64.encoding.memory import NONE, is_load_store, memory_access
from livepro.isa.aarch64.form import text_of
from livepro.isa.access import ALL_64, MODIFY, READ, WRITE, Access, MachineState, Pattern

_SP: Final = 31
_NONE: Final = -1
GRANULE: Final = 16
"""Bytes that an allocation tag is of (Arm ARM D10.1)."""

_UNTAGGED: Final = (1 << 56) - 1
"""Linux lets programs use the top byte of an address for themselves: it is not part of it
(Documentation/arch/arm64/tagged-pointers.rst)."""

_UNSIGNED: Final = (1 << 48) - 1
"""What is left of an address with an authentication code, but for programs that ask for addresses beyond 48
bits (Documentation/arch/arm64/pointer-authentication.rst)."""


class Operand(NamedTuple):
    """The address base + offset + (scaled << shift), `align`ed down. `base` is the number of a register, 31
    for SP (-1: none, `offset` is the address); `scaled` one, X or W as `extend`, the encoding's option,
    says. `mask` says which bits of it all are the address's."""

    base: int
    offset: int = 0
    scaled: int = _NONE
    extend: int = 3
    shift: int = 0
    align: int = 1
    mask: int = _UNTAGGED


def _one(word: int, size: int, where: Operand) -> tuple[Access, ...]:
    reads, writes = memory_access(word)
    kind = MODIFY if reads and writes else READ if reads else WRITE
    return (Access(Pattern.ONE, size, kind, 0, where),)


def _base(word: int) -> int:
    return word >> 5 & 31


def _at_base(word: int) -> Operand:
    return Operand(_base(word))


def accesses(code: bytes, address: int) -> tuple[Access, ...]:
    """See `livepro.isa.base.Isa`. Raises LiveproError for one whose accesses are not known here."""
    word = int.from_bytes(code[:4], "little")
    if len(code) < 4:
        return ()
    return _literal(word, address) if word & 0x3B000000 == 0x18000000 else _anywhere(word)


@cache
def _anywhere(word: int) -> tuple[Access, ...]:
    """The accesses of a word that are the same wherever it stands."""
    if is_load_store(word):
        if memory_access(word) == NONE:
            return ()
        found = _LOADS_AND_STORES[word >> 28 & 3](word)
    else:
        mnemonic, text = text_of(word.to_bytes(4, "little"), 0)
        access = memory_access(word, prefetch=mnemonic.startswith("prf"))
        if access == NONE:
            return ()
        if word >> 24 == 0xD5:  # DC ZVA, GVA, GZVA: the block that the address is in
            return (Access(Pattern.SIZED, 0, WRITE, 0, Operand(word & 31)),)
        found = scalable.accesses(mnemonic, text)
    if found is None:
        mnemonic, text = text_of(word.to_bytes(4, "little"), 0)
        if not mnemonic:
            return ()
        raise LiveproError(
            f"The memory accesses of the instruction `{mnemonic} {text}` cannot be recorded.",
            "Count without analyses of the event stream: counts need no addresses.",
        )
    return found


def _literal(word: int, address: int) -> tuple[Access, ...]:
    """ "Load register (literal)"."""
    size, vector = word >> 30, word >> 26 & 1
    if size == 3:
        return ()  # PRFM
    where = Operand(_NONE, address + signed(word >> 5, 19) * 4 & ALL_64)
    return _one(word, (4, 8, 16)[size] if vector else (4, 8, 4)[size], where)


def _exclusive_and_structures(word: int) -> tuple[Access, ...] | None:
    """Bits 29:28 = 00."""
    size, pair = word >> 30, word >> 21 & 1
    if word >> 26 & 1:
        return _structures(word)
    if word >> 24 & 1:
        return None
    if not pair:
        return _one(word, 1 << size, _at_base(word))  # STXR, LDXR, STLR, LDAR and families
    if word >> 23 & 1:
        return _one(word, 1 << size, _at_base(word))  # CAS and family
    return _one(word, 16 if size & 1 else 8, _at_base(word))  # STXP, LDXP; CASP


_REGISTERS: Final = {0b0000: 4, 0b0010: 4, 0b0100: 3, 0b0110: 3, 0b0111: 1, 0b1000: 2, 0b1010: 2}
"""Vectors of "Advanced SIMD load/store multiple structures", by opcode."""


def _structures(word: int) -> tuple[Access, ...] | None:
    """ "Advanced SIMD load/store ... structures", also post-indexed."""
    if word >> 31 or word >> 29 & 1:
        return None
    if not word >> 24 & 1:
        registers = _REGISTERS.get(word >> 12 & 15)
        if registers is None:
            return None
        return _one(word, registers * (16 if word >> 30 & 1 else 8), _at_base(word))
    opcode, size = word >> 13 & 7, word >> 10 & 3
    elements = ((opcode & 1) << 1 | word >> 21 & 1) + 1
    scale = opcode >> 1
    if scale == 3:
        scale = size  # LD1R and family
    elif scale == 2 and size & 1:
        scale = 3
    return _one(word, elements << scale, _at_base(word))


def _literal_and_rest(word: int) -> tuple[Access, ...] | None:
    """Bits 29:28 = 01, but for literals."""
    size, opc, low = word >> 30, word >> 22 & 3, word >> 10 & 3
    offset = signed(word >> 12, 9)
    if not word >> 24 & 1:
        return None
    if word >> 21 & 1:
        if size == 3:
            return _tags(word, opc, low, offset)
        return None if size else _one(word, 16, _at_base(word))  # LDCLRP, LDSETP, SWPP
    if word >> 26 & 1:  # SIMD LDAPUR, STLUR
        if low != 2 or (opc >> 1 and size):
            return None
        return _one(word, 16 if opc >> 1 else 1 << size, Operand(_base(word), offset))
    if low == 0:  # "LDAPR/STLR (unscaled immediate)"
        return _one(word, 1 << size, Operand(_base(word), offset))
    return None  # "Memory Copy and Memory Set"; LDIAPP, STILP; GCSSTR


def _tags(word: int, opc: int, low: int, offset: int) -> tuple[Access, ...] | None:
    """ "Load/store memory tags": the granules that the tags are of."""
    if low == 0 and opc != 1:
        return None  # LDGM, STGM, STZGM: not for programs
    size = 2 * GRANULE if opc >> 1 and low else GRANULE
    where = Operand(_base(word), 0 if low == 1 else offset * GRANULE, align=GRANULE)
    return _one(word, size, where)


def _pair(word: int) -> tuple[Access, ...] | None:
    """Bits 29:28 = 10: "Load/store register pair"."""
    opc, vector, mode = word >> 30, word >> 26 & 1, word >> 23 & 3
    if opc == 3:
        return None
    loads = word >> 22 & 1
    size = 4 << opc if vector else (4, 4, 8)[opc]
    if not vector and opc == 1:
        if mode == 0:
            return None
        if not loads:  # STGP: its offset is in granules
            offset = 0 if mode == 1 else signed(word >> 15, 7) * GRANULE
            return _one(word, GRANULE, Operand(_base(word), offset))
    offset = 0 if mode == 1 else signed(word >> 15, 7) * size
    return _one(word, 2 * size, Operand(_base(word), offset))


def _register(word: int) -> tuple[Access, ...] | None:
    """Bits 29:28 = 11: "Load/store register", "Atomic memory operations"."""
    size, vector, opc, low = word >> 30, word >> 26 & 1, word >> 22 & 3, word >> 10 & 3
    unsigned = word >> 24 & 1
    if not unsigned and word >> 21 & 1:
        if low == 0:
            return _atomic(word)
        if low != 2:  # LDRAA, LDRAB
            if size != 3 or vector:
                return None
            offset = signed((word >> 22 & 1) << 9 | word >> 12 & 0x1FF, 10) * 8
            return _one(word, 8, Operand(_base(word), offset, mask=_UNSIGNED))
    if vector:
        if opc >> 1:
            if size:
                return None
            size = 4
    elif opc == 3 and size >= 2:
        return None
    if unsigned:
        where = Operand(_base(word), (word >> 10 & 0xFFF) << size)
    elif word >> 21 & 1:
        option = word >> 13 & 7
        if not option & 2:
            return None
        shift = size if word >> 12 & 1 else 0
        where = Operand(_base(word), 0, word >> 16 & 31, option, shift)
    elif vector and low == 2:
        return None
    else:
        where = Operand(_base(word), 0 if low == 1 else signed(word >> 12, 9))
    return _one(word, 1 << size, where)


def _atomic(word: int) -> tuple[Access, ...] | None:
    """ "Atomic memory operations"."""
    size, plain, opc = word >> 30, not word >> 15 & 1, word >> 12 & 7
    if word >> 26 & 1:
        return None
    if plain or opc in (0, 4):  # with bit 15: SWP, LDAPR
        return _one(word, 1 << size, _at_base(word))
    if size == 3 and not word >> 22 & 3 and opc in (1, 2, 3, 5):  # LD64B, ST64B and family
        return _one(word, 64, _at_base(word))
    return None


_LOADS_AND_STORES: Final = (_exclusive_and_structures, _literal_and_rest, _pair, _register)


# -- addresses


def _value(register: int, general: Any) -> int:
    return int(general.sp if register == _SP else getattr(general, f"x{register}"))


def _extended(where: Operand, general: Any) -> int:
    """What the scaled register adds: UXTW, LSL, SXTW or SXTX by its option, and shifted."""
    if where.scaled == _NONE or where.scaled == 31:  # XZR
        return 0
    value = _value(where.scaled, general)
    if not where.extend & 1:
        value &= 0xFFFF_FFFF
        if where.extend & 4 and value >> 31:
            value -= 1 << 32
    return value << where.shift


def address_of(where: Operand, general: Any) -> int:
    """The address of an operand, given the general registers before the instruction."""
    if where.base == _NONE:
        return where.offset
    at = _value(where.base, general) + where.offset + _extended(where, general)
    return at & where.mask & -where.align


def words_before(access: Access, machine: MachineState) -> list[int]:
    """See `livepro.isa.base.Isa`."""
    where = access.where
    if not isinstance(where, Operand):
        return scalable.words(access, machine)
    if access.pattern is Pattern.ONE:
        return [address_of(where, machine.general)]
    size = block_size()  # DC ZVA; its register 31 is XZR
    at = 0 if where.base == _SP else _value(where.base, machine.general)
    return [at & _UNTAGGED & -size, size]
