"""x86-64 bytes to basic blocks: iced-x86 finds lengths and control flow."""

from __future__ import annotations

from iced_x86 import Code, Decoder, DecoderError, FlowControl, Instruction, Register

from livepro.isa.base import CodeBlock, Quirk
from livepro.model import Flow

# iced counts syscall, sysenter and vmcall among the calls and int n, int3 and
# int1 among the interrupts; `_EXCEPTIONS` below says how livepro takes them.
_FLOWS = {
    FlowControl.NEXT: Flow.NEXT,
    FlowControl.UNCONDITIONAL_BRANCH: Flow.JUMP,
    FlowControl.INDIRECT_BRANCH: Flow.INDIRECT_JUMP,
    FlowControl.CONDITIONAL_BRANCH: Flow.BRANCH,
    FlowControl.RETURN: Flow.RETURN,
    FlowControl.CALL: Flow.CALL,
    FlowControl.INDIRECT_CALL: Flow.INDIRECT_CALL,
    FlowControl.INTERRUPT: Flow.TRAP,
    FlowControl.XBEGIN_XABORT_XEND: Flow.TRAP,
    FlowControl.EXCEPTION: Flow.TRAP,
}

_EXCEPTIONS = {
    Code.SYSCALL: Flow.SYSCALL,
    Code.SYSENTER: Flow.TRAP,  # returns to the 32-bit vDSO, which a 64-bit process lacks
    Code.VMCALL: Flow.TRAP,
    Code.XEND: Flow.NEXT,
    Code.HLT: Flow.TRAP,  # privileged: a general protection fault in user mode
    Code.INVALID: Flow.INVALID,
}

_SYSCALL_VECTOR = 0x80  # IA32_SYSCALL_VECTOR, arch/x86/include/asm/irq_vectors.h

_SHADOWING = frozenset((Code.MOV_SREG_RM16, Code.MOV_SREG_R32M16, Code.MOV_SREG_R64M16))
"""Loads of SS hold back debug traps until the next instruction has run (SDM vol. 3, 6.8.3)."""


def flow_of(instruction: Instruction) -> Flow:
    """How a decoded instruction passes control on."""
    code = instruction.code
    special = _EXCEPTIONS.get(code)
    if special is not None:
        return special
    if code == Code.INT_IMM8 and instruction.immediate8 == _SYSCALL_VECTOR:
        return Flow.SYSCALL
    return _FLOWS[instruction.flow_control]


def is_rep(instruction: Instruction) -> bool:
    """Whether the instruction repeats by its count register.

    F2 and F3 repeat string instructions only; elsewhere they select another
    instruction (`pause`, SSE) or are ignored (`rep ret`).
    """
    return instruction.is_string_instruction and (instruction.has_rep_prefix or instruction.has_repne_prefix)


def _quirk_of(instruction: Instruction, flow: Flow) -> Quirk:
    if flow is Flow.SYSCALL:
        return Quirk.SYSCALL
    code = instruction.code
    if code in (Code.PUSHFW, Code.PUSHFQ):
        return Quirk.PUSH_FLAGS
    if code in (Code.POPFW, Code.POPFQ):
        return Quirk.POP_FLAGS
    if code in _SHADOWING and instruction.op0_register == Register.SS:
        return Quirk.SHADOW
    return Quirk.NONE


def decode_block(code: bytes, address: int) -> CodeBlock:
    """Decode from `address` to the first terminator or the end of `code`.

    Undecodable bytes end the block: as a block of their own if they come
    first (one INVALID instruction of length 1), else before them.
    """
    decoder = Decoder(64, code, ip=address)
    addresses = [address]
    flows: list[Flow] = []
    reps: list[bool] = []
    quirks: list[Quirk] = []
    target: int | None = None
    truncated = False
    at = address
    while True:
        if not decoder.can_decode:
            truncated = True
            break
        instruction = decoder.decode()
        flow = flow_of(instruction)
        if flow is Flow.INVALID:
            if decoder.last_error == DecoderError.NO_MORE_BYTES:
                truncated = True
                break
            if flows:
                break
            at += 1
        else:
            at = instruction.next_ip
        addresses.append(at)
        flows.append(flow)
        reps.append(is_rep(instruction))
        quirks.append(_quirk_of(instruction, flow))
        if flow.ends_block:
            if flow in (Flow.JUMP, Flow.BRANCH, Flow.CALL):
                target = instruction.near_branch_target
            break
    return CodeBlock(
        address=address,
        code=code[: at - address],
        addresses=tuple(addresses),
        flows=tuple(flows),
        reps=tuple(reps),
        quirks=tuple(quirks),
        target=target,
        truncated=truncated,
    )
