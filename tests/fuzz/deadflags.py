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

    Follows the straight line, direct jumps and calls, and both ways of a branch; 0 for an address outside
    `code`.
    """
    dead = _overwritten(code, address, 0, 0, _MOST)
    return sum(1 << place for bit, place in _PLACES.items() if dead & bit)


def _overwritten(code: Assembled, address: int, read: int, written: int, most: int) -> int:
    """`written`, and what else the code from `address` on overwrites that is not `read` before."""
    for left in range(most, 0, -1):
        start = address - code.address
        if not 0 <= start < len(code.code):
            break
        instruction = Decoder(64, code.code[start:], ip=address).decode()
        read |= instruction.rflags_read & ~written
        written |= instruction.rflags_modified & ~read
        flow = instruction.flow_control
        if flow in (FlowControl.UNCONDITIONAL_BRANCH, FlowControl.CALL):
            address = instruction.near_branch_target
        elif flow == FlowControl.CONDITIONAL_BRANCH:
            ways = instruction.near_branch_target, instruction.next_ip
            one, other = (_overwritten(code, way, read, written, left // 2) for way in ways)
            return one & other
        elif flow == FlowControl.NEXT and instruction.len:
            address = instruction.next_ip
        else:
            break
    return written
