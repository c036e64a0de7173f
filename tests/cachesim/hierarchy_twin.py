"""What an access does to a hierarchy of caches, written from the definitions, in plain Python."""

from __future__ import annotations

from collections import Counter

from livepro.cachesim.hierarchy.machine import HOLDS, Level, Machine

KINDS = "irw"


class Line:
    """A line in a way of a set."""

    def __init__(self, number: int, *, dirty: bool = False, early: bool = False) -> None:
        self.number, self.dirty, self.early = number, dirty, early
        self.rank = 0  # SRRIP


class Set:
    """One set: its ways, and in which order they are to be replaced."""

    def __init__(self, policy: str, ways: int, draw: Draw) -> None:
        self.policy, self.draw = policy, draw
        self.ways: list[Line | None] = [None] * ways
        self.order: list[int] = []  # LRU, FIFO: ways, the next to be replaced first
        self.tree: dict[tuple[int, int], str] = {}  # PLRU: which half of the ways [a, b) is replaced next

    def find(self, number: int) -> Line | None:
        return next((line for line in self.ways if line is not None and line.number == number), None)

    def use(self, line: Line) -> None:
        way = self.ways.index(line)
        if self.policy == "lru":
            self._last(way)
        elif self.policy == "plru":
            self._away(way)
        line.rank = 0

    def fill(self, line: Line) -> Line | None:
        way = self._victim()
        lost, self.ways[way] = self.ways[way], line
        if self.policy == "plru":
            self._away(way)
        self._last(way)
        line.rank = 2
        return lost

    def remove(self, line: Line) -> None:
        self.ways[self.ways.index(line)] = None

    def _last(self, way: int) -> None:
        if way in self.order:
            self.order.remove(way)
        self.order.append(way)

    def _away(self, way: int) -> None:
        first, behind = 0, len(self.ways)
        while behind - first > 1:
            middle = (first + behind) // 2
            self.tree[first, behind] = "left" if way >= middle else "right"
            first, behind = (middle, behind) if way >= middle else (first, middle)

    def _victim(self) -> int:
        if None in self.ways:
            return self.ways.index(None)
        if self.policy in ("lru", "fifo"):
            return self.order[0]
        if self.policy == "plru":
            first, behind = 0, len(self.ways)
            while behind - first > 1:
                middle = (first + behind) // 2
                right = self.tree.get((first, behind), "left") == "right"
                first, behind = (middle, behind) if right else (first, middle)
            return first
        if self.policy == "random":
            return self.draw.number() % len(self.ways)
        lines = [line for line in self.ways if line is not None]
        while all(line.rank < 3 for line in lines):
            for line in lines:
                line.rank += 1
        return next(way for way, line in enumerate(lines) if line.rank == 3)


class Draw:
    """The example of rand in ISO C (7.22.2.2), of 31 bits."""

    def __init__(self) -> None:
        self.state = 1

    def number(self) -> int:
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return self.state // 65536


class Cache:
    """One cache: shared, or one core's."""

    def __init__(self, level: Level, draw: Draw) -> None:
        self.level = level
        self.sets = [Set(level.policy, level.ways, draw) for _ in range(level.sets)]

    def set(self, number: int) -> Set:
        return self.sets[number % len(self.sets)]

    def find(self, number: int) -> Line | None:
        return self.set(number).find(number)


class Twin:
    """A machine with its caches; `met` counts by (level, what), memory's traffic as level ``memory``."""

    def __init__(self, machine: Machine, cores: int) -> None:
        self.machine, self.cores = machine, cores
        self.met: Counter[tuple[str, str]] = Counter()
        draw = Draw()
        shared = {n: Cache(level, draw) for n, level in enumerate(machine.levels) if level.shared}
        self.caches = [
            {n: shared.get(n) or Cache(level, draw) for n, level in enumerate(machine.levels)}
            for _ in range(cores)
        ]

    def path(self, place: int) -> list[int]:
        """A level and those behind it."""
        out = []
        while place >= 0:
            out.append(place)
            place = self.machine.levels[place].next
        return out

    def access(self, core: int, first: int, number: int, kind: str) -> list[str]:
        """An access to a line; the events that it is."""
        events = []
        path = self.path(first)
        asks = self.keeps_coherent(first)
        if asks and kind == "w":
            self.met["others", "modified"] += self.claim(core, number)
            asks = False
        while kind == "w" and path and self.machine.levels[path[0]].through:
            cache = self.caches[core][path.pop(0)]
            if not self.asked(cache, number, kind)[0]:
                events.append(f"{cache.level.name}m{kind}")
        if not path:
            self.met["memory", "written"] += 1
            return events
        missed: list[int] = []
        prefetching: list[int] = []
        for place in path:
            if asks and not self.keeps_coherent(place):
                self.met["others", "modified"] += self.share(core, number)
                asks = False
            cache = self.caches[core][place]
            hit, early = self.asked(cache, number, kind)
            if cache.level.prefetch == "next-line" and (early or not hit):
                prefetching.append(place)
            if hit:
                break
            events.append(f"{cache.level.name}m{kind}")
            missed.append(place)
        else:
            if asks:
                self.met["others", "modified"] += self.share(core, number)
        if missed:
            self.fill(core, missed, number, early=False)
        line = self.caches[core][path[0]].find(number)
        if kind == "w" and line is not None and not self.machine.levels[path[0]].tlb:
            line.dirty = True
        for place in prefetching:
            self.prefetch(core, place, number + 1)
        return events

    def asked(self, cache: Cache, number: int, kind: str) -> tuple[bool, bool]:
        """A cache is asked for a line: whether it has it, and whether it is the first to use what was
        prefetched."""
        name, line = cache.level.name, cache.find(number)
        self.met[name, f"{kind} accesses"] += 1
        if line is None:
            self.met[name, f"{kind} misses"] += 1
            return False, False
        cache.set(number).use(line)
        early, line.early = line.early, False
        self.met[name, "useful"] += early
        return True, early

    def prefetch(self, core: int, place: int, number: int) -> None:
        if self.caches[core][place].find(number) is not None:
            return
        self.met[self.machine.levels[place].name, "prefetched"] += 1
        missed = []
        asks = self.keeps_coherent(place)
        for each in self.path(place):
            if asks and not self.keeps_coherent(each):
                self.share(core, number)
                asks = False
            if self.caches[core][each].find(number) is not None:
                break
            missed.append(each)
        else:
            if asks:
                self.share(core, number)
        self.fill(core, missed, number, early=True)

    # -- coherence

    def keeps_coherent(self, place: int) -> bool:
        return self.machine.keeps_coherent(self.machine.levels[place])

    def copies(self, core: int, number: int) -> list[tuple[int, Line]]:
        """A core's own copies of a line, and in which levels."""
        found = []
        for place in filter(self.keeps_coherent, range(len(self.machine.levels))):
            line = self.caches[core][place].find(number)
            if line is not None:
                found.append((place, line))
        return found

    def claim(self, core: int, number: int) -> int:
        """A core will write to a line, and be the only one to have it. How many others had modified it."""
        modified = 0
        for other in range(self.cores):
            copies = self.copies(other, number) if other != core else []
            for place, line in copies:
                self.met[self.machine.levels[place].name, "taken"] += 1
                self.caches[other][place].set(number).remove(line)
            self.met["others", "lost"] += bool(copies)
            modified += self.give(other, number, [place for place, line in copies if line.dirty])
        return modified

    def share(self, core: int, number: int) -> int:
        """A core will read a line that it does not have: others' copies are as in memory from then on."""
        modified = 0
        for other in range(self.cores):
            copies = self.copies(other, number) if other != core else []
            dirty = [place for place, line in copies if line.dirty]
            for _, line in copies:
                line.dirty = False
            modified += self.give(other, number, dirty)
        return modified

    def give(self, core: int, number: int, dirty: list[int]) -> bool:
        """A core writes back what it has modified in some levels."""
        if not dirty:
            return False
        self.met[self.machine.levels[dirty[0]].name, "written back"] += 1
        behind = [place for place in self.path(dirty[0]) if not self.keeps_coherent(place)]
        if behind:
            self.hold(core, behind[0], Line(number, dirty=True))
        else:
            self.met["memory", "written"] += 1
        return True

    def fill(self, core: int, missed: list[int], number: int, *, early: bool) -> None:
        """Bring a line to levels that miss it, the outermost first."""
        dirty = False
        behind = self.machine.levels[missed[-1]].next
        if behind < 0:
            self.met["memory", "read"] += not self.machine.levels[missed[0]].tlb
        elif self.machine.levels[behind].inclusion == "exclusive":
            cache = self.caches[core][behind]
            line = cache.find(number)
            assert line is not None
            dirty = line.dirty
            cache.set(number).remove(line)
        for place in reversed(missed[1:]):
            if self.machine.levels[place].inclusion != "exclusive":
                self.hold(core, place, Line(number))
        self.hold(core, missed[0], Line(number, dirty=dirty, early=early))

    def hold(self, core: int, place: int, line: Line) -> None:
        level, cache = self.machine.levels[place], self.caches[core][place]
        there = cache.find(line.number)
        if there is not None:
            there.dirty |= line.dirty
            return
        lost = cache.set(line.number).fill(line)
        if lost is None:
            return
        if level.inclusion == "inclusive":
            for each in range(self.cores) if level.shared else [core]:
                for inner in range(len(self.machine.levels)):
                    if inner != place and place in self.path(inner):
                        lost.dirty |= self.invalidate(self.caches[each][inner], lost.number)
        if lost.dirty:
            self.met[level.name, "written back"] += 1
        if level.next < 0:
            self.met["memory", "written"] += lost.dirty
        elif lost.dirty or self.machine.levels[level.next].inclusion == "exclusive":
            self.hold(core, level.next, Line(lost.number, dirty=lost.dirty))

    def invalidate(self, cache: Cache, number: int) -> bool:
        line = cache.find(number)
        if line is None:
            return False
        self.met[cache.level.name, "invalidated"] += 1
        cache.set(number).remove(line)
        return line.dirty


def events_of(machine: Machine) -> list[str]:
    """The names of all misses."""
    return [f"{level.name}m{KINDS[kind]}" for level in machine.levels for kind in HOLDS[level.holds]]


class Thread:
    """What a thread asks its core's caches and TLBs for. It asks for its code when that goes on in another
    line, and the TLBs when it goes on in another page."""

    def __init__(self, twin: Twin, core: int) -> None:
        self.twin, self.core = twin, core
        self.line = self.pages = self.page = -1
        self.seen: dict[int, tuple[int, int, int]] = {}

    def lines(self, address: int, size: int) -> range:
        unit = self.twin.machine.line
        return range(address // unit, (address + size - 1) // unit + 1)

    def _tlb(self, head: int, line: int, kind: str, before: int) -> int:
        machine = self.twin.machine
        if head < 0:
            return -1
        page = line * machine.line // machine.levels[head].line
        if page != before:
            self.twin.access(self.core, head, page, kind)
        return page

    def fetch(self, address: int, size: int) -> None:
        heads = self.twin.machine.heads
        for line in self.lines(address, size):
            if line != self.line:
                self.line = line
                self.pages = self._tlb(heads[2], line, "i", self.pages)
                self.twin.access(self.core, heads[0], line, "i")

    def access(self, instruction: int, address: int, size: int, kind: str) -> None:
        heads = self.twin.machine.heads
        for line in self.lines(address, size):
            self.page = self._tlb(heads[3], line, kind, self.page)
            self.twin.access(self.core, heads[1], line, kind)
        if self.twin.machine.levels[heads[1]].prefetch == "stride":
            before, distance, again = self.seen.get(instruction, (address, 0, 0))
            if address - before == distance != 0:
                again += 1
                if again >= 2:
                    self.twin.prefetch(
                        self.core, heads[1], (address + 4 * distance) // self.twin.machine.line
                    )
            else:
                distance, again = address - before, 0
            self.seen[instruction] = address, distance, again
