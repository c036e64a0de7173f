"""Allowances taken back by the thread itself, so that it stops once in an interval.

A block for which the supply is too small comes here, its flags in rax and the program's own rcx and
rax saved, before it tries again. What counters have been allowed and have not used goes back to the supply,
and smaller allowances are given from then on; of a little, none (`livepro.engines.translate.allowances`).
"""

from __future__ import annotations

import struct
from typing import Any

from livepro.engines.translate import layout
from livepro.engines.translate.allowances import FEW, IN_ALLOWANCES, LARGEST_CHUNK
from livepro.engines.translate.backend import Words
from livepro.engines.translate.x86_64 import encode

_RAX, _RCX, _RDX, _RBX = range(4)
_BORROWED = tuple(zip((_RAX, _RBX, _RDX), layout.RECLAIM_SAVED, strict=True))
_NAMES = {_RAX: "rax", _RBX: "rbx", _RDX: "rdx"}
_MASK = (1 << 64) - 1

_i32 = struct.Struct("<i").pack


class Reclaiming:
    """The code for one data window, at `data`, and what a tracer must know of it: the offsets from
    which on registers are saved, and between which a counter is half done."""

    def __init__(self, data: int) -> None:
        out = bytearray(encode.store_area(_RCX, layout.RECLAIM_RETURN))
        for register, word in _BORROWED:
            out += encode.store_area(register, word)
        self.saved = len(out)
        # mov ebx, gs:[asking]: instructions of the block that asks and of those that had an allowance
        out += b"\x65\x8b\x1c\x25" + _i32(layout.RECLAIM_ASKING)
        out += b"\x8b\x0c\x25" + _i32(data + layout.CELLS + 4)  # mov ecx, [behind the last counter]
        again = len(out)
        out += b"\x3b\x0c\x25" + _i32(data + layout.CELLS)  # cmp ecx, [the first]
        out += b"\x7e\x00"  # jle: all are done
        ends = len(out)
        out += b"\x83\xe9\x01"  # sub ecx, 1
        out += b"\x65\x48\x8b\x04\xcd" + _i32(layout.COUNTERS)  # mov rax, gs:[counter of rcx]
        out += b"\x48\x85\xc0\x79" + _back(again, len(out) + 5)  # test rax, rax; jns: no allowance
        out += b"\x8b\x14\x8d" + _i32(data + layout.LENGTHS)  # mov edx, [length of rcx]
        out += b"\x48\x01\xd3"  # add rbx, rdx
        out += b"\x48\x0f\xaf\xd0"  # imul rdx, rax: what it has not used, negative
        out += b"\x65\x48\x01\x04\xcd" + _i32(layout.MORE)  # add gs:[more of rcx], rax
        self.noted = len(out)
        out += b"\x65\x48\xc7\x04\xcd" + _i32(layout.COUNTERS) + _i32(0)  # mov qword gs:[counter], 0
        self.cleared = len(out)
        out += b"\x65\x48\x29\x14\x25" + _i32(layout.SUPPLY)  # sub gs:[supply], rdx
        self.returned = len(out)
        out += b"\xeb" + _back(again, len(out) + 2)
        out[ends - 1] = len(out) - ends
        out += encode.load_area(_RAX, layout.SUPPLY)
        out += b"\x48\x3d" + _i32(FEW) + b"\x7c\x00"  # cmp rax, FEW; jl: none are given out
        few = len(out)
        out += b"\x65\x48\x3b\x04\x25" + _i32(layout.RECLAIM_ASKING)  # cmp rax, gs:[asking]
        out += b"\x7c\x00"  # jl: likewise
        too_few = len(out)
        out += b"\x48\x69\xdb" + _i32(IN_ALLOWANCES)  # imul rbx, rbx, IN_ALLOWANCES
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
        out += encode.store_area_zero(layout.SUPPLY)
        out[done - 1] = len(out) - done
        for register, word in _BORROWED:
            out += encode.load_area(register, word)
        out += encode.jump_area(layout.RECLAIM_RETURN)
        self.code = bytes(out)

    def abandon(self, registers: Any, words: Words, offset: int) -> None:
        """Bring a thread that is at an offset here back to the block that it came from. Whatever has
        been taken back by then is there to be used; if that is nothing, allowances end."""
        if offset == 0:
            words[layout.RECLAIM_RETURN // 8] = registers.rcx
            _move(words)
        elif self.noted <= offset < self.returned:
            if offset < self.cleared:
                words[layout.COUNTERS // 8 + registers.rcx] = 0
            supply = int(words[layout.SUPPLY // 8]) - registers.rdx
            words[layout.SUPPLY // 8] = supply & _MASK
        elif offset == self.moved:
            words[layout.SUPPLY // 8] = 0
        if offset >= self.saved:
            for register, word in _BORROWED:
                setattr(registers, _NAMES[register], int(words[word // 8]))
        registers.rip = int(words[layout.RECLAIM_RETURN // 8])


def _back(to: int, end: int) -> bytes:
    """The displacement of a short jump that ends at `end`, backward."""
    return struct.pack("b", to - end)


def _move(words: Words) -> None:
    """Give no more out of the supply: each execution takes its own."""
    at, supply = layout.BUDGET // 8, layout.SUPPLY // 8
    words[at] = int(words[at]) + int(words[supply]) & _MASK
    words[supply] = 0


RECLAIMING = Reclaiming(0)
"""Offsets are the same wherever the data window is."""
