"""The memory accesses of x86-64 instructions: iced-x86 knows the operands, registers give the addresses.

Not accesses are prefetches, cache line flushes, `lea` and long nops. A comparison and exchange
modifies, whether it stores what was there or something else: the processor writes in any case.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from iced_x86 import (
    Code,
    Decoder,
    Instruction,
    InstructionInfoFactory,
    MemorySize,
    MemorySizeExt,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    UsedMemory,
)

from livepro.isa.access import ALL_64, MODIFY, READ, WRITE, Access, MachineState, Pattern
from livepro.isa.x86_64 import vectors as vector_registers
from livepro.isa.x86_64.decoder import is_rep

_KINDS = {
    OpAccess.READ: READ,
    OpAccess.COND_READ: READ,
    OpAccess.WRITE: WRITE,
    OpAccess.COND_WRITE: WRITE,
    OpAccess.READ_WRITE: MODIFY,
    OpAccess.READ_COND_WRITE: MODIFY,
}

_NO_ACCESS = frozenset(
    (
        Mnemonic.CLFLUSH, Mnemonic.CLFLUSHOPT, Mnemonic.CLWB, Mnemonic.CLDEMOTE, Mnemonic.LEA, Mnemonic.NOP,
        Mnemonic.MONITOR, Mnemonic.UMONITOR, Mnemonic.MONITORX, Mnemonic.RESERVEDNOP,
    )
)  # fmt: skip

_ELEMENTS = {
    Mnemonic.MOVSB: 1, Mnemonic.MOVSW: 2, Mnemonic.MOVSD: 4, Mnemonic.MOVSQ: 8,
    Mnemonic.STOSB: 1, Mnemonic.STOSW: 2, Mnemonic.STOSD: 4, Mnemonic.STOSQ: 8,
    Mnemonic.LODSB: 1, Mnemonic.LODSW: 2, Mnemonic.LODSD: 4, Mnemonic.LODSQ: 8,
    Mnemonic.SCASB: 1, Mnemonic.SCASW: 2, Mnemonic.SCASD: 4, Mnemonic.SCASQ: 8,
    Mnemonic.CMPSB: 1, Mnemonic.CMPSW: 2, Mnemonic.CMPSD: 4, Mnemonic.CMPSQ: 8,
    Mnemonic.INSB: 1, Mnemonic.INSW: 2, Mnemonic.INSD: 4,
    Mnemonic.OUTSB: 1, Mnemonic.OUTSW: 2, Mnemonic.OUTSD: 4,
}  # fmt: skip

# Vectors whose lanes are chosen by the sign bits of a vector register: its operand and the lane size.
_MASKED_BY_SIGN = {
    Mnemonic.VMASKMOVPS: 4, Mnemonic.VMASKMOVPD: 8, Mnemonic.VPMASKMOVD: 4, Mnemonic.VPMASKMOVQ: 8,
    Mnemonic.MASKMOVDQU: 1, Mnemonic.VMASKMOVDQU: 1, Mnemonic.MASKMOVQ: 1,
}  # fmt: skip

_PACKING = frozenset(
    getattr(Mnemonic, name)
    for name in (
        *("VPCOMPRESSB", "VPCOMPRESSW", "VPCOMPRESSD", "VPCOMPRESSQ", "VCOMPRESSPS", "VCOMPRESSPD"),
        *("VPEXPANDB", "VPEXPANDW", "VPEXPANDD", "VPEXPANDQ", "VEXPANDPS", "VEXPANDPD"),
    )
)

_BIT_TESTS = frozenset((Mnemonic.BT, Mnemonic.BTS, Mnemonic.BTR, Mnemonic.BTC))

_COMPACTED = frozenset((Mnemonic.XSAVEC, Mnemonic.XSAVEC64, Mnemonic.XSAVES, Mnemonic.XSAVES64))
_RESTORING = frozenset((Mnemonic.XRSTOR, Mnemonic.XRSTOR64, Mnemonic.XRSTORS, Mnemonic.XRSTORS64))

_VECTOR_BASES = tuple(
    (getattr(Register, name + "0"), size) for name, size in (("XMM", 16), ("YMM", 32), ("ZMM", 64))
)


class Part(NamedTuple):
    """Where a register is: a field of the register set, a shift and a mask."""

    field: str
    shift: int
    mask: int


def _parts() -> dict[int, Part]:
    out: dict[int, Part] = {}
    old = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
    for name in old:
        for prefix, mask in (("R", ALL_64), ("E", 0xFFFF_FFFF), ("", 0xFFFF)):
            out[getattr(Register, prefix + name.upper())] = Part("r" + name, 0, mask)
    for letter in "acdb":
        out[getattr(Register, letter.upper() + "L")] = Part(f"r{letter}x", 0, 0xFF)
    for number in range(8, 16):
        for suffix, mask in (("", ALL_64), ("D", 0xFFFF_FFFF), ("W", 0xFFFF)):
            out[getattr(Register, f"R{number}{suffix}")] = Part(f"r{number}", 0, mask)
    return out


_PARTS = _parts()
SEGMENTS = {Register.FS: "fs_base", Register.GS: "gs_base"}
"""Segments whose base is not 0 in 64-bit mode, and where it is."""


class Operand(NamedTuple):
    """A memory operand: segment base + base + scaled * scale + displacement, of `bits` 64 or 32 (before
    the segment base is added). `base` and `scaled` are iced's registers (0: none); `mask` says what
    chooses the lanes: iced's number of an opmask or vector register, 0 for all. `offset` is
    a register with a signed bit offset (bt), `restores` and `compacted` say how an XSAVE area is used;
    `vsib` are the bytes of each index of a gather."""

    segment: str
    base: int
    scaled: int
    scale: int
    displacement: int
    bits: int
    mask: int = 0
    offset: int = 0
    restores: bool = False
    compacted: bool = False
    vsib: int = 0


_INFO = InstructionInfoFactory()


_MOST_KNOWN = 1 << 18  # encodings remembered; libjvm has 100,000
_known: dict[bytes, tuple[Access, ...]] = {}


def accesses(code: bytes, address: int) -> tuple[Access, ...]:
    """The accesses of the instruction `code` that stands at `address` (rip-relative operands depend on
    it), in order."""
    found = _known.get(code)
    if found is None:
        instruction = Decoder(64, code, ip=address).decode()
        found = accesses_of(instruction)
        if not instruction.is_ip_rel_memory_operand:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[code] = found
    return found


def accesses_of(instruction: Instruction) -> tuple[Access, ...]:
    """The same for a decoded instruction."""
    if instruction.mnemonic in _NO_ACCESS or instruction.code == Code.INVALID:
        return ()
    used = [memory for memory in _INFO.info(instruction).used_memory() if memory.access in _KINDS]
    if instruction.is_vsib:
        return tuple(_lanes(instruction, memory) for memory in used)
    found = [_access(instruction, memory) for memory in used]
    if instruction.mnemonic == Mnemonic.ENTER:  # pushes, then copies frame pointers
        return tuple(found)
    return tuple(sorted(found, key=lambda access: access.kind == WRITE))


def _operand(memory: UsedMemory) -> Operand:
    return Operand(
        SEGMENTS.get(memory.segment, ""),
        memory.base,
        memory.index,
        memory.scale,
        memory.displacement & ALL_64,
        32 if memory.address_size == 2 else 64,  # CodeSize.CODE32
    )


def _access(instruction: Instruction, memory: UsedMemory) -> Access:
    kind = _KINDS[memory.access]
    where = _operand(memory)
    mnemonic = instruction.mnemonic
    if is_rep(instruction):
        return Access(Pattern.STRING, _ELEMENTS[mnemonic], kind, 0, where)
    if instruction.is_string_instruction and mnemonic in _ELEMENTS:
        return Access(Pattern.ONE, _ELEMENTS[mnemonic], kind, 0, where)
    size = MemorySizeExt.size(memory.memory_size)
    if memory.memory_size in (MemorySize.XSAVE, MemorySize.XSAVE64):
        restores = mnemonic in _RESTORING
        where = where._replace(restores=restores, compacted=mnemonic in _COMPACTED)
        return Access(Pattern.SIZED, 0, READ if restores else WRITE, 0, where)
    lane = _MASKED_BY_SIGN.get(mnemonic)
    if lane is not None:
        register = instruction.op1_register
        if mnemonic in (Mnemonic.MASKMOVDQU, Mnemonic.VMASKMOVDQU, Mnemonic.MASKMOVQ):
            register = instruction.op2_register
        elif instruction.op0_kind == OpKind.MEMORY:
            register = instruction.op1_register
        return Access(Pattern.MASKED, lane, kind, size // lane, where._replace(mask=register))
    if instruction.op_mask != Register.NONE and not _is_stack(instruction, memory):
        where = where._replace(mask=instruction.op_mask)
        if mnemonic in _PACKING:
            element = MemorySizeExt.element_size(memory.memory_size)
            return Access(Pattern.PACKED, element, kind, size // element, where)
        if instruction.is_broadcast or size == MemorySizeExt.element_size(memory.memory_size):
            # One element for all lanes, or for the only one: read unless no lane is active.
            lanes = _register_bytes(instruction) // size if instruction.is_broadcast else 1
            return Access(Pattern.LANES, size, kind, 1, where._replace(vsib=-max(lanes, 1)))
        element = MemorySizeExt.element_size(memory.memory_size)
        return Access(Pattern.MASKED, element, kind, size // element, where)
    if mnemonic in _BIT_TESTS and instruction.op1_kind == OpKind.REGISTER:
        where = where._replace(offset=instruction.op1_register)
    return Access(Pattern.ONE, size, kind, 0, where)


def _is_stack(instruction: Instruction, memory: UsedMemory) -> bool:
    return instruction.is_stack_instruction and memory.base == Register.RSP


def _register_bytes(instruction: Instruction) -> int:
    """The widest vector register among an instruction's operands."""
    widest = 0
    for n in range(instruction.op_count):
        if instruction.op_kind(n) == OpKind.REGISTER:
            register = instruction.op_register(n)
            for base, size in _VECTOR_BASES:
                if base <= register < base + 32:
                    widest = max(widest, size)
    return widest


def _lanes(instruction: Instruction, memory: UsedMemory) -> Access:
    """A gather's or scatter's access."""
    size = MemorySizeExt.element_size(memory.memory_size) or MemorySizeExt.size(memory.memory_size)
    index = _vector(memory.index)
    assert index is not None
    others = [
        found[1]
        for n in range(instruction.op_count)
        if instruction.op_kind(n) == OpKind.REGISTER
        and (found := _vector(instruction.op_register(n))) is not None
    ]
    mask = instruction.op_mask
    if mask == Register.NONE:  # AVX2: the third operand, a vector
        mask = instruction.op2_register
    lanes = min(index[1] // memory.vsib_size, max(others) // size)
    where = _operand(memory)._replace(mask=mask, vsib=memory.vsib_size)
    return Access(Pattern.LANES, size, _KINDS[memory.access], lanes, where)


def _vector(register: int) -> tuple[int, int] | None:
    """The number and the bytes of a vector register; None for others."""
    for base, size in _VECTOR_BASES:
        if base <= register < base + 32:
            return register - base, size
    return None


# -- addresses


def _value(register: int, general: Any) -> int:
    if not register:
        return 0
    if register in (Register.RIP, Register.EIP):
        return 0  # iced's displacement is the address itself
    field, shift, mask = _PARTS[register]
    return int(getattr(general, field)) >> shift & mask


def address_of(where: Operand, general: Any) -> int:
    """The address of an operand, given the general registers before the instruction."""
    at = where.displacement + _value(where.base, general)
    if not where.vsib > 0:
        at += _value(where.scaled, general) * where.scale
    if where.bits == 32:
        at &= 0xFFFF_FFFF
    if where.segment:
        at += int(getattr(general, where.segment))
    return at & ALL_64


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 & 1 else value


def _mask(access: Access, machine: MachineState) -> int:
    """Which lanes are active, a bit for each."""
    register, lanes = access.where.mask, access.lanes
    if Register.K0 <= register <= Register.K7:
        return vector_registers.opmask(machine.vectors(), register - Register.K0)
    if Register.MM0 <= register <= Register.MM7:
        data = vector_registers.mmx(machine.vectors(), register - Register.MM0)
    else:
        found = _vector(register)
        assert found is not None
        data = vector_registers.vector(machine.vectors(), found[0])
    size = access.size
    return sum((data[(lane + 1) * size - 1] >> 7) << lane for lane in range(lanes))


def words_before(access: Access, machine: MachineState) -> list[int]:
    """The words of an access whose instruction is about to be executed. Of a repeated string
    operand the second is yet to come: see `words_after`."""
    where, general = access.where, machine.general
    pattern = access.pattern
    if pattern is Pattern.ONE:
        at = address_of(where, general)
        if where.offset:
            part = _PARTS[where.offset]
            bits = part.mask.bit_length()
            at += (_signed(_value(where.offset, general), bits) // (access.size * 8)) * access.size
        return [at & ALL_64]
    at = address_of(where, general)
    if pattern is Pattern.STRING:
        return [at, at]
    if pattern is Pattern.SIZED:
        return [at, _area_size(where, at, machine)]
    if pattern is not Pattern.LANES:
        return [at, _mask(access, machine) & (1 << access.lanes) - 1]
    if where.vsib < 0:  # one element, if any lane is active
        mask = vector_registers.opmask(machine.vectors(), where.mask - Register.K0)
        return [int(mask & (1 << -where.vsib) - 1 != 0), at]
    index = _vector(where.scaled)
    assert index is not None
    data, step = vector_registers.vector(machine.vectors(), index[0]), where.vsib
    base = where.displacement + _value(where.base, general)
    base += int(getattr(general, where.segment)) if where.segment else 0
    offsets = [
        int.from_bytes(data[lane * step : (lane + 1) * step], "little", signed=True) * where.scale
        for lane in range(access.lanes)
    ]
    return [_mask(access, machine) & (1 << access.lanes) - 1, *(base + offset & ALL_64 for offset in offsets)]


def words_after(access: Access, words: list[int], general: Any) -> list[int]:
    """The words of an access once its instruction is over, or interrupted, given the registers then."""
    if access.pattern is not Pattern.STRING:
        return words
    return [words[0], address_of(access.where, general)]


def _area_size(where: Operand, at: int, machine: MachineState) -> int:
    """The bytes of an XSAVE area that the requested components take."""
    general = machine.general
    wanted = (int(general.rdx) & 0xFFFF_FFFF) << 32 | int(general.rax) & 0xFFFF_FFFF
    wanted &= vector_registers.enabled(machine.vectors())
    compacted = where.compacted
    if where.restores:
        header = machine.read(at + 512, 16)  # XSTATE_BV, XCOMP_BV: SDM vol. 1, 13.4.2
        if len(header) == 16:
            compacted = bool(header[15] & 0x80)
    return vector_registers.area_size(wanted, compacted=compacted)
