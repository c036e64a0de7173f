"""What depends on where an instruction stands: RIP-relative operands, and the address that a call pushes."""

from __future__ import annotations

import struct

from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.facts import Facts

_LEGACY_PREFIXES = frozenset((0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3))

_unpack_i32 = struct.Struct("<i").unpack_from
_pack_i32 = struct.Struct("<i").pack
_REACH = 1 << 31


def relocated(emitted: Emitted, encoding: bytes, field_at: int, end: int, at: int) -> bool:
    """A copy whose RIP-relative operand names the same address from here; False, and nothing, where that
    is too far.

    `end` is the program's address behind the instruction.
    """
    out = emitted.code
    target = end + _unpack_i32(encoding, field_at)[0]
    displacement = target - (at + len(out) + len(encoding))
    if not -_REACH <= displacement < _REACH:
        return False
    emitted.fields.append((Field.OUT, len(out) + field_at))
    out += encoding[:field_at] + _pack_i32(displacement) + encoding[field_at + 4 :]
    return True


def push_return(emitted: Emitted, address: int) -> None:
    """Push the program's own return address."""
    out = emitted.code
    if address < 1 << 31:
        out += encode.push_immediate(address)
        emitted.fields.append((Field.FIXED, len(out) - 4))
    else:
        out += encode.push_at(0)
        emitted.literals += ((len(out) - 4, address),)


def load_target(emitted: Emitted, encoding: bytes, facts: Facts, end: int, at: int) -> None:
    """mov rax, r/m64 with the operand of a jmp or call r/m64 (FF /4, FF /2 to 8B /r)."""
    cursor = 0
    prefixes = bytearray()
    while encoding[cursor] in _LEGACY_PREFIXES:
        if encoding[cursor] in (0x64, 0x67):  # fs and address size matter to the operand
            prefixes.append(encoding[cursor])
        cursor += 1
    rex = 0x48
    if encoding[cursor] & 0xF0 == 0x40:
        rex |= encoding[cursor] & 0x03
        cursor += 1
    modrm = encoding[cursor + 1] & 0xC7
    tail = encoding[cursor + 2 :]
    text = bytes(prefixes) + bytes((rex, 0x8B, modrm)) + tail
    out = emitted.code
    if not facts.displacement:
        out += text
    elif not relocated(emitted, text, len(text) - 4, end, at):
        out += encode.load_rax(bytes(prefixes), end + _unpack_i32(text, len(text) - 4)[0])
        emitted.fields.append((Field.ADDRESS, len(out) - 8))
