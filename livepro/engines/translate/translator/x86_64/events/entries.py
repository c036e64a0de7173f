"""What a filter calls that lets an access through: simulates the thread's own first-level cache of data, and
writes an entry of the event stream for what misses (`livepro.engines.stream.filtering`).

What is wanted is in the thread's area (`layout.ENTRY`). A stack of its own is what it is called with, so that
the processor guesses where it goes back to. The lines of a set are behind one another, the one used last
first: to look for one is to move all before it on by one. Of each such change is noted what takes it back.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from iced_x86 import Code, Register

from livepro.engines.stream.filtering import (
    ENTRY,
    FIRST_MISSED,
    NO_LINE,
    ORDER,
    PLACE_SHIFT,
    TAG_SHIFT,
    Lines,
)
from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Words
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.assembly import Assembly, Number
from livepro.isa.access import ALL_64

ACCESS, FULL, WORD, CLEAR = range(4)
"""What is wanted: an access simulated; a stop, as the chunk is full; a word written; the lines of data
written and forgotten. (The order of `layout.RECORDERS`.)"""

_RAX, _RCX, _RDX = Register.RAX, Register.RCX, Register.RDX
_RSI, _RDI, _R8, _R9 = Register.RSI, Register.RDI, Register.R8, Register.R9
_BORROWED = tuple(zip((_RAX, _RCX, _RDX, _RSI, _RDI, _R8, _R9), layout.ENTRY_SAVED, strict=True))
_FEW, _FEW_FOR_WORD = 3, 2
_SAVE_SIZE = 9  # mov gs:[offset], r64
_NAMES = {getattr(Register, name.upper()): name for name in ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9")}
_MISSED_SHIFT = FIRST_MISSED.bit_length() - 1


class Cache(NamedTuple):
    """A thread's cache of data, in its area: it has the addresses of lines negated."""

    lines: Lines

    def way(self, way: int) -> int:
        """Where a way is, of the first set."""
        return layout.DATA_LINES + self.lines.offset(way)


class Entries:
    """The code for a cache; offsets are bytes from its start."""

    def __init__(self, data: Lines) -> None:
        self._data = data
        code = Assembly()
        starts, stops = [code.here()], []
        stop, begin, end = _simulate(code, Cache(data))
        stops.append(stop)
        starts.append(code.here())
        stops.append(code.here())
        code.simple(Code.INT3)
        code.simple(Code.RETNQ)
        starts.append(code.here())
        stops.append(_write_word(code))
        starts.append(code.here())
        copying, clearing, cleared, stop = _clear(code, data)
        self.code, at = code.encoded()
        self.size = len(self.code)
        self.starts = [at[label] for label in starts]
        """Where each of `ACCESS`, `FULL`, `WORD`, `CLEAR` begins."""
        self.stops = [at[label] for label in (*stops, stop)]
        """Where each of them stops when the chunk is full; it goes on right behind."""
        self._further = at[begin], at[end]
        self._copying, self._clearing, self._cleared = at[copying], at[clearing], at[cleared]

    def finish(self, registers: Any, words: Words, offset: int) -> bool:
        """Bring a thread that is at an offset here to the end of a long loop; False if it is in none."""
        if not self._copying <= offset < self._cleared:
            return False
        if offset < self._clearing:
            self.order(words)
        self.empty(words)
        registers.rip += self._cleared - offset
        return True

    def restart(self, registers: Any, words: Words, offset: int) -> None:
        """Bring a thread that is at an offset here, and whose caches will be emptied, to where nothing that
        it has in hand is of these: to the beginning."""
        how = max(n for n, start in enumerate(self.starts) if start <= offset)
        if how == CLEAR:
            self.finish(registers, words, offset)
            return
        if how == FULL or offset - 1 in self.stops:
            return  # It may have run into that stop, of which the tracer has yet to hear.
        saves = [(self.starts[how], _BORROWED[: _FEW if how != WORD else _FEW_FOR_WORD])]
        if how != WORD:
            begin, end = self._further
            saves += [(begin, _BORROWED[_FEW:])] if begin <= offset < end else []
        for begin, saved in saves:
            for n, (register, where) in enumerate(saved):
                if offset >= begin + (n + 1) * _SAVE_SIZE:
                    setattr(registers, _NAMES[register], int(words[where // 8]))
        registers.rip += self.starts[how] - offset

    def begin_anew(self, registers: Any, words: Words, offset: int) -> None:
        """Bring a thread to the beginning of a path on which it writes an entry itself, so many bytes
        back."""
        for n, (name, number) in enumerate((("rcx", encode.RCX), ("rdx", encode.RDX))):
            if offset >= (n + 1) * _SAVE_SIZE:
                setattr(registers, name, int(words[layout.FILTER_SAVED // 8 + number]))
        registers.rip -= offset

    def order(self, words: Words) -> None:
        """Write the lines of data into the chunk."""
        at, size, lines = int(words[layout.RECORD // 8]) // 8, self._data.words, layout.DATA_LINES // 8
        words[at] = ORDER << PLACE_SHIFT
        words[at + 1] = size | int(words[layout.ENTRY_TAG // 8]) << TAG_SHIFT & ALL_64
        words[at + ENTRY : at + ENTRY + size] = words[lines : lines + size]
        words[layout.ENTRY_ORDER // 8] = at * 8
        words[layout.RECORD // 8] = (at + ENTRY + size) * 8

    def empty(self, words: Words) -> None:
        """Let there be no line of data in the thread's cache."""
        first = layout.DATA_LINES // 8
        words[first : first + self._data.words] = NO_LINE

    def put_back(self, words: Words, where: int, line: int) -> None:
        """Let a line be where it was, so many bytes from the first one of data on, and the lines that are
        there and before it those before it."""
        lines = self._data
        way = lines.way(where)
        row = layout.DATA_LINES + where - lines.offset(way)
        places = [(row + lines.offset(n)) // 8 for n in range(way + 1)]
        words[places] = [*words[places].tolist()[1:], line]


def _simulate(code: Assembly, cache: Cache) -> tuple[int, int, int]:
    """Simulate an access of a cache, which is in one line or in two. Returns where it stops, and where
    further registers than the first few begin to be saved, and have all been given back."""
    done, done_soon = code.label(), code.label()
    for register, where in _BORROWED[:_FEW]:
        code.store(register, where)
    if cache.lines.ways > 1:
        _look_at_second(code, cache, done_soon)
    begin = code.here()
    for register, where in _BORROWED[_FEW:]:
        code.store(register, where)
    stop = _look_at_all(code, cache, done)
    code.put(done)
    for register, where in _BORROWED[_FEW:]:
        code.load(register, where)
    code.put(done_soon)
    for register, where in _BORROWED[:_FEW]:
        code.load(register, where)
    code.simple(Code.RETNQ)
    return stop, begin, done_soon


def _look_at_second(code: Assembly, cache: Cache, done: int) -> None:
    """If an access is in the line that its set used before the last one, as more than half are that get here,
    let that one be the last one. The set is in rcx (bytes from the first one), the line in rdx."""
    lines, no = cache.lines, code.label()
    code.load(_RAX, layout.ENTRY_VALUE)
    code.registers(Code.MOV_R32_RM32, Register.ECX, Register.EAX)
    code.register(Code.AND_RM32_IMM32, Register.ECX, lines.mask)
    code.load(_RDX, cache.way(1), _RCX)
    code.registers(Code.ADD_R64_RM64, _RAX, _RDX)
    code.register(Code.CMP_RM64_IMM32, _RAX, lines.line - 1)
    code.branch(Code.JA_REL32_64, no)
    code.load(Register.EAX, layout.ENTRY_SPAN, code=Code.ADD_R32_RM32)
    code.register(Code.CMP_RM32_IMM32, Register.EAX, lines.line - 1)
    code.branch(Code.JA_REL32_64, no)
    code.load(_RAX, cache.way(0), _RCX)
    code.store(_RDX, cache.way(0), _RCX)
    code.store(_RAX, cache.way(1), _RCX)
    code.register(Code.ADD_RM32_IMM32, Register.ECX, cache.way(1) - layout.DATA_LINES)
    _note(code, _RCX, _RDX, _RAX)
    code.branch(Code.JMP_REL32_64, done)
    code.put(no)


def _look_at_all(code: Assembly, cache: Cache, done: int) -> int:
    """Look through the sets of an access. A line is in rax, the last one in rcx, its set in rsi (bytes from
    the first one), which missed in rdx; in r9 is the line as it is in the cache. Returns where it stops."""
    lines, found, noted = cache.lines, code.label(), code.label()
    behind, out, ways = code.label(), code.label(), cache.lines.ways
    code.load(_RAX, layout.ENTRY_VALUE)
    code.load(Register.ECX, layout.ENTRY_SPAN, code=Code.MOV_R32_RM32)
    code.registers(Code.ADD_R64_RM64, _RCX, _RAX)
    code.register(Code.AND_RM64_IMM32, _RAX, -lines.line)
    code.register(Code.AND_RM64_IMM32, _RCX, -lines.line)
    code.registers(Code.XOR_R32_RM32, Register.EDX, Register.EDX)
    each = code.here()
    code.registers(Code.MOV_R32_RM32, Register.ESI, Register.EAX)
    code.register(Code.AND_RM32_IMM32, Register.ESI, lines.mask)
    code.registers(Code.MOV_R64_RM64, _R9, _RAX)
    code.register(Code.NEG_RM64, _R9)
    code.load(_RDI, cache.way(0), _RSI)
    code.registers(Code.CMP_R64_RM64, _RDI, _R9)
    code.branch(Code.JE_REL32_64, behind)
    code.store(_R9, cache.way(0), _RSI)
    moved, free, places = _RDI, _R8, []
    for way in range(1, ways):
        code.load(free, cache.way(way), _RSI)
        code.store(moved, cache.way(way), _RSI)
        code.registers(Code.CMP_R64_RM64, free, _R9)
        places.append((code.label(), cache.way(way)))
        code.branch(Code.JE_REL32_64, places[-1][0])
        moved, free = free, moved
    code.register(Code.OR_RM32_IMM8, Register.EDX, 2)
    code.register(Code.ADD_RM32_IMM32, Register.ESI, cache.way(ways - 1) - layout.DATA_LINES)
    if moved != _RDI:
        code.registers(Code.MOV_R64_RM64, _RDI, moved)
    code.put(noted)
    _note(code, _RSI, _RDI, _R8)
    code.put(behind)
    code.registers(Code.CMP_R64_RM64, _RAX, _RCX)
    code.branch(Code.JE_REL32_64, out)
    code.registers(Code.MOV_R64_RM64, _RAX, _RCX)
    code.register(Code.SHR_RM32_1, Register.EDX, 1)
    code.branch(Code.JMP_REL32_64, each)
    for label, where in places:
        code.put(label)
        code.register(Code.ADD_RM32_IMM32, Register.ESI, where - layout.DATA_LINES)
        code.branch(Code.JMP_REL32_64, found)
    code.put(found)
    code.registers(Code.MOV_R64_RM64, _RDI, _R9)
    code.branch(Code.JMP_REL32_64, noted)
    code.put(out)
    code.registers(Code.TEST_RM32_R32, Register.EDX, Register.EDX)
    code.branch(Code.JE_REL32_64, done)
    return _write_missed(code, done)


def _write_missed(code: Assembly, done: int) -> int:
    """Write the entry of what missed, which is in rdx; returns where it stops."""
    code.register(Code.SHL_RM32_IMM8, Register.EDX, _MISSED_SHIFT)
    code.load(_RCX, layout.RECORD)
    code.load(Register.EAX, layout.ENTRY, code=Code.MOV_R32_RM32)
    code.load(Register.EDX, layout.ENTRY + 4, code=Code.OR_R32_RM32)
    code.store(Register.EAX, 0, _RCX, Code.MOV_RM32_R32)
    code.store(Register.EDX, 4, _RCX, Code.MOV_RM32_R32)
    code.load(_RAX, layout.ENTRY_VALUE)
    code.load(_RDX, layout.ENTRY_TAG)
    code.store(_RAX, 8, _RCX)
    code.store(Register.DX, 8 + TAG_SHIFT // 8, _RCX, Code.MOV_RM16_R16)
    code.register(Code.ADD_RM64_IMM8, _RCX, 8 * ENTRY)
    code.store(_RCX, layout.RECORD)
    code.immediate(0, layout.RECORD + 2, code=Code.CMP_RM8_IMM8)
    code.branch(Code.JNE_REL32_64, done)
    stop = code.here()
    code.simple(Code.INT3)
    return stop


def _note(code: Assembly, where: Number, line: Number, free: Number) -> None:
    """Note a change: where a line was before (bytes from the first one of data). All three registers are used
    up; the first two may be no others than rcx, rdx, rsi, rdi."""
    log, low = layout.LOG, Register.EDX if line == _RDX else Register.EDI
    code.load(free, layout.ENTRY_LOG)
    code.store(where, log + 16, free)
    code.store(line, log + 24, free)
    for half in (0, 4):
        code.load(low, layout.ENTRY + half, code=Code.MOV_R32_RM32)
        code.store(low, log + half, free, Code.MOV_RM32_R32)
    code.load(line, layout.ENTRY_TAG)
    code.store(line, log + 8, free)
    code.register(Code.ADD_RM64_IMM8, free, layout.LOGGED)
    code.register(Code.AND_RM64_IMM32, free, layout.LOG_SIZE - 1)
    code.store(free, layout.ENTRY_LOG)


def _write_word(code: Assembly) -> int:
    """Write a word, leaving flags alone; returns where it stops."""
    s_rax, s_rcx = layout.ENTRY_SAVED[:2]
    code.store(_RAX, s_rax)
    code.store(_RCX, s_rcx)
    code.load(_RCX, layout.RECORD)
    for half in (0, 4):
        code.load(Register.EAX, layout.ENTRY + half, code=Code.MOV_R32_RM32)
        code.store(Register.EAX, half, _RCX, Code.MOV_RM32_R32)
    code.load(_RAX, layout.ENTRY_VALUE)
    code.store(_RAX, 8, _RCX)
    code.load(_RCX, 8 * ENTRY, _RCX, Code.LEA_R64_M)
    code.store(_RCX, layout.RECORD)
    return _end(code, s_rax, s_rcx)


def _end(code: Assembly, s_rax: int, s_rcx: int) -> int:
    """Stop if the chunk is full, leaving flags alone, and return; returns where it stops."""
    full, back = code.label(), code.label()
    code.load(Register.ECX, layout.RECORD + 2, code=Code.MOVZX_R32_RM8)
    code.branch(Code.JRCXZ_REL8_64, full)
    code.branch(Code.JMP_REL8_64, back)
    code.put(full)
    code.simple(Code.INT3)
    code.put(back)
    code.load(_RCX, s_rcx)
    code.load(_RAX, s_rax)
    code.simple(Code.RETNQ)
    return full


def _clear(code: Assembly, lines: Lines) -> tuple[int, int, int, int]:
    """Write the lines of data into the chunk, and forget them, leaving flags alone. Returns where copying
    begins, where that is done, where all is cleared, and where it stops."""
    s_rax, s_rcx, s_rdx = layout.ENTRY_SAVED[:3]
    for register, where in ((_RAX, s_rax), (_RCX, s_rcx), (_RDX, s_rdx)):
        code.store(register, where)
    code.simple(Code.LAHF)
    code.register(Code.SETO_RM8, Register.AL)
    code.store(_RAX, layout.ENTRY_FLAGS)
    copying = code.here()
    code.load(_RCX, layout.RECORD)
    code.immediate(0, 0, _RCX, Code.MOV_RM32_IMM32)
    code.immediate(ORDER, 4, _RCX, Code.MOV_RM32_IMM32)
    code.immediate(lines.words, 8, _RCX)
    code.load(_RAX, layout.ENTRY_TAG)
    code.store(Register.AX, 8 + TAG_SHIFT // 8, _RCX, Code.MOV_RM16_R16)
    code.store(_RCX, layout.ENTRY_ORDER)
    code.registers(Code.XOR_R32_RM32, Register.EDX, Register.EDX)
    each = code.here()
    code.load(_RAX, layout.DATA_LINES, _RDX)
    code.store(_RAX, 8 * ENTRY, _RCX)
    code.register(Code.ADD_RM64_IMM8, _RCX, 8)
    code.register(Code.ADD_RM32_IMM8, Register.EDX, 8)
    code.register(Code.CMP_RM32_IMM32, Register.EDX, 8 * lines.words)
    code.branch(Code.JNE_REL32_64, each)
    code.register(Code.ADD_RM64_IMM8, _RCX, 8 * ENTRY)
    code.store(_RCX, layout.RECORD)
    clearing = code.here()
    code.registers(Code.XOR_R32_RM32, Register.EDX, Register.EDX)
    code.register(Code.MOV_R64_IMM64, _RAX, NO_LINE - (ALL_64 + 1))
    each = code.here()
    code.store(_RAX, layout.DATA_LINES, _RDX)
    code.register(Code.ADD_RM32_IMM8, Register.EDX, 8)
    code.register(Code.CMP_RM32_IMM32, Register.EDX, 8 * lines.words)
    code.branch(Code.JNE_REL32_64, each)
    cleared = code.here()
    code.load(_RAX, layout.ENTRY_FLAGS)
    code.register(Code.ADD_AL_IMM8, Register.AL, 0x7F)
    code.simple(Code.SAHF)
    code.load(_RDX, s_rdx)
    return copying, clearing, cleared, _end(code, s_rax, s_rcx)


@lru_cache
def entries_for(data: int) -> Entries:
    """The code for a cache that is packed."""
    return Entries(Lines.unpacked(data))
