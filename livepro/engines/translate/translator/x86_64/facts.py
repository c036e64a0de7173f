"""Facts about single x86-64 instructions that the translator needs, memoised by encoding."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from iced_x86 import (
    Code,
    ConstantOffsets,
    Instruction,
    InstructionInfoFactory,
    MemorySize,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
    RflagsBits,
)

from livepro.isa.x86_64.decoder import flow_of, is_rep
from livepro.model import Flow

ARITHMETIC: int = RflagsBits.OF | RflagsBits.SF | RflagsBits.ZF | RflagsBits.AF | RflagsBits.PF
"""What `inc` writes."""
CARRY: int = RflagsBits.CF
ALL: int = ARITHMETIC | CARRY

# A shift by a count of 0 leaves the flags alone, so it cannot be relied on to
# overwrite them; nor can a repeated compare that runs zero times.
_MAY_SKIP_FLAGS = frozenset(
    (
        Mnemonic.SHL, Mnemonic.SHR, Mnemonic.SAR, Mnemonic.SAL, Mnemonic.ROL, Mnemonic.ROR,
        Mnemonic.RCL, Mnemonic.RCR, Mnemonic.SHLD, Mnemonic.SHRD,
        Mnemonic.CMPSB, Mnemonic.CMPSW, Mnemonic.CMPSD, Mnemonic.CMPSQ,
        Mnemonic.SCASB, Mnemonic.SCASW, Mnemonic.SCASD, Mnemonic.SCASQ,
    )
)  # fmt: skip

# AF is documented as undefined after these, but every processor writes it
# (as 0) whatever it was before.
_LOGIC = frozenset((Mnemonic.AND, Mnemonic.OR, Mnemonic.XOR, Mnemonic.TEST))

# Division, and without operands of those that may look at what registers hold all but these.
_FAULTING = frozenset(
    (Mnemonic.DIV, Mnemonic.IDIV, Mnemonic.AAM, Mnemonic.UMONITOR, Mnemonic.RESERVEDNOP)  # 0F 0D: AMD faults
)
_HARMLESS = frozenset(
    (
        Mnemonic.NOP, Mnemonic.CBW, Mnemonic.CWDE, Mnemonic.CDQE, Mnemonic.CWD, Mnemonic.CDQ, Mnemonic.CQO,
        Mnemonic.CLC, Mnemonic.STC, Mnemonic.CMC, Mnemonic.CLD, Mnemonic.STD, Mnemonic.LAHF, Mnemonic.SAHF,
        Mnemonic.ENDBR64, Mnemonic.PAUSE, Mnemonic.LFENCE, Mnemonic.MFENCE, Mnemonic.SFENCE,
    )
)  # fmt: skip

# The segment base of gs is the translator's; these see or change it.
_SEGMENT_BASE = frozenset((Mnemonic.RDGSBASE, Mnemonic.WRGSBASE, Mnemonic.SWAPGS, Mnemonic.LGS))


class Kind(IntEnum):
    """How the translator treats an instruction."""

    PLAIN = 0  # copied
    RELATIVE = 1  # copied with a new displacement
    REP = 2  # copied, iterations counted
    SYSCALL = 3
    NATIVE = 4  # stepped at its own address
    JUMP = 5
    BRANCH = 6  # jcc
    COUNTED = 7  # loop, loope, loopne, jrcxz, jecxz: short displacement only
    CALL = 8
    INDIRECT_JUMP = 9
    INDIRECT_CALL = 10
    RETURN = 11
    INVALID = 12


class Facts(NamedTuple):
    """`reads` and `kills` are the flags read, and surely overwritten whatever they were.

    `displacement` is the offset in the encoding of a RIP-relative operand's
    displacement (0 if it has none). `number` is the value loaded into rax by a
    `mov` of a constant, -1 for other writes to rax, -2 where rax is not written.
    `immediate` is what a return pops besides its address. `registers_read`
    and `registers_killed` are masks of general registers read, and fully
    overwritten without being read. `faults` tells whether it may fault, as it touches memory
    (and so may fault), `writes` whether it may write it, `ends` whether it ends a basic block,
    `condition_falls` whether control may fall through such an end, `simple` whether
    it is just copied. `spot` says whether a counter may stand right before it
    because it overwrites what `inc` writes: 0 no, 1 yes, 2 yes and it cannot
    fault; `spot_all` the same for all arithmetic flags.
    """

    kind: Kind
    flow: Flow
    reads: int
    kills: int
    displacement: int
    number: int
    immediate: int
    condition: int
    registers_read: int
    registers_killed: int
    faults: bool
    writes: bool
    ends: bool
    condition_falls: bool
    simple: bool
    spot: int
    spot_all: int


_JUMPS = {
    Flow.JUMP: Kind.JUMP,
    Flow.CALL: Kind.CALL,
    Flow.INDIRECT_JUMP: Kind.INDIRECT_JUMP,
    Flow.INDIRECT_CALL: Kind.INDIRECT_CALL,
    Flow.TRAP: Kind.NATIVE,
    Flow.INVALID: Kind.INVALID,
}

_FAR = frozenset((MemorySize.SEG_PTR16, MemorySize.SEG_PTR32, MemorySize.SEG_PTR64))
_NEAR_RETURNS = frozenset((Code.RETNQ, Code.RETNQ_IMM16))

_NO_WRITE = frozenset((OpAccess.NONE, OpAccess.NO_MEM_ACCESS, OpAccess.READ, OpAccess.COND_READ))

_GENERAL = {
    getattr(Register, name): index
    for index, names in enumerate(
        (
            ("RAX", "EAX", "AX", "AL", "AH"), ("RCX", "ECX", "CX", "CL", "CH"),
            ("RDX", "EDX", "DX", "DL", "DH"), ("RBX", "EBX", "BX", "BL", "BH"),
            ("RSP", "ESP", "SP", "SPL"), ("RBP", "EBP", "BP", "BPL"),
            ("RSI", "ESI", "SI", "SIL"), ("RDI", "EDI", "DI", "DIL"),
            *((f"R{n}", f"R{n}D", f"R{n}W", f"R{n}L") for n in range(8, 16)),
        )
    )
    for name in names
}  # fmt: skip
_WHOLE = frozenset(
    getattr(Register, name)
    for name in (
        *("RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI"),
        *("EAX", "ECX", "EDX", "EBX", "ESP", "EBP", "ESI", "EDI"),
        *(f"R{n}" for n in range(8, 16)),
        *(f"R{n}D" for n in range(8, 16)),
    )
)


def _touches_memory(instruction: Instruction) -> bool:
    return (
        instruction.is_stack_instruction
        or instruction.is_string_instruction
        or any(
            instruction.op_kind(i) == OpKind.MEMORY
            and instruction.mnemonic not in (Mnemonic.LEA, Mnemonic.NOP)
            for i in range(instruction.op_count)
        )
    )


def _may_fault(instruction: Instruction) -> bool:
    """Whether an instruction may raise an exception, as far as can be told: not if it works on
    general registers alone and is none of the few that look at what these hold."""
    return (
        _touches_memory(instruction)
        or instruction.is_privileged
        or instruction.mnemonic in _FAULTING
        or any(
            instruction.op_kind(i) == OpKind.REGISTER and instruction.op_register(i) not in _GENERAL
            for i in range(instruction.op_count)
        )
        or (not instruction.op_count and instruction.mnemonic not in _HARMLESS)
    )


def _spot(kind: Kind, reads: int, kills: int, flags: int, faults: bool) -> int:
    if reads & flags or kills & flags != flags or kind >= Kind.NATIVE:
        return 0
    return 1 if faults else 2


def _condition(encoding: bytes, instruction: Instruction) -> int:
    """The condition of a jcc: the low nibble of its opcode, before an 8- or 32-bit displacement."""
    return encoding[-5 if instruction.is_jcc_near else -2] & 0xF


class FactTable:
    """Facts by encoding. Control transfers are the same whatever their displacement."""

    def __init__(self) -> None:
        self.known: dict[bytes, Facts] = {}
        self.branches: dict[bytes, Facts] = {}
        self._shapes: dict[bytes, Facts] = {}
        self._info = InstructionInfoFactory()

    def learn(self, encoding: bytes, instruction: Instruction, constants: ConstantOffsets | None) -> Facts:
        """Remember the facts of a decoded instruction, working them out if none of its
        shape (all but a RIP-relative displacement) is known.

        `constants` says where its displacement is in the encoding (None: it
        has none that matters).
        """
        displacement = 0
        if constants is not None and instruction.is_ip_rel_memory_operand:
            displacement = constants.displacement_offset
            shape = encoding[:displacement] + encoding[displacement + 4 :]
            facts = self._shapes.get(shape)
            if facts is None:
                facts = self._shapes[shape] = self._work_out(encoding, instruction, displacement)
        else:
            facts = self._work_out(encoding, instruction, 0)
        self.known[encoding] = facts
        return facts

    def _work_out(self, encoding: bytes, instruction: Instruction, displacement: int) -> Facts:
        flow = flow_of(instruction)
        kind = self._kind(instruction, flow)
        reads, kills = self._flags(instruction)
        read, killed, writes = self._operands(instruction)
        faults = _may_fault(instruction)
        number = self._number(instruction, read, killed)
        return Facts(
            kind=kind,
            flow=flow,
            reads=reads,
            kills=kills,
            displacement=displacement,
            number=number,
            immediate=instruction.immediate16 if instruction.code == Code.RETNQ_IMM16 else 0,
            condition=_condition(encoding, instruction) if kind is Kind.BRANCH else 0,
            registers_read=read,
            registers_killed=killed,
            faults=faults,
            writes=writes,
            ends=flow.ends_block,
            condition_falls=flow is Flow.BRANCH,
            simple=kind is Kind.PLAIN and number == -2,
            spot=_spot(kind, reads, kills, ARITHMETIC, faults),
            spot_all=_spot(kind, reads, kills, ALL, faults),
        )

    @staticmethod
    def _kind(instruction: Instruction, flow: Flow) -> Kind:
        if flow is Flow.SYSCALL:
            return Kind.SYSCALL if instruction.code == Code.SYSCALL else Kind.NATIVE
        if flow is Flow.RETURN:
            return Kind.RETURN if instruction.code in _NEAR_RETURNS else Kind.NATIVE
        if flow is Flow.BRANCH:
            return Kind.BRANCH if instruction.is_jcc_short_or_near else Kind.COUNTED
        if flow in _JUMPS:
            if instruction.op0_kind == OpKind.MEMORY and (
                instruction.memory_size in _FAR or instruction.segment_prefix == Register.GS
            ):
                return Kind.NATIVE
            return _JUMPS[flow]
        if instruction.segment_prefix == Register.GS or instruction.mnemonic in _SEGMENT_BASE:
            return Kind.NATIVE
        if (
            instruction.op_count
            and instruction.op0_kind == OpKind.REGISTER
            and instruction.op0_register == Register.GS
        ):
            return Kind.NATIVE
        if is_rep(instruction):
            return Kind.REP
        return Kind.RELATIVE if instruction.is_ip_rel_memory_operand else Kind.PLAIN

    @staticmethod
    def _flags(instruction: Instruction) -> tuple[int, int]:
        kills: int = instruction.rflags_written | instruction.rflags_cleared | instruction.rflags_set
        mnemonic = instruction.mnemonic
        if mnemonic in _LOGIC:
            kills |= RflagsBits.AF
        elif mnemonic in _MAY_SKIP_FLAGS and (
            instruction.op_count != 2
            or instruction.op1_kind == OpKind.REGISTER
            or (instruction.op1_kind == OpKind.IMMEDIATE8 and not instruction.immediate8 & 0x1F)
            or is_rep(instruction)
        ):
            kills = 0
        return instruction.rflags_read & ALL, kills & ALL

    def _operands(self, instruction: Instruction) -> tuple[int, int, bool]:
        """Masks of general registers read, and written as a whole without condition;
        whether memory is written."""
        read = killed = 0
        info = self._info.info(instruction)
        writes = any(used.access not in _NO_WRITE for used in info.used_memory())
        for used in info.used_registers():
            index = _GENERAL.get(used.register)
            if index is None:
                continue
            access = used.access
            if access == OpAccess.WRITE and used.register in _WHOLE:
                killed |= 1 << index
            elif access not in (OpAccess.NONE, OpAccess.NO_MEM_ACCESS):
                read |= 1 << index
        return read, killed & ~read, writes

    @staticmethod
    def _number(instruction: Instruction, read: int, killed: int) -> int:
        if instruction.code == Code.MOV_R32_IMM32 and instruction.op0_register == Register.EAX:
            return instruction.immediate32
        if instruction.code == Code.MOV_RM64_IMM32 and instruction.op0_register == Register.RAX:
            return max(-1, instruction.immediate32to64)
        return -1 if (read | killed) & 1 else -2
