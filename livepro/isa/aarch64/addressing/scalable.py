"""The memory accesses of SVE, by capstone's text of them.

How many lanes a vector has is the thread's own; an access has places for those of the longest vectors
that processors have (512 bits), of which the rest are never active.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from livepro.errors import LiveproError
from livepro.isa.aarch64 import vectors
from livepro.isa.access import ALL_64, READ, WRITE, Access, MachineState, Pattern

LONGEST: Final = 64
"""Bytes of the longest vector that is recorded."""

_BYTES: Final = {"b": 1, "h": 2, "w": 4, "d": 8, "s": 4, "q": 16}
_NAME: Final = re.compile(
    r"(?P<way>ld|st)(?P<hint>nt)?(?P<registers>[1-4])(?P<same>r[qo]?)?s?(?P<element>[bhwd])"
)
_LIST: Final = r"\{(?P<list>z\d+\.[bhsdq](?:(?:, | - )z\d+\.[bhsdq])*)\}"
_TEXT: Final = re.compile(_LIST + r", p(?P<predicate>\d+)(?:/z)?, \[(?P<address>[^]]*)\]")
_WHOLE: Final = re.compile(r"(?P<kind>[zp])\d+, \[(?P<address>[^]]*)\]")
_BASE: Final = re.compile(r"x(\d+)|(sp)")
_LANES: Final = re.compile(r"z(\d+)\.([sd])")
_SHIFT: Final = re.compile(r"(?:(lsl|[us]xtw)(?: #(\d+))?)")
_SP: Final = 31


class Place(NamedTuple):
    """Where an access of scalable vectors is: base + offset + `vectors` times what a vector takes in memory
    (`unit` bytes for each byte of it, as a fraction) + (scaled << shift). `base` and `scaled` are general
    registers (-1: none; 31: SP), `lanes` the vector register (-1: none) of which each lane of `lane` bytes is
    added, `extend` says how ("", "uxtw", "sxtw"). `predicate` chooses lanes of `lane` bytes (-1: all), of
    which there are no more than `most` (0: as many as a vector has)."""

    predicate: int
    lane: int
    base: int
    offset: int = 0
    vectors: int = 0
    unit: tuple[int, int] = (1, 1)
    scaled: int = -1
    shift: int = 0
    lanes: int = -1
    extend: str = ""
    most: int = 0


def accesses(mnemonic: str, text: str) -> tuple[Access, ...] | None:
    """What an instruction that accesses memory does; None for one that is not known here: first-faulting
    loads among them, of which only the processor knows how far they got."""
    whole = _WHOLE.fullmatch(text)
    if mnemonic in ("ldr", "str") and whole is not None:
        kind = READ if mnemonic == "ldr" else WRITE
        unit = (1, 1) if whole["kind"] == "z" else (1, 8)
        place = _place(whole["address"], Place(-1, 0, -1, unit=unit))
        return None if place is None else (Access(Pattern.SIZED, 0, kind, 0, place),)
    name, operands = _NAME.fullmatch(mnemonic), _TEXT.fullmatch(text)
    if name is None or operands is None:
        return None
    kind = READ if name["way"] == "ld" else WRITE
    size, lane = _BYTES[name["element"]], _BYTES[operands["list"].rpartition(".")[2]]
    many = int(name["registers"])
    place = _place(operands["address"], Place(int(operands["predicate"]), lane, -1, unit=(size, lane)))
    if place is None:
        return None
    if place.lanes >= 0:
        return (Access(Pattern.LANES, size, kind, LONGEST // lane, place),)
    if name["same"] == "r":  # one element for all lanes: read unless none is active
        return (Access(Pattern.LANES, size, kind, 1, place),)
    if name["same"]:  # the first 16 or 32 bytes for all
        place = place._replace(most=(16 if name["same"] == "rq" else 32) // lane)
    return (Access(Pattern.MASKED, many * size, kind, place.most or LONGEST // lane, place),)


def _place(address: str, place: Place) -> Place | None:
    """With what the operand in brackets says."""
    first, *rest = address.split(", ")
    base, lanes = _BASE.fullmatch(first), _LANES.fullmatch(first)
    if base is not None:
        place = place._replace(base=_SP if base[2] else int(base[1]))
    elif lanes is not None:
        place = place._replace(lanes=int(lanes[1]))
    else:
        return None
    if rest and rest[-1] == "mul vl":
        return place._replace(vectors=int(rest[0].lstrip("#"), 0))
    for part in rest:
        shift = _SHIFT.fullmatch(part)
        if part.startswith("#"):
            place = place._replace(offset=int(part[1:], 0))
        elif (lanes := _LANES.fullmatch(part)) is not None:
            place = place._replace(lanes=int(lanes[1]))
        elif (index := _BASE.fullmatch(part)) is not None and index[1]:
            place = place._replace(scaled=int(index[1]))
        elif shift is not None:
            extend = "" if shift[1] == "lsl" else shift[1]
            place = place._replace(shift=int(shift[2] or 0), extend=extend)
        elif part != "xzr":
            return None
    return place


# -- addresses


def words(access: Access, machine: MachineState) -> list[int]:
    """The words of an access that is about to be made. Raises LiveproError where vectors are longer than can
    be recorded."""
    place: Place = access.where
    try:
        state = machine.vectors()
    except OSError:  # a processor without: the instruction is none
        state = bytes(16)
    length = vectors.length(state)
    if length > LONGEST:
        raise LiveproError(f"Accesses of vectors of {8 * length} bits cannot be recorded.")
    at = _base(place, length, machine.general)
    if access.pattern is Pattern.SIZED:
        return [at, length * place.unit[0] // place.unit[1]]
    mask = _active(place, length, state)
    if access.pattern is Pattern.MASKED:
        return [at, mask]
    if place.lanes < 0:
        return [int(mask != 0), at]
    data = vectors.vector(state, place.lanes).ljust(LONGEST, b"\0")
    return [mask, *(at + _offset(place, data, lane) & ALL_64 for lane in range(access.lanes))]


def _base(place: Place, length: int, general: Any) -> int:
    """The address, but for what each lane adds."""
    at = place.offset + place.vectors * (length * place.unit[0] // place.unit[1])
    if place.base >= 0:
        at += int(general.sp if place.base == _SP else getattr(general, f"x{place.base}"))
    if place.scaled >= 0:
        at += int(getattr(general, f"x{place.scaled}")) << (place.shift if place.lanes < 0 else 0)
    return at & ALL_64


def _active(place: Place, length: int, state: bytes) -> int:
    """A bit for each active lane."""
    predicate = vectors.predicate(state, place.predicate)
    lanes = min(place.most or length, length // place.lane)
    return sum((predicate >> lane * place.lane & 1) << lane for lane in range(lanes))


def _offset(place: Place, data: bytes, lane: int) -> int:
    """What a lane of the vector adds."""
    at = lane * place.lane
    value = int.from_bytes(data[at : at + place.lane], "little")
    if place.extend:
        value &= 0xFFFF_FFFF
        if place.extend == "sxtw" and value >> 31:
            value -= 1 << 32
    return value << place.shift
