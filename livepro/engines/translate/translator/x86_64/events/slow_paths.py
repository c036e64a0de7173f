"""What the slow paths of filters are made of: registers and flags out of the way, calls of what simulates."""

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.encodings import call_area, load_halfword

_SAVED_RAX, _SAVED_FLAGS = layout.FILTER_FLAGS
HOLD_FLAGS = encode.store_area(encode.RAX, _SAVED_RAX) + b"\x9f\x0f\x90\xc0"  # lahf; seto al
"""Have the flags in rax."""
RELEASE_FLAGS = b"\x04\x7f\x9e" + encode.load_area(encode.RAX, _SAVED_RAX)  # add al, 0x7f; sahf
SAVE_FLAGS = (
    HOLD_FLAGS + encode.store_area(encode.RAX, _SAVED_FLAGS) + encode.load_area(encode.RAX, _SAVED_RAX)
)
GIVE_FLAGS_BACK = (
    encode.store_area(encode.RAX, _SAVED_RAX) + encode.load_area(encode.RAX, _SAVED_FLAGS) + RELEASE_FLAGS
)


class Paths:
    """The slow paths of one fragment."""

    def __init__(self) -> None:
        self.code = bytearray()
        self.enters: list[tuple[int, int]] = []
        self.backs: list[tuple[int, int]] = []
        self.fields: list[tuple[Field, int]] = []
        self.writes: list[tuple[int, int]] = []


def load_execution(emitted: Emitted, paths: Paths, cell: int, to: int) -> None:
    """Load which execution of the block it is."""
    code = paths.code
    code += load_halfword(to, layout.COUNTERS + cell * 8)
    paths.fields.append((Field.CELL, len(code) - 4))
    if not emitted.tallied:
        code += encode.lea_increment(to, 1)


def call(how: int) -> bytes:
    """Call what simulates or writes, with a stack of its own."""
    out = encode.store_area(encode.RSP, layout.ENTRY_RSP) + encode.load_area(encode.RSP, layout.ENTRY_STACK)
    return out + call_area(layout.RECORDERS[how]) + encode.load_area(encode.RSP, layout.ENTRY_RSP)


def save(register: int) -> bytes:
    """Borrow a register."""
    return encode.store_area(register, layout.FILTER_SAVED + 8 * register)


def give_back(register: int) -> bytes:
    """Give it back."""
    return encode.load_area(register, layout.FILTER_SAVED + 8 * register)
