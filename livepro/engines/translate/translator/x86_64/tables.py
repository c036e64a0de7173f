"""Jump tables of programs below 2 GiB: `movzx r32, r8; mov r64, [r64 * 8 + table]; jmp r64`.

How interpreters reach the code of their next operation, and `switch` statements their cases. Which entries
such a branch can take is known: each gets a stub that sets the register to what the table holds and leads
on as any direct branch does, and the branch becomes a computed one to these stubs. Nothing is saved, looked
up or compared.
"""

from __future__ import annotations

import struct

from livepro.engines.translate.translator.backend import JumpTable
from livepro.engines.translate.translator.emitted import Emitted, Field
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.facts import Kind

_STUB = 16
"""Bytes from one stub to the next: `branch_by_table` goes by that."""

_RSP = 4
_i32 = struct.Struct("<i")


def jump_table(block: SourceBlock) -> JumpTable | None:
    """The table that a block branches by, if it ends in those three instructions."""
    if len(block.facts) < 3 or block.facts[-1].kind is not Kind.INDIRECT_JUMP:
        return None
    begin, load, jump, end = block.offsets[-4:]
    code = block.code
    leads = code[jump:end]
    high = leads[:1] == b"\x41"
    if len(leads) != 2 + high or leads[high] != 0xFF or leads[-1] & 0xF8 != 0xE0:
        return None
    register = high << 3 | leads[-1] & 7
    # SDM vol. 2, 2.1.5: ModRM with a SIB byte, that without base and with a displacement of 32 bits.
    text = bytes((0x4E if high else 0x48, 0x8B, 4 | (register & 7) << 3, 0xC5 | (register & 7) << 3))
    if register == _RSP or code[load : load + 4] != text or jump - load != 8:
        return None
    widened = code[begin:load]
    rex = widened[0] if widened[0] & 0xF0 == 0x40 else 0
    widened = widened[bool(rex) :]
    # movzx r32, r/m8: REX.W widens as well.
    if widened[:2] != b"\x0f\xb6" or (rex & 4) << 1 | widened[2] >> 3 & 7 != register:
        return None
    address = _i32.unpack_from(code, load + 4)[0]
    return JumpTable(address, register) if address > 0 else None


def table_stub(table: JumpTable, entry: int) -> tuple[bytes, int]:
    """mov r32, entry; jmp: what an entry leads to, and the offset at which that begins."""
    high, low = divmod(table.register, 8)
    text = (b"\x41" if high else b"") + bytes((0xB8 | low,)) + _i32.pack(entry) + encode.jump(0)
    begin = _STUB - len(text)
    return encode.INT3 * begin + text, begin


def branch_by_table(emitted: Emitted, table: JumpTable, stubs: int, length: int) -> None:
    """Branch to the stub of the entry that the table's register says, as the last two of a block's
    instructions: lea r64, [r64 + r64]; lea r64, [r64 * 8 + stubs]; jmp r64. At the second of the two
    nothing begins: a thread is before the first, or in the middle of both."""
    out = emitted.code
    high, low = divmod(table.register, 8)
    out += bytes((0x4F if high else 0x48, 0x8D, 0x44 | low << 3, low << 3 | low, 0))
    out += bytes((0x4E if high else 0x48, 0x8D, 4 | low << 3, 0xC5 | low << 3)) + _i32.pack(stubs)
    emitted.fields.append((Field.INSIDE, len(out) - 4))
    out += (b"\x41" if high else b"") + bytes((0xFF, 0xE0 | low))
    emitted.runs.append((length, len(out)))
