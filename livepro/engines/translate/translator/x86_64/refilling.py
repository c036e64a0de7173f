"""What a block goes to that has no allowance left: it is given another one out of the thread's supply.

The block comes here with its flags in rax, its counter's number in rcx, and the program's own rax and
rcx saved; it goes back with the sign flag set if the thread must stop. When the supply is too small, the
thread itself takes back what counters have been allowed and have not used, so that it stops once in an
interval, and smaller allowances are given from then on; of a little, none (`allowances`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.counting.allowances import EVENLY, FEW, LARGEST_CHUNK
from livepro.engines.translate.translator.backend import Words
from livepro.engines.translate.translator.x86_64 import encode
from livepro.isa.access import ALL_64

_RAX, _RCX, _RDX, _RBX = range(4)
_S_RDX, _S_RAX, _S_RBX = layout.REFILL_SAVED
_COUNTERS, _MORE = layout.COUNTERS // 8, layout.MORE // 8
_BUDGET, _SUPPLY = layout.BUDGET // 8, layout.SUPPLY // 8
_GROUP_SHIFT = layout.GROUP.bit_length() - 1
_SIGN = 0x80  # SDM vol. 1, 3.4.3

_i32 = struct.Struct("<i").pack
_u32 = struct.Struct("<I").unpack_from

Read = Callable[[int, int], bytes]


class Refilling:
    """The code for one data window, at `data`, and what a tracer must know of it: offsets from which on
    something is done."""

    def __init__(self, data: int) -> None:
        self._data = data
        out = bytearray()
        self._refill(out)
        self._take_back(out)
        self._give_out(out)
        self.code = bytes(out)

    def _refill(self, out: bytearray) -> None:
        """Take as many executions as a block is allowed at once, or one, if there are no allowances."""
        out += encode.store_area(_RDX, _S_RDX)
        self.saved = len(out)
        out += encode.store_area(_RCX, layout.REFILL_CELL)
        self.named = len(out)
        out += b"\x89\xca\xc1\xea" + bytes((_GROUP_SHIFT,))  # mov edx, ecx; shr edx, _GROUP_SHIFT
        out += b"\x65\xc6\x82" + _i32(layout.TOUCHED) + b"\x01"  # mov byte gs:[rdx + touched], 1
        out += b"\x65\x48\x8b\x14\xcd" + _i32(layout.MORE)  # mov rdx, gs:[more of rcx]
        out += b"\x65\x48\x0f\xaf\x14\x25" + _i32(layout.PORTION)  # imul rdx, gs:[portion]
        out += b"\x48\xc1\xea" + bytes((layout.PORTION_SHIFT,))  # shr rdx, PORTION_SHIFT
        out += b"\x65\x48\x03\x14\x25" + _i32(layout.CHUNK)  # add rdx, gs:[chunk]
        self._again = len(out)
        out += encode.store_area(_RDX, layout.REFILL_TAKEN)
        out += b"\x8b\x0c\x8d" + _i32(self._data + layout.LENGTHS)  # mov ecx, [length of rcx]
        self._lengths = len(out) - 4
        out += b"\x48\x0f\xaf\xd1"  # imul rdx, rcx
        out += b"\x65\x48\x29\x14\x25" + _i32(layout.SUPPLY)  # sub gs:[supply], rdx
        self.charged = len(out)
        out += b"\x78\x00"  # js: too small
        behind = len(out)
        out += encode.load_area(_RCX, layout.REFILL_CELL) + encode.load_area(_RDX, layout.REFILL_TAKEN)
        out += b"\x65\x48\x01\x14\xcd" + _i32(layout.MORE)  # add gs:[more of rcx], rdx
        self.added = len(out)
        # The first of them is this execution, whether the block has counted it already or not.
        out += b"\x48\xf7\xda\x48\x83\xc2\x01"  # neg rdx; add rdx, 1
        out += b"\x65\x48\x89\x14\xcd" + _i32(layout.COUNTERS)  # mov gs:[counter of rcx], rdx
        self.given = len(out)
        out += b"\x31\xd2"  # xor edx, edx: not negative
        self.ends = len(out)
        out += encode.load_area(_RDX, _S_RDX) + encode.jump_area(layout.REFILL_RETURN)
        self.small = len(out)
        out[behind - 1] = self.small - behind
        out += b"\x65\x48\x01\x14\x25" + _i32(layout.SUPPLY)  # add gs:[supply], rdx
        self.refunded = len(out)
        out += b"\x75\x00"  # jnz: others may have left something
        behind = len(out)
        out += encode.load_area(_RDX, layout.REFILL_CELL)
        out += b"\x65\x48\xff\x04\xd5" + _i32(layout.MORE)  # inc gs:[more of rdx]
        self.one_counted = len(out)
        out += b"\x65\x48\xc7\x04\xd5" + _i32(layout.COUNTERS) + _i32(0)  # mov qword gs:[counter of rdx], 0
        self.one_cleared = len(out)
        out += encode.subtract_rcx(layout.BUDGET)
        self.one_charged = len(out)
        out += b"\xeb" + _back(self.ends, len(out) + 2)  # jmp
        out[behind - 1] = len(out) - behind

    def _take_back(self, out: bytearray) -> None:
        """Take allowances back. Leaves in rbx how many instructions the block that asks and those
        that had one have."""
        self.reclaims = len(out)
        out += encode.store_area(_RAX, _S_RAX) + encode.store_area(_RBX, _S_RBX)
        self.all_saved = len(out)
        out += encode.store_area(_RCX, layout.REFILL_LENGTH)
        out += b"\x89\xcb"  # mov ebx, ecx
        out += b"\x8b\x0c\x25" + _i32(self._data + layout.CELLS + 4)  # mov ecx, [behind the last group]
        group = len(out)
        out += b"\x3b\x0c\x25" + _i32(self._data + layout.CELLS)  # cmp ecx, [the first]
        out += b"\x7e\x00"  # jle: all are done
        behind = len(out)
        out += b"\x83\xe9\x01"  # sub ecx, 1
        out += b"\x65\x80\xb9" + _i32(layout.TOUCHED) + b"\x00"  # cmp byte gs:[rcx + touched], 0
        out += b"\x74" + _back(group, len(out) + 2)  # je
        out += b"\x83\xc1\x01\xc1\xe1" + bytes((_GROUP_SHIFT,))  # add ecx, 1; shl ecx, _GROUP_SHIFT
        counter = len(out)
        out += b"\x83\xe9\x01"  # sub ecx, 1
        out += b"\x65\x48\x8b\x04\xcd" + _i32(layout.COUNTERS)  # mov rax, gs:[counter of rcx]
        out += b"\x48\x85\xc0\x79\x00"  # test rax, rax; jns: no allowance
        none = len(out)
        out += b"\x8b\x14\x8d" + _i32(self._data + layout.LENGTHS)  # mov edx, [length of rcx]
        out += b"\x48\x01\xd3"  # add rbx, rdx
        out += b"\x48\x0f\xaf\xd0"  # imul rdx, rax: what it has not used, negative
        out += b"\x65\x48\x01\x04\xcd" + _i32(layout.MORE)  # add gs:[more of rcx], rax
        self.noted = len(out)
        out += b"\x65\x48\xc7\x04\xcd" + _i32(layout.COUNTERS) + _i32(0)  # mov qword gs:[counter], 0
        self.cleared = len(out)
        out += b"\x65\x48\x29\x14\x25" + _i32(layout.SUPPLY)  # sub gs:[supply], rdx
        self.returned = len(out)
        out[none - 1] = self.returned - none
        out += b"\xf7\xc1" + _i32(layout.GROUP - 1)  # test ecx, GROUP - 1
        out += b"\x75" + _back(counter, len(out) + 2)  # jnz: the next one
        out += b"\xc1\xe9" + bytes((_GROUP_SHIFT,))  # shr ecx, _GROUP_SHIFT
        out += b"\xeb" + _back(group, len(out) + 2)  # jmp
        out[behind - 1] = len(out) - behind

    def _give_out(self, out: bytearray) -> None:
        """Say what is allowed from now on, and let the block try again."""
        out += encode.load_area(_RAX, layout.SUPPLY)
        out += b"\x48\x3d" + _i32(FEW) + b"\x7c\x00"  # cmp rax, FEW; jl: none are given out
        few = len(out)
        out += b"\x65\x48\x3b\x04\x25" + _i32(layout.REFILL_LENGTH)  # cmp rax, gs:[length]
        out += b"\x7c\x00"  # jl: likewise
        too_few = len(out)
        out += b"\x48\x89\xc1"  # mov rcx, rax
        out += b"\x65\x48\x0f\xaf\x0c\x25" + _i32(layout.RATE)  # imul rcx, gs:[rate]
        out += b"\x48\xc1\xe9" + bytes((layout.RATE_SHIFT,))  # shr rcx, RATE_SHIFT
        out += encode.store_area(_RCX, layout.PORTION)
        out += b"\x65\x48\x39\x1c\x25" + _i32(layout.REFILL_EACH) + b"\x73\x09"  # cmp gs:[each], rbx; jae
        out += encode.store_area(_RBX, layout.REFILL_EACH)
        out += b"\x48\x69\xdb" + _i32(EVENLY)  # imul rbx, rbx, EVENLY
        out += b"\x31\xd2\x48\xf7\xf3"  # xor edx, edx; div rbx
        out += b"\x48\x3d" + _i32(LARGEST_CHUNK) + b"\x76\x05"  # cmp rax, LARGEST_CHUNK; jbe
        out += b"\xb8" + _i32(LARGEST_CHUNK)  # mov eax, LARGEST_CHUNK
        out += b"\x83\xf8\x01\x83\xd0\x00"  # cmp eax, 1; adc eax, 0: not 0
        out += encode.store_area(_RAX, layout.CHUNK)
        out += b"\xeb\x00"
        done = len(out)
        out[few - 1], out[too_few - 1] = done - few, done - too_few
        out += b"\x65\x48\x01\x04\x25" + _i32(layout.BUDGET)  # add gs:[budget], rax
        self.moved = len(out)
        out += encode.store_area_zero(layout.SUPPLY) + encode.store_area_immediate(layout.REFILL_ENDED, 1)
        out[done - 1] = len(out) - done
        out += encode.load_area(_RAX, _S_RAX) + encode.load_area(_RBX, _S_RBX)
        out += encode.load_area(_RCX, layout.REFILL_CELL)
        # For all that is known it has executed most: no more than the others, so that it can have that.
        out += encode.load_area(_RDX, layout.CHUNK)
        out += encode.jump(self._again - len(out) - 5)

    def finish(self, registers: Any, words: Words, offset: int, read: Read) -> None:
        """Bring a thread that is at an offset here back to the block that it came from, its execution
        counted. What has been done by then is made use of; if that is nothing, it takes this one only."""
        cell = int(words[layout.REFILL_CELL // 8]) if offset >= self.named else registers.rcx
        lengths = _u32(read(registers.rip - offset + self._lengths, 4))[0]
        length = _u32(read(lengths + cell * 4, 4))[0]
        taken = int(words[layout.REFILL_TAKEN // 8])
        negative = bool(registers.eflags & _SIGN)
        if self.charged <= offset < self.small and not int(words[_SUPPLY]) >> 63:
            if offset < self.added:
                _add(words, _MORE + cell, taken)
            if offset < self.given:
                words[_COUNTERS + cell] = 1 - taken & ALL_64
            if offset < self.ends:
                negative = False
        elif self.one_counted <= offset < self.reclaims:
            if offset < self.one_cleared:
                words[_COUNTERS + cell] = 0
            if offset < self.one_charged:
                negative = _add(words, _BUDGET, -length)
        else:
            if offset in (self.charged, self.small):
                _add(words, _SUPPLY, taken * length)
            elif offset >= self.reclaims:
                self._abandon(registers, words, offset)
            negative = _take_one(words, cell, length)
        registers.eflags = registers.eflags & ~_SIGN | (_SIGN if negative else 0)
        if offset >= self.saved:
            registers.rdx = int(words[_S_RDX // 8])
        registers.rip = int(words[layout.REFILL_RETURN // 8])

    def _abandon(self, registers: Any, words: Words, offset: int) -> None:
        """End what is begun there of taking allowances back."""
        if self.noted <= offset < self.returned:
            if offset < self.cleared:
                words[_COUNTERS + registers.rcx] = 0
            _add(words, _SUPPLY, -registers.rdx)
        elif offset == self.moved:
            words[_SUPPLY] = 0
        if offset >= self.all_saved:
            registers.rax, registers.rbx = int(words[_S_RAX // 8]), int(words[_S_RBX // 8])


def _take_one(words: Words, cell: int, length: int) -> bool:
    """Count one execution of a block; whether its thread must stop."""
    at, shift = layout.TOUCHED // 8 + (cell >> _GROUP_SHIFT) // 8, (cell >> _GROUP_SHIFT) % 8 * 8
    words[at] = int(words[at]) & ~(0xFF << shift) | 1 << shift
    _add(words, _MORE + cell, 1)
    words[_COUNTERS + cell] = 0
    supply = int(words[_SUPPLY])
    if supply >= length:
        words[_SUPPLY] = supply - length
        return False
    words[_SUPPLY] = 0
    return _add(words, _BUDGET, supply - length)


def _add(words: Words, at: int, amount: int) -> bool:
    """Add to a word; whether it is negative then."""
    result = words[at] = int(words[at]) + amount & ALL_64
    return bool(result >> 63)


def _back(to: int, end: int) -> bytes:
    """The displacement of a short jump that ends at `end`, backward."""
    return struct.pack("b", to - end)


REFILLING = Refilling(0)
"""Offsets are the same wherever the data window is."""
