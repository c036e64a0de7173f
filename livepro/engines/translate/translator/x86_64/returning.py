"""Returns from signal handlers that stay in the cache."""

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.counter import SAVE_RAX, SAVE_RCX
from livepro.engines.translate.translator.x86_64.machine import CONTEXT_PC, CONTEXT_SIZE

_S_RSP = layout.SPILL[4]


def return_from_signal(emitted: Emitted, end: int) -> None:
    """Restore registers from a copy of the frame that leads to `resume`, which goes on where the frame itself
    leads. `end` is the program's address behind the call."""
    out = emitted.code
    out += SAVE_RAX + SAVE_RCX
    begin = len(out)  # before, there is nothing saved that could be given back
    for word in range(CONTEXT_SIZE // 8):
        out += encode.load_stack(encode.RCX, word * 8)
        to = layout.RESUMED if word == CONTEXT_PC // 8 else layout.FRAME + word * 8
        out += encode.store_area(encode.RCX, to)
    out += encode.store_area_immediate(layout.DEFERRING, 0)
    out += encode.store_area(encode.RSP, _S_RSP)
    out += encode.load_area(encode.RSP, layout.FRAME_AT)
    emitted.retreat = begin, len(out) + 1
    out += encode.SYSCALL
    # Reached only if the call is refused (by a filter).
    out += encode.load_area(encode.RSP, _S_RSP)
    out += encode.move_absolute(encode.RCX, end)
    emitted.fields.append((Field.ADDRESS, len(out) - 8))
    emitted.falls = end


def resume(lookup: bytes) -> bytes:
    """What such a return leads to: looks up where its frame leads (by `lookup`)."""
    out = SAVE_RAX + SAVE_RCX + encode.load_area(encode.RAX, layout.RESUMED)
    return out + encode.store_area_immediate(layout.SITE, layout.NOWHERE) + lookup
