"""Emits what writes down a fetch of another line of code than its set used last."""

from __future__ import annotations

from livepro.engines.stream.filtering import (
    ENTRY,
    FETCH,
    PAGE,
    PAGE_SHIFT,
    SPAN_SHIFT,
    TAG_SHIFT,
    WITHIN_SHIFT,
    Lines,
)
from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.encodings import (
    IF_DIFFERENT,
    IS_FULL,
    compare_page,
    store_at,
    store_halfword_at,
)
from livepro.engines.translate.translator.x86_64.events.entries import FULL
from livepro.engines.translate.translator.x86_64.events.slow_paths import (
    Paths,
    call,
    give_back,
    load_execution,
    save,
)

_POINTER, _EXECUTION = encode.RCX, encode.RDX


def filter_fetch(
    emitted: Emitted,
    paths: Paths,
    block: SourceBlock,
    index: int,
    lines: tuple[int, ...],
    cache: Lines,
    number: int,
    cell: int,
) -> None:
    """Have the fetch of instruction `index` written, if one of its `lines` was not the last one of its set in
    the `cache` of code; `number` is the block's, which is counted in `cell`."""
    out, code, fields, begin = emitted.code, paths.code, paths.fields, len(paths.code)
    rows = [layout.CODE_LINES + cache.number(line) * 4 for line in lines]
    for line, row in zip(lines, rows, strict=True):
        out += compare_page(row, line >> PAGE_SHIFT)
        emitted.fields.append((Field.PAGE, len(out) - 4))
        out += IF_DIFFERENT
        paths.enters.append((len(out) - 4, begin))
    code += save(_POINTER) + save(_EXECUTION) + encode.load_area(_POINTER, layout.RECORD)
    load_execution(emitted, paths, cell, _EXECUTION)
    size = block.offsets[index + 1] - block.offsets[index]
    _put_entry(paths, number, index, block.pc + block.offsets[index], size)
    for line, row in zip(lines, rows, strict=True):
        code += encode.store_area_immediate(row, line >> PAGE_SHIFT & 0xFFFFFFFF)
        fields.append((Field.PAGE, len(code) - 4))
    code += encode.lea_increment(_POINTER, 8 * ENTRY) + encode.store_area(_POINTER, layout.RECORD)
    paths.writes.append((begin, len(code)))
    code += IS_FULL + give_back(_EXECUTION) + give_back(_POINTER) + IF_DIFFERENT
    paths.backs.append((len(code) - 4, len(out)))
    code += call(FULL) + encode.jump(0)
    paths.backs.append((len(code) - 4, len(out)))


def _put_entry(paths: Paths, number: int, index: int, address: int, size: int) -> None:
    """Put an entry where the chunk's next one will be: it is none yet."""
    code, fields = paths.code, paths.fields
    code += store_at(_POINTER, 0, number)
    fields.append((Field.RECORD, len(code) - 4))
    code += store_at(_POINTER, 4, FETCH | index)
    code += store_at(_POINTER, 8, address >> PAGE_SHIFT)
    fields.append((Field.PAGE, len(code) - 4))
    code += store_at(_POINTER, 12, address & PAGE - 1 | size - 1 << SPAN_SHIFT - WITHIN_SHIFT)
    code += store_halfword_at(_EXECUTION, _POINTER, 8 + TAG_SHIFT // 8)
