"""One x86-64 encoding to everything livepro says about it.

iced-x86 knows every encoding that capstone knows and the newer ones, and its
tables are data rather than prose, so it is the only source here; capstone is
the referee that the tests call.
"""

from __future__ import annotations

from functools import cache

from iced_x86 import (
    Decoder,
    Formatter,
    FormatterSyntax,
    InstructionInfoFactory,
    OpAccess,
    OpKind,
    Register,
)
from iced_x86 import Instruction as Decoded

from livepro.isa.x86_64.category import category, opcode_name
from livepro.isa.x86_64.decoder import flow_of, is_rep
from livepro.isa.x86_64.form import Form, form_of
from livepro.isa.x86_64.itypes import itypes
from livepro.isa.x86_64.simd import simd_facts
from livepro.model import Instruction

_READS = frozenset((OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))
_WRITES = frozenset((OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE))


@cache
def describe(code: bytes) -> Instruction:
    """Facts about the one instruction that `code` begins with.

    Bytes that are no instruction, or not a whole one, are an INVALID
    instruction of all of `code`. Memory accesses include those of the stack
    (`push` writes, `ret` reads) and conditional ones (a masked store writes, a
    `rep movsb` reads and writes whatever its count); a prefetch accesses none.
    """
    decoder = Decoder(64, code)
    decoded = decoder.decode()
    if decoded.is_invalid:
        return Instruction.undecodable(code)
    return _with_code(_shape(decoded), code[: decoded.len])


def _shape(decoded: Decoded) -> Instruction:
    """The facts of an instruction, worked out once for all that differ only in
    registers, displacements and immediates: no fact depends on these."""
    flow, rep = flow_of(decoded), is_rep(decoded)
    kinds = tuple(decoded.op_kind(operand) for operand in range(decoded.op_count))
    masked = decoded.op_mask != Register.NONE
    key = (decoded.code, kinds, masked, flow, rep)
    known = _shapes().get(key)
    if known is not None:
        return known
    form = form_of(decoded.code)
    opcode, group = _names(form)
    reads, writes = _accesses(decoded)
    known = _shapes()[key] = Instruction(
        code=b"",
        mnemonic=_mnemonic(form),
        opcode=opcode,
        form=form.text,
        category=group,
        flow=flow,
        rep=rep,
        reads_memory=reads,
        writes_memory=writes,
        itypes=itypes(opcode, group, reads, writes),
        simd=simd_facts(form, OpKind.MEMORY in kinds, writes, masked),
        register_move=opcode == "MOV" and kinds == (OpKind.REGISTER, OpKind.REGISTER),
    )
    return known


def _with_code(shape: Instruction, code: bytes) -> Instruction:
    """`dataclasses.replace(shape, code=code)`, three times as fast."""
    return Instruction(
        code,
        shape.mnemonic,
        shape.opcode,
        shape.form,
        shape.category,
        shape.flow,
        shape.rep,
        shape.reads_memory,
        shape.writes_memory,
        shape.itypes,
        shape.simd,
        shape.register_move,
    )


def disassemble(code: bytes, address: int) -> str:
    """The instruction that `code` begins with in Intel syntax, its targets and
    rip-relative operands as seen from `address`; ``(bad)`` if there is none."""
    decoded = Decoder(64, code, ip=address).decode()
    return str(_formatter().format(decoded))


def assembly(code: bytes, address: int) -> str:
    """The instruction that `code` begins with in AT&T syntax, with its displacement from the program
    counter as it is encoded, a branch's target as a symbol; empty if there is none."""
    decoded = Decoder(64, code, ip=address).decode()
    if decoded.is_invalid:
        return ""
    # LLVM does not know the hints of branches, which no processor since the Pentium 4 heeds.
    text = str(_gas_formatter().format(decoded)).replace(",pt ", " ").replace(",pn ", " ")
    near = decoded.op_count and decoded.op0_kind in _NEAR_BRANCHES
    return f"{text.rpartition(' ')[0]} L{decoded.near_branch_target:x}" if near else text


_NEAR_BRANCHES = (OpKind.NEAR_BRANCH16, OpKind.NEAR_BRANCH32, OpKind.NEAR_BRANCH64)


@cache
def _gas_formatter() -> Formatter:
    formatter = Formatter(FormatterSyntax.GAS)
    formatter.rip_relative_addresses = False
    formatter.hex_prefix = "0x"
    formatter.hex_suffix = ""
    formatter.small_hex_numbers_in_decimal = True
    formatter.space_after_operand_separator = True
    formatter.branch_leading_zeros = False
    return formatter


@cache
def _names(form: Form) -> tuple[str, str]:
    return opcode_name(form), category(form)


def _mnemonic(form: Form) -> str:
    """iced names the undocumented encodings of nop after their reservation."""
    return "nop" if form.mnemonic in ("RESERVEDNOP", "NOPW", "NOPD", "NOPQ") else form.mnemonic.lower()


def _accesses(decoded: Decoded) -> tuple[bool, bool]:
    """Whether the instruction may read and may write memory."""
    used = {memory.access for memory in _information().info(decoded).used_memory()}
    return not _READS.isdisjoint(used), not _WRITES.isdisjoint(used)


@cache
def _shapes() -> dict[tuple[object, ...], Instruction]:
    return {}


@cache
def _information() -> InstructionInfoFactory:
    return InstructionInfoFactory()


@cache
def _formatter() -> Formatter:
    formatter = Formatter(FormatterSyntax.INTEL)
    formatter.rip_relative_addresses = False
    formatter.hex_prefix = "0x"
    formatter.hex_suffix = ""
    formatter.small_hex_numbers_in_decimal = True
    formatter.space_after_operand_separator = True
    formatter.show_branch_size = False
    formatter.branch_leading_zeros = False
    return formatter
