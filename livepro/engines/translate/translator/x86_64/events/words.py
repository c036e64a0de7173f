"""Emits what writes down accesses that are no single plain one: the words that tell them, behind the lines of
data; or, under a mask, how many they are, and those of them that miss."""

from __future__ import annotations

from typing import NamedTuple

from livepro.engines.stream.filtering import BYTES_SHIFT, HITS, TAG_SHIFT, Lines
from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.addressing import (
    Mask,
    Place,
    add_registers,
    compute,
    move_mask,
    others,
    read_fs,
)
from livepro.engines.translate.translator.x86_64.events.encodings import (
    IF_ABOVE,
    IF_ZERO,
    add_place,
    and_32,
    compare_byte,
    first_run,
    last_one,
    load_first,
    lowest,
    or_immediate,
    or_registers,
    runs_of,
    shift_left,
    test,
)
from livepro.engines.translate.translator.x86_64.events.entries import ACCESS, CLEAR, WORD
from livepro.engines.translate.translator.x86_64.events.slow_paths import (
    GIVE_FLAGS_BACK,
    SAVE_FLAGS,
    Paths,
    call,
    give_back,
    load_execution,
    save,
)
from livepro.isa.access import Access, Pattern

Words = list[Place | Mask]
"""Words to be written one behind the other."""


class Told(NamedTuple):
    """The block that entries are of: its number, the cell that counts it, and its slow paths."""

    number: int
    cell: int
    paths: Paths


def write(emitted: Emitted, told: Told, words: Words, *, first: bool) -> None:
    """Write words, whatever they are (the `first` ones of an instruction); flags are left alone."""
    out, paths = emitted.code, told.paths
    needed = 0
    for what in words:
        needed |= what.registers if isinstance(what, Place) else 0
    scratch, other = borrowed(needed, len(out))
    out += encode.jump(0)
    code = paths.code
    paths.enters.append((len(out) - 4, len(code)))
    code += save(scratch) + save(other)
    _put(emitted, told, words, scratch, other, first=first)
    code += give_back(scratch) + give_back(other) + encode.jump(0)
    paths.backs.append((len(code) - 4, len(out)))


def in_two_lines(accesses: tuple[Access, ...], words: Words, cache: Lines) -> bool:
    """Whether an instruction makes accesses under a mask that may all be in two lines of the `cache`."""
    place, access = words[0], accesses[0]
    if len(accesses) != 1 or access.pattern is not Pattern.MASKED or not isinstance(place, Place):
        return False
    size = access.size * access.lanes
    plain = not (place.fs or place.short) and (place.base >= 0 or place.scaled >= 0)
    return plain and size <= cache.line and place.displacement + size < 1 << 31


def write_masked(
    emitted: Emitted, told: Told, words: Words, cache: Lines, size: int, lanes: int, *, live: bool
) -> None:
    """Write how many accesses of so many bytes are made under a mask, and have them simulated if one may not
    be in the line that its set used last. Flags that are `live` are kept."""
    place, mask = words
    assert isinstance(place, Place)
    assert isinstance(mask, Mask)
    out, paths = emitted.code, told.paths
    scratch, other = borrowed(place.registers, len(out))
    out += encode.jump(0)
    code = paths.code
    paths.enters.append((len(out) - 4, len(code)))
    if live:
        code += SAVE_FLAGS
    code += save(scratch) + save(other)
    code += move_mask(scratch, mask.register) + runs_of(scratch, lanes, other)
    load_execution(emitted, paths, told.cell, scratch)
    code += shift_left(scratch, TAG_SHIFT) + or_registers(scratch, other)
    code += encode.store_area(scratch, layout.ENTRY_VALUE)
    _name(told, place.word | HITS)
    code += call(WORD)
    away, done = [], []
    for byte in (0, size * lanes - 1):
        there = place._replace(displacement=place.displacement + byte)
        compute(code, paths.fields, there, scratch)
        code += and_32(scratch, cache.mask) + load_first(scratch)
        add_place(code, there, scratch)
        code += compare_byte(scratch, cache.line - 1) + IF_ABOVE
        away.append(len(code))
    code += encode.jump(0)
    done.append(len(code))
    _lead(code, away)
    code += move_mask(scratch, mask.register) + lowest(scratch, lanes) + test(scratch) + IF_ZERO
    done.append(len(code))
    _simulate_runs(emitted, told, place, mask, size, lanes, scratch, other)
    _lead(code, done)
    code += give_back(scratch) + give_back(other)
    if live:
        code += GIVE_FLAGS_BACK
    code += encode.jump(0)
    paths.backs.append((len(code) - 4, len(out)))


def _lead(code: bytearray, fields: list[int]) -> None:
    """Let branches that end at these offsets lead to what comes next."""
    for field in fields:
        code[field - 4 : field] = (len(code) - field).to_bytes(4, "little")


def _simulate_runs(
    emitted: Emitted, told: Told, place: Place, mask: Mask, size: int, lanes: int, scratch: int, other: int
) -> None:
    """Have the first run of lanes simulated whose mask is in the scratch register, and the last lane.

    All accesses are in two lines at most, those in the first one before those in the second one. What is
    between these two changes nothing that they do not change, and in the second line the first access misses,
    whichever that is."""
    code, fields, steps = told.paths.code, told.paths.fields, size.bit_length() - 1
    code += first_run(scratch, other) + shift_left(scratch, steps)
    code += encode.lea_increment(scratch, -1) + encode.store_area(scratch, layout.ENTRY_SPAN)
    code += shift_left(scratch, BYTES_SHIFT) + or_immediate(scratch, place.word | HITS)
    code += encode.store_area(scratch, layout.ENTRY + 4)  # and what is behind it, which comes now
    code += encode.store_area_immediate(layout.ENTRY, told.number)
    fields.append((Field.RECORD, len(code) - 4))
    compute(code, fields, place, scratch)
    code += shift_left(other, steps) + add_registers(scratch, other)
    code += encode.store_area(scratch, layout.ENTRY_VALUE)
    _tell_execution(emitted, told, scratch)
    code += call(ACCESS)
    code += move_mask(scratch, mask.register) + lowest(scratch, lanes)
    code += last_one(scratch) + shift_left(scratch, steps)
    compute(code, fields, place, other)
    code += add_registers(scratch, other)
    simulate(emitted, told, place.word | HITS | size - 1 << BYTES_SHIFT, size, scratch)


def simulate(emitted: Emitted, told: Told, place: int, size: int, scratch: int) -> None:
    """Have an access of `size` bytes simulated, whose address is in the scratch register (and used up)."""
    code = told.paths.code
    code += encode.store_area(scratch, layout.ENTRY_VALUE)
    _name(told, place)
    code += encode.store_area_immediate(layout.ENTRY_SPAN, size - 1)
    _tell_execution(emitted, told, scratch)
    code += call(ACCESS)


def _tell_execution(emitted: Emitted, told: Told, scratch: int) -> None:
    """Tell which execution of the block it is."""
    load_execution(emitted, told.paths, told.cell, scratch)
    told.paths.code += encode.store_area(scratch, layout.ENTRY_TAG)


def borrowed(needed: int, turn: int) -> tuple[int, int]:
    """Two registers that are not needed, others at each turn."""
    candidates = others(needed)
    at = turn * 5 % len(candidates)
    return candidates[at], candidates[at - 1]


def whole(out: bytearray, fields: list[tuple[Field, int]], place: Place, to: int, other: int) -> None:
    """The address of a place, its segment included (for which the other register is used up)."""
    compute(out, fields, place, to)
    if place.fs:
        out += read_fs(other) + add_registers(to, other)


def _name(told: Told, place: int) -> None:
    """Name what the next entry is of."""
    code = told.paths.code
    code += encode.store_area_immediate(layout.ENTRY, told.number)
    told.paths.fields.append((Field.RECORD, len(code) - 4))
    code += encode.store_area_immediate(layout.ENTRY + 4, place)


def _put(emitted: Emitted, told: Told, words: Words, scratch: int, other: int, *, first: bool) -> None:
    """Write words by means of two registers, in front of the `first` ones the lines of data."""
    paths = told.paths
    code = paths.code
    if first:
        _tell_execution(emitted, told, scratch)
        code += call(CLEAR)
    for what in words:
        if isinstance(what, Mask):
            code += move_mask(scratch, what.register)
        else:
            whole(code, paths.fields, what, scratch, other)
        code += encode.store_area(scratch, layout.ENTRY_VALUE)
        _name(told, what.word)
        code += call(WORD)
