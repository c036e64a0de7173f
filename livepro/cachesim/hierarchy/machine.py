"""A machine's caches and TLBs, as a TOML file describes them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livepro.cachesim.geometry import caches_of_this_machine
from livepro.errors import LiveproError

READY = Path(__file__).with_name("machines")
HOST = "host"
"""The name of the machine that livepro runs on."""

HOLDS = {"instructions": (0,), "data": (1, 2), "both": (0, 1, 2)}
"""What a cache holds, and the kinds of accesses that it sees: fetches, reads, writes."""
POLICIES = ("lru", "plru", "fifo", "random", "srrip")
INCLUSIONS = ("neither", "inclusive", "exclusive")
PREFETCHERS = ("none", "next-line", "stride")
COHERENCE = ("none", "mesi")
MOST_WAYS = 64

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"([0-9]+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_COMMON = ("name", "holds", "ways", "next", "shared", "policy")
_CACHE = (*_COMMON, "size", "inclusion", "write", "prefetch")
_TLB = (*_COMMON, "entries", "page")


@dataclass(frozen=True, slots=True)
class Level:
    """A cache, or a TLB: `sets` times `ways` lines (pages) of `line` bytes. `next` is the place of the level
    that its misses go to among all levels, -1 for memory; each thread has its own unless it is `shared`."""

    name: str
    tlb: bool
    holds: str
    line: int
    sets: int
    ways: int
    next: int
    shared: bool = False
    policy: str = "lru"
    inclusion: str = "neither"
    through: bool = False
    prefetch: str = "none"

    def __str__(self) -> str:
        size = (
            f"{self.sets * self.ways} entries, pages of {_bytes(self.line)}"
            if self.tlb
            else _bytes(self.size)
        )
        ways = "fully associative" if self.sets == 1 else f"{self.ways}-way"
        more = [self.policy, "shared" if self.shared else "of each thread"]
        more += [self.inclusion] * (self.inclusion != "neither") + ["write-through"] * self.through
        more += [f"{self.prefetch} prefetcher"] * (self.prefetch != "none")
        return ", ".join((size, ways, *more))

    @property
    def size(self) -> int:
        """Bytes that it holds (of a TLB: that its pages hold)."""
        return self.sets * self.ways * self.line


@dataclass(frozen=True, slots=True)
class Machine:
    """Caches and TLBs, first-level ones among them: `heads` are the places of the first caches and TLBs of
    instructions and data (fetch, data, fetch by TLB, data by TLB), -1 where there is none. The caches that
    each thread has for itself are kept `coherent`, or not."""

    name: str
    levels: tuple[Level, ...]
    heads: tuple[int, int, int, int]
    coherent: bool = False

    def keeps_coherent(self, level: Level) -> bool:
        """Whether a level is one of those."""
        return self.coherent and not (level.shared or level.tlb)

    @property
    def line(self) -> int:
        """Bytes of a line of its caches."""
        return self.levels[self.heads[0]].line


def machine(where: str) -> Machine:
    """The machine that `where` names: a TOML file, one of those that livepro has, or ``host``. Raises
    LiveproError for what is wrong with it."""
    if where == HOST:
        return _host()
    path = Path(where)
    if not (path.suffix == ".toml" or path.is_file()):
        path = READY / f"{where}.toml"
        if not path.is_file():
            raise LiveproError(
                f"There is no machine '{where}'.",
                f"Name a TOML file, or one of {', '.join((*ready(), HOST))} (docs/cachesim.md).",
            )
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise LiveproError(f"{where} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LiveproError(f"{where} is no TOML: {error}.") from None
    return read(data, where)


def ready() -> list[str]:
    """The names of the machines that livepro has."""
    return sorted(path.stem for path in READY.glob("*.toml"))


def read(data: Mapping[str, Any], where: str) -> Machine:
    """The machine that a TOML document describes. Raises LiveproError, which names `where` it was read."""
    _known(data, ("name", "line", "coherence", "cache", "tlb"), where)
    entries = [(entry, False) for entry in _list(data, "cache", where)]
    entries += [(entry, True) for entry in _list(data, "tlb", where)]
    if not entries:
        raise _wrong(where, "it has no [[cache]]", 'Give it one: [[cache]] name = "L1D", holds = "data", ...')
    line = _size(data.get("line", 64), f"{where}, line")
    if line < 16 or line & line - 1:
        raise _wrong(
            where, f"a line of {line} bytes is not possible", "It must be a power of two from 16 on."
        )
    names: list[str] = []
    for entry, _ in entries:
        name = entry.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _wrong(where, f"{name!r} is no name of a cache", 'Letters and digits: name = "L1D".')
        if name in names:
            raise _wrong(where, f"there are two of the name {name}", "Name them differently.")
        names.append(name)
    levels = tuple(_level(entry, tlb, line, names, f"{where}, {entry['name']}") for entry, tlb in entries)
    for level in levels:
        _check_next(level, levels, f"{where}, {level.name}")
    coherent = _one_of(data, "coherence", COHERENCE, where) == "mesi"
    return Machine(str(data.get("name", Path(where).stem)), levels, _heads(levels, where), coherent)


def _wrong(where: str, cause: str, remedy: str) -> LiveproError:
    return LiveproError(f"{where}: {cause}.", remedy)


def _known(entry: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    keys = tuple(keys)
    for key in entry:
        if key not in keys:
            raise _wrong(where, f"'{key}' is unknown here", f"Known are {', '.join(keys)}.")


def _list(data: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    found = data.get(key, [])
    if not (isinstance(found, list) and all(isinstance(entry, dict) for entry in found)):
        raise _wrong(where, f"'{key}' is no list of tables", f"Begin each with [[{key}]].")
    return found


def _level(entry: Mapping[str, Any], tlb: bool, line: int, names: list[str], where: str) -> Level:
    _known(entry, _TLB if tlb else _CACHE, where)
    if tlb:
        line = _size(entry.get("page", "4K"), f"{where}, page")
        if line < 4096 or line & line - 1:
            raise _wrong(where, f"a page of {line} bytes is not possible", 'As in page = "4K", or "2M".')
        lines = _whole(entry, "entries", where)
    else:
        size = _size(entry.get("size"), f"{where}, size")
        if size <= 0 or size % line:
            raise _wrong(where, f"{size} bytes are not a multiple of lines of {line}", 'As in size = "32K".')
        lines = size // line
    full = entry.get("ways") == "full"
    ways = lines if full else _whole(entry, "ways", where)
    if lines % ways:
        raise _wrong(where, f"{lines} lines cannot be divided into sets of {ways}", 'Or say ways = "full".')
    policy = _one_of(entry, "policy", POLICIES, where)
    if policy == "plru" and (ways & ways - 1 or ways > MOST_WAYS):
        raise _wrong(where, f"a tree of {ways} ways is not possible", f"A power of two, at most {MOST_WAYS}.")
    following = entry.get("next", "memory")
    if following != "memory" and following not in names:
        raise _wrong(where, f"there is no '{following}' to be next", f"There are {', '.join(names)}, memory.")
    shared = entry.get("shared", False)
    if not isinstance(shared, bool):
        raise _wrong(where, f"shared = {shared!r} is neither true nor false", "Write shared = true.")
    return Level(
        *(entry["name"], tlb, _one_of(entry, "holds", tuple(HOLDS), where), line, lines // ways, ways),
        *(-1 if following == "memory" else names.index(following), shared, policy),
        inclusion=_one_of(entry, "inclusion", INCLUSIONS, where),
        through=_one_of(entry, "write", ("back", "through"), where) == "through",
        prefetch=_one_of(entry, "prefetch", PREFETCHERS, where),
    )


def _check_next(level: Level, levels: tuple[Level, ...], where: str) -> None:
    before = [other for other in levels if other.next >= 0 and levels[other.next] is level]
    if level.inclusion != "neither" and not before:
        raise _wrong(where, f"no cache comes before it, so it is not {level.inclusion}", "Leave that out.")
    if level.inclusion == "exclusive" and any(other.through for other in before):
        raise _wrong(where, "an exclusive cache cannot follow one that writes through", 'Or write = "back".')
    if level.through and before:
        raise _wrong(where, "only a first-level cache can write through", 'Or write = "back".')
    if level.prefetch == "stride" and (before or level.holds != "data"):
        raise _wrong(where, "strides are seen by a first-level data cache only", 'Or prefetch = "next-line".')
    seen, at = [level], level.next
    while at >= 0:
        following = levels[at]
        if following in seen:
            raise _wrong(
                where, f"{following.name} comes after itself", 'Let the last one have next = "memory".'
            )
        if following.tlb is not level.tlb or following.line != level.line:
            kind = f"of pages of {level.line} bytes" if level.tlb else "cache"
            raise _wrong(where, f"{following.name} is no {'TLB ' * level.tlb}{kind}", "Let another be next.")
        if not set(HOLDS[level.holds]) <= set(HOLDS[following.holds]):
            raise _wrong(where, f"{following.name} does not hold {level.holds}", 'Give it holds = "both".')
        if seen[-1].shared and not following.shared:
            raise _wrong(where, f"{following.name}, behind {seen[-1].name}, is not shared", "shared = true")
        seen.append(following)
        at = following.next


def _heads(levels: tuple[Level, ...], where: str) -> tuple[int, int, int, int]:
    heads = []
    following = {level.next for level in levels}
    for tlb in (False, True):
        for kind, what in ((0, "instructions"), (1, "data")):
            first = [
                n
                for n, level in enumerate(levels)
                if level.tlb is tlb and kind in HOLDS[level.holds] and n not in following
            ]
            if len(first) > 1:
                both = " and ".join(levels[n].name for n in first)
                raise _wrong(where, f"{both} both are first for {what}", "One must be `next` of the other.")
            heads.append(first[0] if first else -1)
    if heads[0] < 0 or heads[1] < 0:
        missing = "instructions" if heads[0] < 0 else "data"
        raise _wrong(where, f"no cache holds {missing}", f'Add a [[cache]] with holds = "{missing}".')
    return heads[0], heads[1], heads[2], heads[3]


def _one_of(entry: Mapping[str, Any], key: str, known: tuple[str, ...], where: str) -> str:
    value = entry.get(key, "" if key == "holds" else known[0])
    if value not in known:
        said = f"{key} = {value!r} is unknown" if value else f"it does not say what it {key}"
        raise _wrong(where, said, f"{key} is one of {', '.join(known)}.")
    return str(value)


def _whole(entry: Mapping[str, Any], key: str, where: str) -> int:
    value = entry.get(key)
    if type(value) is not int or value < 1:
        said = f"it has no {key}" if value is None else f"{key} = {value!r} is no whole number above 0"
        raise _wrong(where, said, f"As in {key} = 8.")
    return value


def _size(value: Any, where: str) -> int:
    match = _SIZE.fullmatch(str(value)) if isinstance(value, int | str) else None
    if match is None:
        raise _wrong(where, f"{value!r} is no size" if value is not None else "it is missing", 'As in "32K".')
    return int(match[1]) * _UNITS[match[2].upper()]


def _bytes(size: int) -> str:
    for unit in ("G", "M", "K"):
        if size >= _UNITS[unit] and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]} {unit}iB"
    return f"{size} B"


def _host() -> Machine:
    """The caches of this machine as the kernel tells them. Its TLBs are not told."""
    found = caches_of_this_machine()
    if not found:
        raise LiveproError(
            "The kernel does not tell this machine's caches.",
            f"Name another: {', '.join(ready())}, or a file.",
        )
    kinds = {"Instruction": "instructions", "Data": "data", "Unified": "both"}
    letters = {"Instruction": "I", "Data": "D", "Unified": ""}
    deepest = max(depth for depth, _, _ in found)
    names = [f"L{depth}{letters[kind]}" for depth, kind, _ in found]
    caches = []
    for name, (depth, kind, shape) in zip(names, found, strict=True):
        after = [
            n for n, (d, k, _) in zip(names, found, strict=True) if d == depth + 1 and k in (kind, "Unified")
        ]
        caches.append(
            {
                **{"name": name, "holds": kinds[kind], "size": shape.size, "ways": shape.ways},
                **{"next": after[0] if after else "memory", "shared": depth == deepest > 2},
            }
        )
    return read(
        {"name": HOST, "line": found[0][2].line, "coherence": "mesi", "cache": caches}, "this machine"
    )
