"""What writes down a fetch of another line than its set used last (`events.fetching`), by compiled code."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.stream import filtering
from livepro.engines.translate import layout
from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.tables import BYTES, COLD, ROWS
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels.operands import (
    LOAD,
    STORE,
    advance,
    in_area,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.slow_paths import (
    DIFFERENT,
    given_back,
    leave,
    load_execution,
    saved,
    tell_area,
    with_number,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import note, put, write_32
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    CALL_FULL,
    CODE_LINE,
    CODE_MASK,
    IS_FULL,
)

_RECORD, _NUMBER, _CODE, _CHUNK = int(Field.RECORD), int(Field.PAGE), layout.CODE_LINES, layout.RECORD
_RCX, _RDX = 1, 2
_PAGE, _PAGE_SHIFT, _FETCH = filtering.PAGE, filtering.PAGE_SHIFT, filtering.FETCH
_SPAN, _ENTRY_SIZE = filtering.SPAN_SHIFT - filtering.WITHIN_SHIFT, 8 * filtering.ENTRY
_TAG_AT = 8 + filtering.TAG_SHIFT // 8


@kernel
def _compare_page(image, at, offset, page):
    """cmp dword gs:[offset], imm32"""
    return with_number(image, at, 0x81, 7, offset, page)


@kernel
def _store_at(image, at, displacement, value):
    """mov dword gs:[rcx + displacement], imm32"""
    image[at], image[at + 1], image[at + 2], image[at + 3] = 0x65, 0xC7, 0x41, displacement
    write_32(image, at + 4, value)
    return at + 8


@kernel
def filter_fetch(state, image, at, pieces, bounds, fields, i, first, size, lines, cell, tallied):
    """Have the fetch of instruction `i` written, of so many bytes at an address, if one of its `lines`, from
    which on it is in others than the instruction before, is another one than its set used last."""
    begin, bits, mask = state[COLD], -state[CODE_LINE], state[CODE_MASK]
    last = (first + size - 1) & bits
    line = lines & bits
    while True:
        at = _compare_page(image, at, _CODE + (line & mask) // state[CODE_LINE] * 4, line >> _PAGE_SHIFT)
        note(state, fields, _NUMBER, at - 4)
        at = leave(image, at, DIFFERENT, begin)
        if line == last:
            break
        line = last
    cold = saved(image, begin, _RCX)
    cold = saved(image, cold, _RDX)
    cold = in_area(image, cold, LOAD, _RCX, _CHUNK)
    cold = load_execution(state, image, cold, fields, _RDX, cell, tallied)
    cold = _store_at(image, cold, 0, state[ROWS])
    note(state, fields, _RECORD, cold - 4)
    cold = _store_at(image, cold, 4, _FETCH | i)
    cold = _store_at(image, cold, 8, first >> _PAGE_SHIFT)
    note(state, fields, _NUMBER, cold - 4)
    cold = _store_at(image, cold, 12, first & _PAGE - 1 | size - 1 << _SPAN)
    image[cold], image[cold + 1], image[cold + 2] = 0x65, 0x66, 0x89  # mov word gs:[rcx + tag], dx
    image[cold + 3], image[cold + 4] = 0x51, _TAG_AT
    cold += 5
    line = lines & bits
    while True:
        cold = tell_area(image, cold, _CODE + (line & mask) // state[CODE_LINE] * 4, line >> _PAGE_SHIFT)
        note(state, fields, _NUMBER, cold - 4)
        if line == last:
            break
        line = last
    cold = advance(image, cold, _RCX, _ENTRY_SIZE)
    cold = in_area(image, cold, STORE, _RCX, _CHUNK)
    cold = put(image, cold, pieces, bounds, IS_FULL)
    cold = given_back(image, cold, _RDX)
    cold = given_back(image, cold, _RCX)
    cold = leave(image, cold, DIFFERENT, at)
    cold = put(image, cold, pieces, bounds, CALL_FULL)
    image[cold] = 0xE9
    write_32(image, cold + 1, at - cold - 5)
    cold += 5
    state[BYTES] += cold - begin
    state[COLD] = cold
    return at
