"""Which flags no instruction will read: an engine may use them between instructions.

A counter may be added where the arithmetic flags are overwritten before they
are read. When an instruction on the way there faults, a signal handler can see
what the counter left in them; nothing else can. Such flags are not compared.
"""

from __future__ import annotations

from iced_x86 import Decoder, FlowControl, RflagsBits

from .code import Assembled

_PLACES = {
    RflagsBits.CF: 0,
    RflagsBits.PF: 2,
    RflagsBits.AF: 4,
    RflagsBits.ZF: 6,
    RflagsBits.SF: 7,
    RflagsBits.OF: 11,
}
_MOST = 64  # instructions looked at


def dead_flags(code: Assembled, address: int) -> int:
    """The bits of EFLAGS that the code from `address` on overwrites before it reads them.

    Follows the straight line and direct jumps; 0 for an address outside `code`.
    """
    read = written = 0
    for _ in range(_MOST):
        start = address - code.address
        if not 0 <= start < len(code.code):
            break
        instruction = Decoder(64, code.code[start:], ip=address).decode()
        read |= instruction.rflags_read & ~written
        written |= instruction.rflags_modified & ~read
        if instruction.flow_control == FlowControl.UNCONDITIONAL_BRANCH:
            address = instruction.near_branch_target
        elif instruction.flow_control == FlowControl.NEXT and instruction.len:
            address = instruction.next_ip
        else:
            break
    return sum(1 << place for bit, place in _PLACES.items() if written & bit)
