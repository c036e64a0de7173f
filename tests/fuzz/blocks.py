"""Straight-line statements written by hand: what a table of encodings cannot give.

Each function returns the items of one statement: instructions that belong
together because one makes the next one safe.
"""

from __future__ import annotations

from collections.abc import Callable

from iced_x86 import Code, Register

from . import asm
from .asm import RAX, RCX, RDI, RDX, RSI
from .code import Item, Raw
from .operands import REACH, Context, Unsuitable, number

SAFE_FLAGS = 0x200CD5
"""Flags that may be set at random: CF PF AF ZF SF DF OF and ID."""


def _require_free(context: Context, *registers: int) -> None:
    if any(register in context.reserved for register in registers):
        raise Unsuitable


def _flags(context: Context) -> int:
    return context.rng.getrandbits(32) & SAFE_FLAGS | 2


def string(context: Context) -> list[Item]:
    """A string instruction, with or without a rep prefix, in either direction, count 0 to 12."""
    rng = context.rng
    operation, uses = rng.choice(
        (
            (0xA4, (RSI, RDI)),  # movs
            (0xA6, (RSI, RDI)),  # cmps
            (0xAA, (RDI,)),  # stos
            (0xAC, (RSI, RAX)),  # lods
            (0xAE, (RDI,)),  # scas
        )
    )
    _require_free(context, *uses)
    prefix = rng.choice((b"", b"\xf3", b"\xf3", b"\xf2" if operation in (0xA6, 0xAE) else b"\xf3"))
    width = rng.choice((b"", b"\x66", b"\x48", None))  # 4, 2, 8 and 1 bytes
    out: list[Item] = [
        asm.lea_data(register, rng.randrange(-512, 512) & -8) for register in uses if register != RAX
    ]
    if prefix:
        _require_free(context, RCX)
        count = rng.choice((0, 1, 2, 3, rng.randrange(12)))
        out.append(asm.mov_imm(RCX, count))
    if operation in (0xA6, 0xAE) and rng.random() < 0.6:
        out += _likely_equal(context, operation, uses)
    if rng.random() < 0.6:
        out.append(Raw(rng.choice((b"\xfc", b"\xfd"))))
    narrow = b"\x67" if context.low and rng.random() < 0.1 else b""
    if width is None:
        out.append(Raw(narrow + prefix + bytes([operation])))
    elif width == b"\x48":
        out.append(Raw(narrow + prefix + width + bytes([operation + 1])))
    else:
        out.append(Raw(narrow + width + prefix + bytes([operation + 1])))
    return out


def _likely_equal(context: Context, operation: int, uses: tuple[int, ...]) -> list[Item]:
    """Make the comparison of a string instruction come out equal for a while."""
    if operation == 0xA6:
        return [asm.mov(RSI, RDI)]
    if RAX in context.reserved:
        return []
    return [asm.ins(Code.MOV_R64_RM64, asm.r64(RAX), asm.at(asm.r64(RDI)))]


def divide(context: Context) -> list[Item]:
    """div or idiv with operands that (nearly always) do not overflow."""
    rng = context.rng
    _require_free(context, RAX, RDX)
    divisor = rng.choice([n for n in range(16) if n not in context.reserved and n not in (RAX, RDX)])
    bits = rng.choice((8, 16, 32, 64))
    signed = rng.random() < 0.5
    code = getattr(Code, f"{'IDIV' if signed else 'DIV'}_RM{bits}")
    if bits == 8:
        out: list[Item] = [asm.movzx8(RAX, RAX), asm.ins_imm(Code.OR_RM32_IMM8, asm.r32(divisor), 1)]
        if signed:
            out.insert(1, asm.and_imm(RAX, 0x3F))
        return [*out, asm.ins(code, asm.r8(divisor))]
    widen = {16: b"\x66\x99", 32: b"\x99", 64: b"\x48\x99"}[bits]
    first: Item = Raw(widen) if signed else asm.ins(Code.XOR_R32_RM32, asm.r32(RDX), asm.r32(RDX))
    register = {16: asm.r16, 32: asm.r32, 64: asm.r64}[bits](divisor)
    return [first, asm.ins_imm(Code.OR_RM32_IMM8, asm.r32(divisor), 5), asm.ins(code, register)]


def pop_flags(context: Context) -> list[Item]:
    """Set the flags, sometimes with a 16-bit popf."""
    if context.rng.random() < 0.2:
        return [Raw(b"\x66\x68" + (_flags(context) & 0xFFFF).to_bytes(2, "little")), Raw(b"\x66\x9d")]
    return [asm.push_imm(_flags(context)), asm.POPF]


def push_flags(context: Context) -> list[Item]:
    """Look at the flags through the stack."""
    register = context.free()
    if context.rng.random() < 0.3:
        return [asm.PUSHF, asm.POPF]
    return [asm.PUSHF, asm.ins(Code.POP_R64, asm.r64(register))]


def read_stack(context: Context) -> list[Item]:
    """Load from above rsp: the return addresses are there, and must be the program's own."""
    rng = context.rng
    register = asm.r64(context.free())
    return [asm.ins(Code.MOV_R64_RM64, register, asm.at_rsp(8 * rng.randrange(0, 24)))]


def below_red_zone(context: Context) -> list[Item]:
    """Store far below rsp, and read it back."""
    rng = context.rng
    where = asm.at_rsp(-rng.randrange(136, 400))
    return [
        asm.ins(Code.MOV_RM64_R64, where, asm.r64(rng.randrange(16))),
        asm.ins(Code.MOV_R64_RM64, asm.r64(context.free()), where),
    ]


def instruction_pointer(context: Context) -> list[Item]:
    """Ask for the program counter."""
    register = context.free()
    distance = context.rng.choice((0, 1, -7, 64)).to_bytes(4, "little", signed=True)
    return [Raw(bytes((0x48 | (register >> 3) << 2, 0x8D, 5 | (register & 7) << 3)) + distance)]


def load_mxcsr(context: Context) -> list[Item]:
    """Set rounding, flush-to-zero, denormals-are-zero and sticky flags; all exceptions masked."""
    rng = context.rng
    value = 0x1F80 | rng.getrandbits(16) & 0xE07F
    offset = rng.randrange(-REACH, REACH) & -64
    return [asm.rip_data_imm(Code.MOV_RM32_IMM32, offset, value), asm.rip_data(Code.LDMXCSR_M32, offset)]


def load_control_word(context: Context) -> list[Item]:
    """Set x87 rounding and precision; all exceptions masked."""
    value = 0x37F & ~0x300 | context.rng.choice((0, 0x200, 0x300)) | context.rng.getrandbits(2) << 10
    offset = context.rng.randrange(-REACH, REACH) & -64
    return [asm.rip_data_imm(Code.MOV_RM16_IMM16, offset, value), asm.rip_data(Code.FLDCW_M2BYTE, offset)]


def x87_environment(context: Context) -> list[Item]:
    """Store and reload the x87 environment, without the addresses in it."""
    offset = context.rng.randrange(-REACH, REACH - 128) & -64
    out: list[Item] = [
        asm.rip_data(Code.FNSTENV_M28BYTE, offset),
        asm.rip_data_imm(Code.MOV_RM64_IMM32, offset + 12, 0),
        asm.rip_data_imm(Code.MOV_RM64_IMM32, offset + 20, 0),
    ]
    return [*out, asm.rip_data(Code.FLDENV_M28BYTE, offset)]


def fxsave(context: Context) -> list[Item]:
    """Store and reload x87 and SSE state, without the addresses in it."""
    offset = context.rng.choice((-960, -512, -64, 0, 256, 448))
    wide = context.rng.random() < 0.5
    save, load = (
        (Code.FXSAVE64_M512BYTE, Code.FXRSTOR64_M512BYTE)
        if wide
        else (Code.FXSAVE_M512BYTE, Code.FXRSTOR_M512BYTE)
    )
    return [
        asm.rip_data(save, offset),
        asm.rip_data_imm(Code.MOV_RM16_IMM16, offset + 6, 0),
        asm.rip_data_imm(Code.MOV_RM64_IMM32, offset + 8, 0),
        asm.rip_data_imm(Code.MOV_RM64_IMM32, offset + 16, 0),
        asm.rip_data(load, offset),
    ]


def system_call(context: Context) -> list[Item]:
    """A system call that does nothing: its effect on rcx and r11 shows."""
    _require_free(context, RAX, RCX, 11)
    nothing = context.rng.choice((0xFFFFFFFF, 0x3FFFFFFF, 24))  # no such call, likewise, sched_yield
    return [asm.mov_imm(RAX, nothing), asm.SYSCALL]


def cpuid(context: Context) -> list[Item]:
    """Ask the CPU for something that is the same at every time and on every core."""
    _require_free(context, RAX, RCX, RDX, asm.RBX)
    return [asm.mov_imm(RAX, context.rng.choice((0, 7, 0x80000000))), asm.mov_imm(RCX, 0), Raw(b"\x0f\xa2")]


def xgetbv(context: Context) -> list[Item]:
    """Read XCR0."""
    _require_free(context, RAX, RCX, RDX)
    return [asm.mov_imm(RCX, 0), Raw(b"\x0f\x01\xd0")]


def odd_encoding(context: Context) -> list[Item]:
    """Encodings that an assembler would not choose."""
    _require_free(context, RAX, RCX)
    codes = (
        b"\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00",  # long nop
        b"\x48\x87\xc0",  # xchg rax, rax in its long form
        b"\x87\xc0",  # xchg eax, eax: clears the upper half
        b"\x40\x90",  # nop with an empty REX
        b"\xf3\x90",  # pause
        b"\x26\x48\x8b\xc1",  # mov with a segment prefix
        b"\x48\x48\x8b\xc1",  # a REX prefix that another one makes void
        b"\x66\x40\x48\x89\xc8",
        b"\xd0\xf0",  # shl by 1 through the undocumented /6
        b"\xc0\xf0\x00",  # and by 0
        b"\xf6\xc8\x01",  # test through the undocumented /1
        b"\x81\xc0\x01\x00\x00\x00",  # add with an immediate longer than needed
        b"\x48\x8b\x04\x24",  # mov rax, [rsp]
        b"\x8a\x44\x24\x00",  # mov al, [rsp+0] with a displacement of 0
        b"\xf3\x48\x0f\x1e\xfa",  # endbr64 with a REX
        b"\xd9\xd0",  # fnop
        b"\x0f\x0d\xc0",  # prefetch of a register: a nop
        b"\xf2\x01\xc8",  # add with a prefix that means nothing to it
        b"\x66\x0f\xc8",  # bswap of 16 bits
    )
    return [Raw(context.rng.choice(codes))]


def arithmetic_on_rsp(context: Context) -> list[Item]:
    """Move rsp there and back."""
    rng = context.rng
    amount = 8 * rng.randrange(1, 16)
    down: Item = asm.ins_imm(Code.SUB_RM64_IMM8, Register.RSP, amount)
    up: Item = asm.ins_imm(Code.ADD_RM64_IMM8, Register.RSP, amount)
    if rng.random() < 0.5:
        down = asm.lea(asm.RSP, asm.at_rsp(-amount))
    if rng.random() < 0.5:
        up = asm.lea(asm.RSP, asm.at_rsp(amount))
    return [down, up]


def push_pop(context: Context) -> list[Item]:
    """One of every way to push, one of every way to pop."""
    rng = context.rng
    register = asm.r64(context.free())
    pushes: tuple[Callable[[], Item], ...] = (
        lambda: asm.ins(Code.PUSH_R64, asm.r64(rng.randrange(16))),
        lambda: asm.push_imm(number(rng, 31)),
        lambda: Raw(b"\x6a" + bytes([rng.randrange(256)])),
        lambda: asm.ins(Code.PUSH_RM64, asm.at_rsp(8 * rng.randrange(-16, 16))),
        lambda: asm.rip_data(Code.PUSH_RM64, rng.randrange(-REACH, REACH)),
    )
    pops: tuple[Callable[[], Item], ...] = (
        lambda: asm.ins(Code.POP_R64, register),
        lambda: asm.ins(Code.POP_RM64, register),
        lambda: asm.ins(Code.POP_RM64, asm.at_rsp(-8 * rng.randrange(1, 17))),
        lambda: asm.rip_data(Code.POP_RM64, rng.randrange(-REACH, REACH)),
    )
    kind = rng.randrange(8)
    if kind == 0:
        return [asm.ins(Code.PUSH_R64, Register.RSP), asm.ins(Code.POP_R64, Register.RSP)]
    if kind == 1:  # 16 bits at a time
        narrow = asm.r16(context.free())
        return [
            asm.ins(Code.PUSH_R16, asm.r16(rng.randrange(16))),
            rng.choice(
                (asm.ins(Code.POP_R16, narrow), asm.ins(Code.POP_RM16, asm.at_rsp(-2 * rng.randrange(1, 60))))
            ),
        ]
    return [rng.choice(pushes)(), rng.choice(pops)()]


BLOCKS: tuple[tuple[Callable[[Context], list[Item]], int], ...] = (
    (string, 6),
    (divide, 3),
    (pop_flags, 4),
    (push_flags, 4),
    (read_stack, 2),
    (below_red_zone, 2),
    (instruction_pointer, 2),
    (load_mxcsr, 1),
    (load_control_word, 1),
    (x87_environment, 1),
    (fxsave, 1),
    (system_call, 1),
    (cpuid, 1),
    (xgetbv, 1),
    (odd_encoding, 4),
    (arithmetic_on_rsp, 2),
    (push_pop, 6),
)
"""Every statement and how often it is to be chosen."""
