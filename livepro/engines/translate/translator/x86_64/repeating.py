"""Copies of rep instructions, whose iterations are counted besides: one is one instruction."""

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Emitted
from livepro.engines.translate.translator.x86_64 import encode

_S_REP, _S_REP_COUNT = layout.SPILL[2:4]

# rep movs/stos/lods/ins/outs run their count down to zero; these may stop early.
_EARLY_EXIT_OPCODES = frozenset((0xA6, 0xA7, 0xAE, 0xAF))

_NOT_RCX = b"\x48\xf7\xd1"
_MOV_ECX_ECX = b"\x89\xc9"  # clears the upper half


def _adjust_iterations(*, short: bool, refund: bool) -> bytes:
    """Add what the count register holds to the thread's rep iterations, or take it off,
    leaving flags alone. `short` says that the count is ecx (address-size prefix)."""
    out = encode.store_area(encode.RAX, _S_REP) + encode.load_area(encode.RAX, layout.REP_ITERATIONS)
    if short:
        out += encode.store_area(encode.RCX, _S_REP_COUNT) + _MOV_ECX_ECX
    if refund:
        out += _NOT_RCX + b"\x48\x8d\x44\x08\x01"  # lea rax, [rax + rcx + 1]: minus the count
    else:
        out += b"\x48\x8d\x04\x08"  # lea rax, [rax + rcx]
    if short:
        out += encode.load_area(encode.RCX, _S_REP_COUNT)
    elif refund:
        out += _NOT_RCX
    return out + encode.store_area(encode.RAX, layout.REP_ITERATIONS) + encode.load_area(encode.RAX, _S_REP)


_REP = {
    (short, refund): _adjust_iterations(short=short, refund=refund)
    for short in (False, True)
    for refund in (False, True)
}


def repeat(emitted: Emitted, encoding: bytes, index: int) -> None:
    """Copy a rep instruction, the `index`-th of its block; iterations that it has not made are taken off
    behind it."""
    out = emitted.code
    short = 0x67 in encoding[:-1]
    out += _REP[short, False]
    emitted.reps = {**emitted.reps, len(out): index}
    out += encoding
    if encoding[-1] in _EARLY_EXIT_OPCODES:
        out += _REP[short, True]
