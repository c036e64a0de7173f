"""Lifts a module's translation out of its cache, and puts one back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import livepro.engines.stream
import livepro.isa
from livepro.engines.stream.blocks import NO_BLOCKS, KeptBlocks
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.persist.gathering import gather
from livepro.engines.translate.persist.module import (
    FIELD_ARRAYS,
    Array,
    Origin,
    PersistedModule,
    number,
    numbers_of,
    order_by_heat,
    renumber,
)
from livepro.engines.translate.translator.tables import LOW
from livepro.isa import kinds as kinds_of
from livepro.isa.kinds import Kinds
from livepro.kept.artifacts import ArtifactStore
from livepro.linux.proc import Mapping
from livepro.linux.written import written_to
from livepro.model import Instruction
from livepro.model.arrays import distinct

_MEBIBYTE = 1 << 20
_REACH = 1 << 31
_LATELY = 64  # modules that are at hand once they have been read: many processes have the same
_SMALL_GROWTH, _GROWTH, _LARGE = 512, 64, 1 << 14
"""What has grown is kept again from one block in so many on; of modules with many blocks that takes seconds,
more than it takes to translate some of them anew."""
_BEYOND = 8  # what a child has made beyond its parent is worth keeping from one block in so many on
_STUB = 32  # bytes at most that a branch which leads out of a module may need: a stub, or a jump far away
_EXPANSION = 8  # bytes of copies there is room for, for each byte of code
_FILTERED = 40  # the same where the event stream is filtered: slow paths for each access


def cache_size(module: Mapping, largest: int, *, filtered: bool) -> int:
    """Bytes of address space for a module's cache, at most `largest`: always the same for the same module."""
    expansion = _FILTERED if filtered else _EXPANSION
    half = -(-(module.end - module.start) * expansion // _MEBIBYTE) * _MEBIBYTE
    return min(2 * half, largest)


def identity(pid: int, module: Mapping) -> tuple[object, ...] | None:
    """What tells a mapped file from all others and from its own other versions. None if the
    file cannot be seen, or if its code is not what is mapped."""
    try:
        status = os.stat(f"/proc/{pid}/root{module.path}")
    except OSError:
        return None
    if status.st_ino != module.inode or written_to(pid, module):
        return None  # or seen through another mount: which file it is cannot be told
    return (
        *(module.path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns),
        *(module.offset, module.end - module.start),
    )


class PersistedCache:
    """The modules kept in a directory for one way to emit (`kind`)."""

    def __init__(self, directory: Path, kind: str) -> None:
        here, stream = Path(__file__).parents[1], Path(livepro.engines.stream.__file__).parent
        self._artifacts = ArtifactStore(directory, kind, here, stream, Path(livepro.isa.__file__).parent)
        self._known: dict[str, int] = {}
        self._lately: dict[str, PersistedModule] = {}
        self._fetched: dict[tuple[int, Mapping], tuple[str, PersistedModule | None]] = {}

    def key(self, *identity: object) -> str:
        """The name for the persisted of a module that `identity` tells from all others."""
        return self._artifacts.key(*identity)

    def fetch(self, pid: int, module: Mapping) -> None:
        """Read what is kept of a process's module, to be taken later."""
        known = identity(pid, module) if module.stable_code and module.file_backed else None
        key = self.key(*known) if known is not None else ""
        self._fetched[pid, module] = key, self.read(key) if key else None

    def take(self, pid: int, module: Mapping) -> tuple[str, PersistedModule | None]:
        """The key of a process's module, empty if nothing may be kept of it, and what is kept of it."""
        if (pid, module) not in self._fetched:
            self.fetch(pid, module)
        return self._fetched.pop((pid, module))

    def read(self, key: str) -> PersistedModule | None:
        """The persisted kept under a key, None if there is none that can be trusted."""
        persisted = self._lately.pop(key, None)
        if persisted is None:
            arrays = self._artifacts.read(key)
            if arrays is None:
                return None
            persisted = PersistedModule(**arrays)
        self._lately[key] = persisted
        if len(self._lately) > _LATELY:
            del self._lately[next(iter(self._lately))]  # the one that was wanted longest ago
        self._known[key] = len(persisted)
        return persisted

    def wants(self, key: str, blocks: int) -> bool:
        """Whether a persisted of so many blocks is worth writing over what is kept."""
        kept = self._known.get(key, 0)
        return blocks - kept > kept // (_SMALL_GROWTH if kept < _LARGE else _GROWTH)

    def write(self, key: str, persisted: PersistedModule) -> None:
        """Keep a persisted, if it can be written."""
        self._artifacts.write(key, persisted.arrays())
        self._lately.pop(key, None)
        self._known[key] = len(persisted)


def _origin(space: CodeCache, cache: Cache) -> Origin:
    assert cache.module is not None
    return Origin(cache.module.start, cache.base, space.areas.data.base)


def restore(space: CodeCache, cache: Cache, persisted: PersistedModule) -> bool:
    """Put a kept translation into a module's new cache. False if it cannot be used there."""
    first = len(space.registry.starts)
    cell = space.registry.cells.first + len(space.registry.cells)
    if not space.flusher.has_room_for(len(persisted), len(persisted.image)):
        return False
    recording, start = space.emitter.recording, _origin(space, cache).module
    numbers = None if recording is None else recording.blocks.put_back(persisted.recorded, start)
    parts = persisted.placed(_origin(space, cache), cell, numbers)
    if parts is None:
        return False
    hot, cold = parts
    if cache.first != cache.base or (len(persisted.tables) and cache.end > LOW):
        return False
    module = cache.module
    assert module is not None
    outside = persisted.outside(module.end - module.start)
    further = len(outside) * _STUB
    if len(hot) > cache.middle or len(cold) + further > cache.end - cache.base - cache.middle:
        return False
    if not all(
        map(space.tables.is_constant, (distinct(persisted.tables).astype(np.int64) + module.start).tolist())
    ):
        return False
    view = np.frombuffer(cache.map, np.uint8)
    view[: len(hot)] = hot
    view[cache.middle : cache.middle + len(cold)] = cold
    cache.hot = cache.base + len(hot)
    cache.cold = cache.base + cache.middle + len(cold)
    cache.persisted, cache.first_slot, cache.first_cell = persisted, first, cell
    space.memory.bytes += len(persisted.image)
    stubs = (persisted.stubs.astype(np.int64) + cache.base).tolist()
    targets = (persisted.stub_targets.astype(np.int64) + module.start).tolist()
    cache.stubs.update(zip(targets, stubs, strict=True))
    space.linker.exits.update(zip(stubs, targets, strict=True))
    space.registry.add_restored(cache)
    space.linker.publish_restored(cache)
    space.linker.exit_again(
        cache,
        (persisted.link_fields[outside].astype(np.int64) + cache.base).tolist(),
        (persisted.link_targets[outside].astype(np.int64) + module.start).tolist(),
    )
    space.memory.lookup.enter_all(
        persisted.landing_pcs.astype(np.int64) + module.start,
        persisted.landings.astype(np.int64) + cache.base,
        persisted.landing_exits.astype(np.int64) + cache.base,
        cache,
    )
    return True


def keep(
    space: CodeCache,
    store: PersistedCache,
    describe: Callable[[bytes], Instruction],
    parent: CodeCache | None = None,
) -> None:
    """Write down the translations of all modules that have grown; those that a forked child has made hardly
    more of are left to its `parent`, which lives on: it would keep the same once more."""
    caches = () if parent is None else parent.memory.caches.all
    left = {cache.key: len(cache.blocks) for cache in caches}
    for cache in space.memory.caches.all:
        if cache.key in left and len(cache.blocks) - left[cache.key] <= len(cache.blocks) // _BEYOND:
            continue
        blocks, size = len(cache.blocks), sum(end - start for start, end in cache.used)
        if not cache.key or not store.wants(cache.key, blocks) or not space.flusher.could_hold(blocks, size):
            continue
        if _alone(space, cache):
            store.write(cache.key, capture(space, cache, describe))


def _alone(space: CodeCache, cache: Cache) -> bool:
    """Whether all copies of the module's code are in its cache: what leads to one elsewhere cannot
    be put back without it. (Branches out of the module are linked anew, if they say where to in 32 bits.)"""
    module = cache.module
    assert module is not None
    found = [cache.record.all_links()[:, 1]]
    if cache.persisted is not None:
        found.append(cache.persisted.link_targets.astype(np.int64) + module.start)
    targets = distinct(np.concatenate(found))
    if (np.abs(targets - module.start) >= _REACH).any():
        return False
    inside = targets[(targets >= module.start) & (targets < module.end)].tolist()
    slots, starts = space.registry.slots, space.registry.starts
    found_at = np.array([starts[slots[target]] for target in inside if target in slots], np.int64)
    return bool(((cache.base <= found_at) & (found_at < cache.end)).all())


def _offsets(addresses: Iterable[int], base: int) -> Array:
    return (np.fromiter(addresses, np.int64) - base).astype(np.int32)


def capture(space: CodeCache, cache: Cache, describe: Callable[[bytes], Instruction]) -> PersistedModule:
    """All that a module's cache holds."""
    module, record, old = cache.module, cache.record, cache.persisted
    assert module is not None
    base, start = cache.base, module.start
    view = np.frombuffer(cache.map, np.uint8)
    hot = cache.hot - base
    image = np.concatenate((view[:hot], view[cache.middle : cache.cold - base]))

    def after(name: str, more: Array) -> Array:
        return more if old is None else np.concatenate((getattr(old, name), more))

    fields, recorded = {}, record.all_fields()
    for kind, name in FIELD_ARRAYS.items():
        positions = (recorded[kind] - base).astype(np.int32)
        positions[positions >= cache.middle] -= cache.middle - hot
        if old is not None:
            kept = getattr(old, name).copy()
            kept[kept >= old.hot[0]] += hot - old.hot[0]
            positions = np.concatenate((kept, positions))
        fields[name] = positions
    kind_of = Kinds(describe)
    for row in () if old is None else old.instructions:
        kind_of.number(kinds_of.restore(row))  # numbers as they were
    blocks = gather(cache, kind_of)

    def slots_of(mine: Array, before: str) -> Array:
        if old is None:
            return mine
        return np.concatenate((getattr(old, before).astype(np.int64) + cache.first_slot, mine))

    slots = slots_of(blocks.own, "ranks")
    counted = slots_of(blocks.counted, "counted")
    ranks = order_by_heat(space.registry.executions()[counted])
    by_slot = np.zeros(len(space.registry.starts), np.int64)
    by_slot[slots] = ranks
    renumber(image, fields["cell_fields"], fields["slot_fields"], by_slot)
    records = _recorded(space, image, fields["record_fields"], start)

    links = record.all_links()
    link_fields = after("link_fields", (links[:, 0] - base).astype(np.int32))
    link_targets = after("link_targets", (links[:, 1] - start).astype(np.int32))
    order = np.argsort(link_targets, kind="stable")
    stubs = [
        (stub, target)
        for target, stub in cache.stubs.items()
        if target not in space.registry.slots or not cache.serves(target)
    ]
    # The latest branched to come first: an early run's favourites make room for a later one's.
    landed = record.all_landings()
    likely, others = landed[landed[:, 3] != 0][::-1], landed[landed[:, 3] == 0]

    def landings(which: int, origin: int, name: str) -> Array:
        mine = [(entries[:, which] - origin).astype(np.int32) for entries in (likely, others)]
        if old is None:
            return np.concatenate(mine)
        before = getattr(old, name)
        return np.concatenate((mine[0], before[old.landing_likely], mine[1], before[~old.landing_likely]))

    before = np.zeros(0, bool) if old is None else old.landing_likely
    flags = np.arange(len(before) + len(landed)) < len(likely) + int(before.sum())
    where = _origin(space, cache)
    return PersistedModule(
        hot=np.array([hot], np.int64),
        image=image,
        **fields,
        ranks=ranks,
        counted=by_slot[counted].astype(np.int32),
        pcs=after("pcs", (blocks.pcs - start).astype(np.int32)),
        starts=after("starts", (blocks.starts - base).astype(np.int32)),
        colds=after("colds", (blocks.colds - base).astype(np.int32)),
        sizes=after("sizes", blocks.sizes.astype(np.int32)),
        lengths=after("lengths", blocks.lengths.astype(np.int32)),
        code_sizes=after("code_sizes", blocks.code_sizes.astype(np.int32)),
        live=after("live", blocks.live.astype(np.int32)),
        steps=after("steps", blocks.steps),
        code=after("code", blocks.code),
        kinds=after("kinds", blocks.kinds),
        kind_facts=np.frombuffer(kinds_of.dump(kind_of.instructions), np.uint8),
        link_fields=link_fields[order],
        link_targets=link_targets[order],
        stubs=_offsets((stub for stub, _ in stubs), base),
        stub_targets=_offsets((target for _, target in stubs), start),
        landing_pcs=landings(0, start, "landing_pcs"),
        landings=landings(1, base, "landings"),
        landing_exits=landings(2, base, "landing_exits"),
        landing_likely=flags,
        tables=after("tables", _offsets(record.tables, start)),
        origin=np.array([where.module, where.cache, where.data], np.int64),
        **{f"record_{part}": values for part, values in records._asdict().items()},
    )


def _recorded(space: CodeCache, image: Array, fields: Array, start: int) -> KeptBlocks:
    """The blocks that an image records, which it then names by their order here."""
    recording = space.emitter.recording
    if recording is None:
        return NO_BLOCKS
    blocks = recording.blocks
    numbers = np.unique(numbers_of(image, fields))
    places = np.zeros(len(blocks), np.int64)
    places[numbers] = np.arange(len(numbers))
    number(image, fields, places)
    return blocks.kept(numbers, start)
