"""Ends that raise a signal: the handler must see the program's own pc and registers."""

from __future__ import annotations

from iced_x86 import Code, Register

from . import asm
from .asm import RAX, RSP
from .code import Item, Label, Node, Raw
from .control import Scope, call_to
from .machine import completes_int1


def fault(scope: Scope) -> Node:
    """Instructions of which the last one faults or traps."""
    rng = scope.context.rng
    number = scope.context.free()
    register = asm.r64(number)
    away = 0x8000_0000_0000_0000 | rng.getrandbits(16)
    load = asm.ins(Code.MOV_R64_RM64, asm.r64(scope.context.free()), asm.at(register, 8))
    offset = rng.randrange(-512, 512) & -64 | 4
    far = scope.labels.new()
    endings: tuple[tuple[Item, ...], ...] = (
        (Raw(b"\x0f\x0b"),),  # ud2
        (Raw(b"\xcc"),),
        (Raw(b"\xf1" if completes_int1() else b"\xcc"),),
        (Raw(b"\xcd\x03"),),
        (Raw(b"\xf4"),),  # hlt
        (Raw(b"\xfa"),),  # cli
        (Raw(b"\xec"),),  # in al, dx
        (asm.mov_imm(number, rng.randrange(0x1000)), load),
        (asm.mov_imm64(number, away), load),
        (asm.mov_imm(number, 0), asm.ins(Code.ADD_RM64_R64, asm.at(register, 8), asm.r64(rng.randrange(16)))),
        (asm.mov_imm(number, 0), asm.ins(Code.JMP_RM64, register)),
        (asm.mov_imm(number, 0), asm.ins(Code.CALL_RM64, register)),
        (asm.mov_imm64(number, away), asm.ins(Code.JMP_RM64, register)),
        (asm.mov_imm64(number, away), asm.ins(Code.CALL_RM64, register)),
        (asm.mov_imm(number, 16), asm.ins(Code.CALL_RM64, asm.at(register))),
        (asm.push_imm(16), asm.RET),
        (asm.mov_imm(RSP, 64), asm.ins(Code.PUSH_R64, register)),
        (asm.mov_imm(RSP, 64), call_to(far)),
        (asm.mov_imm64(RSP, away), asm.RET),
        (asm.rip_data(Code.MOVAPS_XMM_XMMM128, offset, Register.XMM3),),
        (asm.mov_imm(number, 0), asm.ins(Code.DIV_RM32, asm.r32(number))),
        (
            asm.rip_data_imm(Code.MOV_RM32_IMM32, -64, 0x1D80),
            asm.rip_data(Code.LDMXCSR_M32, -64),
            asm.ins(Code.XORPS_XMM_XMMM128, Register.XMM1, Register.XMM1),
            asm.ins(Code.DIVPS_XMM_XMMM128, Register.XMM1, Register.XMM1),
        ),
        (
            Raw(b"\xdb\xe3"),  # fninit
            asm.rip_data_imm(Code.MOV_RM16_IMM16, -64, 0x37A),
            asm.rip_data(Code.FLDCW_M2BYTE, -64),
            Raw(b"\xd9\xe8\xd9\xee\xde\xf9\x9b"),  # 1 / 0, and wait
        ),
        (asm.PUSHF, asm.ins_imm(Code.OR_RM32_IMM32, asm.at_rsp(0), 1 << 18), asm.POPF, *_misaligned(number)),
    )
    items = rng.choice(endings)
    return Node((items,), pool=(Label(far), asm.RET), cost=len(items))


def _misaligned(number: int) -> tuple[Item, ...]:
    return (asm.lea_data(number, 3), asm.ins(Code.MOV_RM32_R32, asm.at(asm.r64(number)), asm.r32(RAX)))
