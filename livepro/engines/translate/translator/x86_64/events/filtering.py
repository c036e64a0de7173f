"""Emits what leaves accesses and fetches out of the event stream that hit in a first-level cache.

In front of an instruction, its lines of code and of data are compared with those that their sets in the
thread's area used last (`livepro.engines.stream.filtering`), as most are. Where one differs the thread goes
elsewhere: what it fetches it writes into the stream there, what it accesses it simulates (`entries`). For an
access a register is borrowed, another one each time, and none that the block uses, if there are such: what
reads it next would wait until it is given back.

Accesses under a mask are simulated where one may miss. Others that are no single plain one are all written,
behind the lines of data that the thread knows of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.stream.filtering import (
    PAGE,
    CodePages,
    Filter,
    Lines,
)
from livepro.engines.translate import layout
from livepro.engines.translate.translator.emitted import Cold, Emitted, Field
from livepro.engines.translate.translator.source import SourceBlock
from livepro.engines.translate.translator.x86_64 import encode
from livepro.engines.translate.translator.x86_64.events.addressing import (
    Place,
    add_registers,
    compute,
    others,
    places_of,
)
from livepro.engines.translate.translator.x86_64.events.encodings import (
    IF_ABOVE,
    IF_DIFFERENT,
    add_place,
    and_32,
    compare_area,
    compare_byte,
    load_first,
)
from livepro.engines.translate.translator.x86_64.events.fetching import filter_fetch
from livepro.engines.translate.translator.x86_64.events.slow_paths import (
    GIVE_FLAGS_BACK,
    HOLD_FLAGS,
    RELEASE_FLAGS,
    SAVE_FLAGS,
    Paths,
    give_back,
    save,
)
from livepro.engines.translate.translator.x86_64.events.words import (
    Told,
    Words,
    borrowed,
    in_two_lines,
    simulate,
    whole,
    write,
    write_masked,
)
from livepro.engines.translate.translator.x86_64.facts import ALL, Kind
from livepro.isa.access import Pattern

_DIRECT = frozenset((Kind.JUMP, Kind.BRANCH, Kind.CALL))


class FilterPlan(NamedTuple):
    """What is filtered of a block, which is `told`: in front of an instruction (by index) the lines of code
    that it fetches and may be others than before, the plain accesses with their sizes, or the words to be
    written (where that is one access under a mask, the bytes of its lanes and how many there are), and those
    behind it; where flags are live; the instructions whose words the tracer writes, by index; the registers
    that the block uses."""

    told: Told
    fetches: dict[int, tuple[int, ...]]
    checked: dict[int, list[tuple[Place, int]]]
    before: dict[int, Words]
    masked: dict[int, tuple[int, int]]
    behind: dict[int, Words]
    live: frozenset[int]
    stepped: frozenset[int]
    used: int


class Filtering:
    """Plans and emits the filters of blocks, which get their numbers from `blocks`."""

    first = False
    """Whether a block is counted at its start."""
    every = True
    """Whether all blocks are recorded."""
    lends = False
    """Whether copies are lent a register all the time."""

    def __init__(self, blocks: StreamBlocks, filter: Filter) -> None:
        self.blocks = blocks
        self._filter = filter
        self._pages = CodePages()

    def wants(self, block: SourceBlock) -> bool:
        """See `Records`."""
        return True

    def knows(self, start: int, end: int) -> None:
        """See `Records`."""
        self._pages.claim(start, end)

    def plan(
        self, emitted: Emitted, block: SourceBlock, cell: int, live_out: Callable[[SourceBlock], int]
    ) -> FilterPlan:
        """What is filtered of a block that is counted in `cell`."""
        self.knows(block.pc, block.pc + block.offsets[-1])
        flows = [facts.flow for facts in block.facts]
        known = self.blocks.block(block.pc, block.code, block.steps(), flows, block.target)
        fetches: dict[int, tuple[int, ...]] = {}
        checked: dict[int, list[tuple[Place, int]]] = {}
        before: dict[int, Words] = {}
        masked: dict[int, tuple[int, int]] = {}
        behind: dict[int, Words] = {}
        stepped = set()
        word, latest, bits = 1, -1, -self._filter.code.line
        for index, accesses in enumerate(known.accesses):
            facts = block.facts[index]
            begin, end = block.pc + block.offsets[index], block.pc + block.offsets[index + 1]
            lines = tuple(line for line in (begin & bits, (end - 1) & bits) if line != latest)
            if lines:
                fetches[index] = tuple(dict.fromkeys(lines))
                latest = lines[-1]
            if facts.kind is Kind.SYSCALL:
                latest = -1  # the caches may be emptied by a command
            places = places_of(accesses, word, facts.displacement > 0)
            if accesses and (places is None or facts.kind is Kind.NATIVE):
                stepped.add(index)
            elif places is not None and accesses:
                if all(a.pattern is Pattern.ONE and a.size <= self._filter.data.line for a in accesses):
                    plain = [place for place in places[0] if isinstance(place, Place)]
                    checked[index] = [
                        (place, access.size) for place, access in zip(plain, accesses, strict=True)
                    ]
                else:
                    before[index] = places[0]
                    if in_two_lines(accesses, places[0], self._filter.data):
                        masked[index] = accesses[0].size, accesses[0].lanes
                    if places[1]:
                        behind[index] = [*places[1]]
            word += sum(access.words for access in accesses)
        live, used = self._live(emitted, block, live_out), 0
        for facts in block.facts:
            used |= facts.registers_read | facts.registers_killed
        told = Told(known.number, cell, Paths())
        return FilterPlan(told, fetches, checked, before, masked, behind, live, frozenset(stepped), used)

    @staticmethod
    def _live(emitted: Emitted, block: SourceBlock, live_out: Callable[[SourceBlock], int]) -> frozenset[int]:
        """The instructions in front of which flags are live."""
        live = ALL
        if block.facts[-1].kind in _DIRECT or block.cut:
            live = emitted.live = live_out(block)
        out = []
        for index in range(len(block.facts) - 1, -1, -1):
            facts = block.facts[index]
            live = live & ~facts.kills | facts.reads
            if live:
                out.append(index)
        return frozenset(out)

    @staticmethod
    def places(plan: FilterPlan) -> set[int]:
        """The instructions that something is emitted for."""
        return {*plan.fetches, *plan.checked, *plan.before, *plan.behind, *plan.stepped}

    @staticmethod
    def owning(plan: FilterPlan) -> Mapping[int, bool]:
        """The instructions that need the program's own value in a register that is lent."""
        return {}

    def begin(self, emitted: Emitted, plan: FilterPlan, block: SourceBlock, cell: int) -> None:
        """Nothing is done at a block's start."""

    # -- in front of instructions and behind them

    def before(self, emitted: Emitted, plan: FilterPlan, block: SourceBlock, index: int) -> None:
        """Filter what instruction `index` fetches and accesses."""
        lines, accesses = plan.fetches.get(index, ()), plan.checked.get(index, ())
        if lines or accesses:
            out = emitted.code
            needed = 0
            for place, _ in accesses:
                needed |= place.registers
            # (The program's address, but for its module's.)
            saves, holds = index in plan.live, not needed & 1 << encode.RAX
            needed |= 1 << encode.RAX if saves else 0
            scratch, other = borrowed(
                needed | plan.used if len(others(needed | plan.used)) > 1 else needed,
                (block.pc & layout.PAGE - 1) + block.offsets[index],
            )
            if saves:
                out += HOLD_FLAGS if holds else SAVE_FLAGS
            if lines:
                asked = (emitted, plan.told.paths, block, index, lines)
                filter_fetch(*asked, self._filter.code, plan.told.number, plan.told.cell)
            if accesses:
                out += save(scratch)
                for place, size in accesses:
                    self._access(emitted, plan, place, size, scratch, other)
                out += give_back(scratch)
            if saves:
                out += RELEASE_FLAGS if holds else GIVE_FLAGS_BACK
        if index in plan.masked:
            shape = self._filter.data, *plan.masked[index]
            write_masked(emitted, plan.told, plan.before[index], *shape, live=index in plan.live)
        elif index in plan.before:
            write(emitted, plan.told, plan.before[index], first=True)

    def behind(self, emitted: Emitted, plan: FilterPlan, index: int) -> None:
        """Write what is known behind instruction `index`."""
        if index in plan.behind:
            write(emitted, plan.told, plan.behind[index], first=False)

    @staticmethod
    def end(emitted: Emitted, plan: FilterPlan) -> None:
        """The fragment is whole."""
        paths = plan.told.paths
        ways = tuple(paths.enters), tuple(paths.backs)
        emitted.cold = Cold(bytes(paths.code), *ways, tuple(paths.fields), None, tuple(paths.writes))

    def _access(
        self, emitted: Emitted, plan: FilterPlan, place: Place, size: int, scratch: int, other: int
    ) -> None:
        out, cache, paths = emitted.code, self._filter.data, plan.told.paths
        begin, fits = len(paths.code), cache.line - size
        absolute = place.base < 0 and place.scaled < 0
        # (Another set wherever the module is, if there are more than a page holds lines.)
        fixed = absolute and not place.fs and not place.short and cache.mask < PAGE
        if fixed:
            _compare_absolute(emitted, paths, cache, place, size, scratch)
        else:
            if place.fs or place.short or absolute:
                out += save(other)
                whole(out, emitted.fields, place, scratch, other)
                out += encode.move(other, scratch) + and_32(scratch, cache.mask) + load_first(scratch)
                out += add_registers(scratch, other) + give_back(other)
            else:
                compute(out, emitted.fields, place, scratch)
                out += and_32(scratch, cache.mask) + load_first(scratch)
                add_place(out, place, scratch)
            out += compare_byte(scratch, fits) + IF_ABOVE
            paths.enters.append((len(out) - 4, begin))
        code = paths.code
        if place.fs:
            code += save(other)
        whole(code, paths.fields, place, scratch, other)
        if place.fs:
            code += give_back(other)
        simulate(emitted, plan.told, place.word, size, scratch)
        code += encode.jump(0)
        paths.backs.append((len(code) - 4, len(out)))


def _compare_absolute(
    emitted: Emitted, paths: Paths, cache: Lines, place: Place, size: int, scratch: int
) -> None:
    out, begin = emitted.code, len(paths.code)
    bits = -cache.line
    for line in dict.fromkeys((place.displacement & bits, (place.displacement + size - 1) & bits)):
        out += encode.move_absolute(scratch, -line)
        if place.moves:
            emitted.fields.append((Field.NEGATED, len(out) - 8))
        out += compare_area(scratch, layout.DATA_LINES + (line & cache.mask)) + IF_DIFFERENT
        paths.enters.append((len(out) - 4, begin))
