"""System calls that are made in the cache, or stop; returns from signal handlers that stay there."""

from __future__ import annotations

from collections.abc import Mapping

from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import WHEN_TOLD
from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.counter import SAVE_RAX, SAVE_RCX
from livepro.engines.translate.translator.x86_64.events.lending import BACK, KEEP
from livepro.engines.translate.translator.x86_64.machine import CONTEXT_PC, CONTEXT_SIZE

_S_RSP = layout.SPILL[4]
_CHECK_DEFERRING = encode.load_area(encode.RCX, layout.DEFERRING) + encode.jump_if_rcx_zero(1)

# From the end of the check of a system call's number back to its table's address: jrcxz follows.
_WATCHED_BEHIND = 4 + len(encode.jump_if_rcx_zero(1))


class SystemCalls:
    """Copies system calls. `watched` are the numbers of those that must stop, some of them only with a size
    that asks (the place of that argument); `data` is where the tables of the process are."""

    def __init__(self, data: int, watched: Mapping[int, int | None]) -> None:
        self._watched = watched
        self._check_number = (
            encode.MOVZX_ECX_AX + encode.load_byte_watched(data + layout.WATCHED) + encode.jump_if_rcx_zero(1)
        )

    def copy(self, emitted: Emitted, index: int, number: int, end: int, *, lends: bool) -> None:
        """Copy instruction `index`, a call whose number is `number` (-1: not known), in front of the
        program's address `end`; `lends` says whether a register is lent."""
        out = emitted.code
        size = self._watched.get(number)
        if size == WHEN_TOLD:
            number, size = -1, None
        if number in self._watched and size is None:
            native(emitted, index)
            return
        # Whoever steps the call at its own place goes on right behind the copy's: the kernel may
        # yet wind it back by the instruction's length.
        call = encode.SYSCALL
        if size is not None:
            out += encode.CHECK_SIZE[size]
            native(emitted, index, len(out) + len(encode.INT3 + _CHECK_DEFERRING + encode.INT3 + call))
        if number < 0:
            out += self._check_number
            emitted.fields.append((Field.DATA, len(out) - _WATCHED_BEHIND))
            native(emitted, index, len(out) + len(encode.INT3 + _CHECK_DEFERRING + encode.INT3 + call))
        out += _CHECK_DEFERRING
        native(emitted, index, len(out) + len(encode.INT3 + call))
        # The boundary is behind the checks, which borrow what the call overwrites: who
        # steps on to a boundary must not make the call.
        emitted.runs[-1] = (index, len(out))
        out += encode.SYSCALL
        # The instruction leaves its return address in rcx: it must be the program's.
        emitted.behind_syscall = {**emitted.behind_syscall, len(out): index + 1}
        if lends:
            out += KEEP + BACK
        out += encode.move_absolute(encode.RCX, end)
        emitted.fields.append((Field.ADDRESS, len(out) - 8))


def native(emitted: Emitted, index: int, behind: int = 0) -> None:
    """Stop, for the tracer to step instruction `index` at its own place and go on
    `behind` (right behind the stop if not said)."""
    out = emitted.code
    emitted.natives += ((len(out), index, behind or len(out) + 1),)
    out += encode.INT3


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
