"""AArch64 words to basic blocks, straight from the fixed 32-bit encodings.

Section numbers are those of the Arm Architecture Reference Manual for A-profile
(DDI 0487), C4.1 "A64 instruction set encoding". Its issues renumber the
subsections, so they are named by their titles.

What counts as an instruction: C4.1, table "Main encoding table", splits the
words by op0 (bits 28:25) and bit 31. Words of the spaces that it reserves or
leaves unallocated, and words of "Branches, Exception Generating and System
instructions" that no instruction has, are INVALID, but for UDF, which is a
TRAP. Every word of the other spaces (SME, SVE, data processing, loads and
stores, scalar floating-point and Advanced SIMD) is taken for an instruction
that goes on to the next: extensions keep filling them, only the processor
knows which it has, and one that it lacks raises SIGILL where it stands, which
the engines see as a block left early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from livepro.isa.aarch64.encoding import signed
from livepro.isa.base import CodeBlock, Quirk
from livepro.model import Flow

Decoded = tuple[Flow, int | None]
"""Control flow of a word, and the byte distance to its target if it is direct."""

_NEXT: Final[Decoded] = (Flow.NEXT, None)
_INVALID: Final[Decoded] = (Flow.INVALID, None)
_TRAP: Final[Decoded] = (Flow.TRAP, None)


def _reserved(word: int) -> Decoded:
    """Main encoding table, op0 0000, bit 31 clear: "Reserved" holds UDF only."""
    return _TRAP if word >> 16 == 0 else _INVALID


def _unallocated(word: int) -> Decoded:
    return _INVALID


def _branch_immediate(word: int) -> Decoded:
    """ "Unconditional branch (immediate)": B and BL, imm26 in words."""
    return (Flow.CALL if word >> 31 else Flow.JUMP), signed(word, 26) * 4


def _compare_and_branch(word: int) -> Decoded:
    """ "Compare and branch (immediate)" and "Conditional branch (immediate)": imm19 at 23:5.

    Bit 4 of the latter tells BC.cond (FEAT_HBC) from B.cond. The conditions AL
    and NV branch always and yet are conditional branches by their encoding.
    """
    return Flow.BRANCH, signed(word >> 5, 19) * 4


def _test_and_branch(word: int) -> Decoded:
    """ "Test and branch (immediate)": TBZ and TBNZ, imm14 at 18:5."""
    return Flow.BRANCH, signed(word >> 5, 14) * 4


def _compare_registers_and_branch(word: int) -> Decoded:
    """ "Compare and branch (register)" (FEAT_CMPBR): CB<cc>, CBB<cc>, CBH<cc>; imm9 at 13:5."""
    size = word >> 14 & 3  # 0: word or doubleword by bit 31; 2: byte; 3: halfword
    if word >> 21 & 7 in (4, 5) or size == 1 or (size and word >> 31):
        return _INVALID
    return Flow.BRANCH, signed(word >> 5, 9) * 4


def _compare_immediate_and_branch(word: int) -> Decoded:
    """ "Compare and branch (immediate)" of FEAT_CMPBR: CB<cc> with imm6 at 20:15, imm9 at 13:5."""
    if word >> 21 & 7 in (4, 5) or word >> 14 & 1:
        return _INVALID
    return Flow.BRANCH, signed(word >> 5, 9) * 4


def _return_with_immediate(word: int) -> Decoded:
    """ "Miscellaneous branch (immediate)" (FEAT_PAuth_LR): RETAASPPC, RETABSPPC.

    Their label goes into the authentication code, not into the pc.
    """
    return (Flow.RETURN, None) if word & 0xFFC0001F == 0x5500001F else _INVALID


def _exception(word: int) -> Decoded:
    """ "Exception generation": opc at 23:21, op2 at 4:2, LL at 1:0."""
    opc, op2, ll = word >> 21 & 7, word >> 2 & 7, word & 3
    if op2:
        return _INVALID
    if opc == 0 and ll == 1:
        return Flow.SYSCALL, None  # SVC
    if opc == 0 and ll:  # HVC, SMC
        return _TRAP
    if opc in (1, 2, 3) and ll == 0:  # BRK, HLT, TCANCEL
        return _TRAP
    return _TRAP if opc == 5 and ll else _INVALID  # DCPS1, DCPS2, DCPS3


def _system(word: int) -> Decoded:
    """Hints, barriers, PSTATE, system instructions and registers: all go on."""
    return _NEXT


def _branch_register(word: int) -> Decoded:
    """ "Unconditional branch (register)": opc at 24:21, op2 at 20:16, op3 at 15:10, Rn, op4."""
    opc, op3, rn, op4 = word >> 21 & 15, word >> 10 & 63, word >> 5 & 31, word & 31
    if word >> 16 & 31 != 31:
        return _INVALID
    signed = op3 in (2, 3)  # with pointer authentication, key A or B
    plain = op3 == 0 and op4 == 0
    flow = Flow.INVALID
    if opc in (0, 1):  # BR, BLR; BRAAZ, BRABZ, BLRAAZ, BLRABZ
        if plain or (signed and op4 == 31):
            flow = (Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL)[opc]
    elif opc == 2:  # RET; RETAA, RETAB; RETAASPPCR, RETABSPPCR name a register in op4
        if plain or (signed and rn == 31):
            flow = Flow.RETURN
    elif opc == 4:  # ERET, ERETAA, ERETAB
        if rn == 31 and (plain or (signed and op4 == 31)):
            flow = Flow.TRAP
    elif opc == 5:  # DRPS
        if rn == 31 and plain:
            flow = Flow.TRAP
    elif opc in (8, 9) and signed:  # BRAA, BRAB, BLRAA, BLRAB
        flow = (Flow.INDIRECT_JUMP, Flow.INDIRECT_CALL)[opc - 8]
    return flow, None


def _handler(top: int) -> Callable[[int], Decoded] | None:
    """Who decodes the words with bits 31:24 equal to `top`; None where they all go on."""
    op0 = top >> 1 & 15
    if op0 == 0 and top < 0x80:
        return _reserved
    if op0 in (1, 3):
        return _unallocated
    if top & 0x1C != 0x14:  # not "Branches, Exception Generating and System instructions"
        return None
    if top & 0x7C == 0x14:
        return _branch_immediate
    either_size = {
        0x34: _compare_and_branch,
        0x35: _compare_and_branch,
        0x36: _test_and_branch,
        0x37: _test_and_branch,
        0x74: _compare_registers_and_branch,
        0x75: _compare_immediate_and_branch,
    }
    if top & 0x7F in either_size:
        return either_size[top & 0x7F]
    exact = {
        0x54: _compare_and_branch,
        0x55: _return_with_immediate,
        0xD4: _exception,
        0xD5: _system,
        0xD6: _branch_register,
        0xD7: _branch_register,
    }
    return exact.get(top, _unallocated)


_HANDLERS: Final = tuple(_handler(top) for top in range(256))


def _begins_exclusive(word: int) -> bool:
    """ "Load/store exclusive register", "... pair" and their unprivileged twins (FEAT_LSUI): LDXR
    and family. Bits 29:25 are 00100, bit 23 is clear, bit 22 (load) set; with bit 21 set
    the pair needs bit 31, for CASP has it clear."""
    return word & 0x3EC00000 == 0x08400000 and (word & 0x00200000 == 0 or word >> 31 == 1)


_EXCLUSIVE_TOPS: Final = frozenset((0x08, 0x48, 0x88, 0xC8, 0x09, 0x49, 0x89, 0xC9))


def decode_word(word: int) -> Decoded:
    """How `word` (the encoding as a number) passes control on, and the distance in bytes
    from it to its direct target (None without one)."""
    handler = _HANDLERS[word >> 24]
    return _NEXT if handler is None else handler(word)


def quirk_of(word: int) -> Quirk:
    """What single-stepping over `word` needs."""
    top = word >> 24
    if top in _EXCLUSIVE_TOPS and _begins_exclusive(word):
        return Quirk.EXCLUSIVE
    return Quirk.SYSCALL if top == 0xD4 and decode_word(word)[0] is Flow.SYSCALL else Quirk.NONE


def decode_block(code: bytes, address: int) -> CodeBlock:
    """Decode from `address` to the first terminator or the end of `code`.

    Undecodable words end the block: as a block of their own if they come first
    (one INVALID instruction of length 4), else before them. Up to three bytes
    behind the last whole word are left for the next read (`truncated`).
    """
    count = len(code) // 4
    words = memoryview(code)[: count * 4].cast("I")
    flows: list[Flow] = []
    quirks: list[Quirk] = []
    target: int | None = None
    truncated = True
    for word in words:
        top = word >> 24
        handler = _HANDLERS[top]
        if handler is None:
            flows.append(Flow.NEXT)
            exclusive = top in _EXCLUSIVE_TOPS and _begins_exclusive(word)
            quirks.append(Quirk.EXCLUSIVE if exclusive else Quirk.NONE)
            continue
        flow, distance = handler(word)
        if flow is Flow.INVALID and flows:
            truncated = False
            break
        flows.append(flow)
        quirks.append(Quirk.SYSCALL if flow is Flow.SYSCALL else Quirk.NONE)
        if flow.ends_block:
            truncated = False
            if distance is not None:
                target = address + 4 * (len(flows) - 1) + distance & 0xFFFF_FFFF_FFFF_FFFF
            break
    length = len(flows)
    return CodeBlock(
        address=address,
        code=code[: length * 4],
        addresses=tuple(range(address, address + 4 * length + 1, 4)),
        flows=tuple(flows),
        reps=(False,) * length,
        quirks=tuple(quirks),
        target=target,
        truncated=truncated,
    )
