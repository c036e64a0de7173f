"""What a filter goes to that lets something through: writes an entry of the event stream, or stops a thread
whose chunk is full. (Addresses are written where they are filtered, `filtering`.)

The entry is in the thread's area (`layout.ENTRY`), and where the thread goes on. Flags are left alone.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from livepro.engines.stream.filtering import ENTRY, NO_LINE, Lines
from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Words
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.addressing import store_indirect

FULL, WORD, CLEAR = range(3)
"""What is wanted: another chunk; a word to be written; one behind which no slot of data tells anything. (The
order of `layout.RECORDERS`.)"""

_RAX, _RCX = encode.RAX, encode.RCX
_S_RAX, _S_RCX = layout.ENTRY_SAVED
_FULL = b"\x65\x0f\xb6\x0c\x25" + struct.pack("<i", layout.RECORD + 2)  # movzx ecx, byte gs:[RECORD + 2]


class Entries:
    """The code for slots of data as `lines` says; offsets are bytes from its start."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        go = encode.jump_area(layout.ENTRY_RETURN)
        out = bytearray(encode.INT3 + go)
        self.starts = [0]
        """Where each of `FULL`, `WORD`, `CLEAR` begins."""
        self.stops = [0]
        """Where each of them stops when the chunk is full; it goes on right behind."""
        self._written = [0]
        for how in (WORD, CLEAR):
            self.starts.append(len(out))
            out += encode.store_area(_RAX, _S_RAX) + encode.store_area(_RCX, _S_RCX)
            out += encode.load_area(_RCX, layout.RECORD)
            out += encode.load_area(_RAX, layout.ENTRY) + store_indirect(_RAX, _RCX, 0)
            out += encode.load_area(_RAX, layout.ENTRY_VALUE) + store_indirect(_RAX, _RCX, 8)
            out += encode.lea_increment(_RCX, 8 * ENTRY) + encode.store_area(_RCX, layout.RECORD)
            self._written.append(len(out))
            if how == CLEAR:
                out += encode.move_absolute(_RAX, NO_LINE)
                for slot in range(lines.slots):
                    out += encode.store_area(_RAX, layout.DATA_LINES + slot * lines.line)
            out += _FULL + encode.jump_if_rcx_zero(2)
            out += b"\xeb\x01"  # jmp over the stop
            self.stops.append(len(out))
            out += encode.INT3
            out += encode.load_area(_RCX, _S_RCX) + encode.load_area(_RAX, _S_RAX) + go
        self.code = bytes(out)
        self.size = len(out)

    def finish(self, registers: Any, words: Words, offset: int) -> None:
        """Bring a thread that is at an offset here, and not at a stop, to where it goes on, its entry
        written."""
        how = max(n for n, start in enumerate(self.starts) if start <= offset)
        registers.rip = int(words[layout.ENTRY_RETURN // 8])
        if how == FULL:
            return
        if offset < self._written[how]:
            at = int(words[layout.RECORD // 8])
            words[at // 8], words[at // 8 + 1] = words[layout.ENTRY // 8], words[layout.ENTRY_VALUE // 8]
            words[layout.RECORD // 8] = at + 8 * ENTRY
        if how == CLEAR:
            self.forget(words)
        saved, within = len(encode.store_area(_RAX, _S_RAX)), offset - self.starts[how]
        if within >= saved:
            registers.rax = int(words[_S_RAX // 8])
        if within >= 2 * saved:
            registers.rcx = int(words[_S_RCX // 8])

    def forget(self, words: Words) -> None:
        """Let nothing be known of the lines of data."""
        first, lines = layout.DATA_LINES // 8, self._lines
        words[first : first + lines.slots * lines.line // 8 : lines.line // 8] = NO_LINE


@lru_cache
def entries_for(lines: int) -> Entries:
    """The code for what `layout.ENTRY_LINES` says."""
    return Entries(Lines(lines & 0xFFFF_FFFF, lines >> 32))
