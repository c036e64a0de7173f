"""Runs a command with all that compiled code can translate translated by it, and translates each block
again in Python, when the program has ended, and before all is dropped: prints how many there were, and those
that differ.

    compiled_twin.py [OPTION] DIRECTORY COMMAND [ARGS...]

OPTION is --record (all of the event stream), --branches (without addresses), --filter, --intervals,
--short, --dropping (again and again), --unkept.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
from engines.allowing import compile_always

import livepro
from livepro.engines.translate.codecache.cache import Cache
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.engine import LONG, TranslateEngine
from livepro.engines.translate.thread import TranslatedThread
from livepro.engines.translate.threads.flush_policy import FlushPolicy

seen: Counter[str] = Counter()


def compare(space: CodeCache, cache: Cache) -> None:
    """Compare all fragments of a cache that compiled code has made with what the emitter makes of these."""
    image = np.frombuffer(cache.map, np.uint8)
    fields = {int(at): kind for kind, places in cache.record.all_fields().items() for at in places}
    links = dict(cache.record.all_links().tolist())
    unlooked = [row for row, block in enumerate(cache.blocks) if block is None and row >= cache.kept]
    seen["put back"] += cache.kept
    for row in unlooked:
        block = space.registry.recall(cache, row)
        details, at = block.details, block.start
        there = image[at - cache.base : at - cache.base + block.size].copy()
        code = np.frombuffer(bytes(details.code), np.uint8).copy()
        cold = details.cold
        elsewhere = [] if cold is None else [offset for offset, _ in cold.enters]
        if cache.module is None:
            elsewhere.append(block.size - 4 if details.skip is None else details.skip)
            if details.skip is not None and image[at - cache.base + details.skip - 1] != 0xE9:
                there[details.skip - 1] = 0xE9  # it is trusted: what would be a jump does nothing
        for offset in [*(o for o, _ in details.exits), *(o for o, _ in details.literals), *elsewhere]:
            there[offset : offset + 4] = code[offset : offset + 4] = 0  # where it leads, or lies
        same = there.tolist() == code.tolist()
        mine = {(kind, at + offset) for kind, offset in details.fields}
        same &= mine == {(fields[p], p) for p in range(at, at + block.size) if p in fields}
        same &= all(links[at + offset] == target for offset, target in details.exits)
        for offset, value in details.literals:
            field = at + offset - cache.base
            place = field + 4 + int(image[field : field + 4].view("<i4")[0])
            same &= int(image[place : place + 8].view("<u8")[0]) == value
        if cache.module is None:
            same &= alike_beside(space, block, image, cache.base)
            seen["comparisons"] += details.skip is None
        if cold is not None:
            same &= alike_out_of_the_way(block, image, cache.base, fields)
            seen["out of the way"] += 1
        seen["same" if same else "different"] += 1
        if not same and seen["different"] < 10:
            print(f"{block.source.pc:#x}", block.source.code.hex(), bytes(code).hex(), bytes(there).hex())


def alike_beside(space: CodeCache, block: Any, image: Any, base: int) -> bool:
    """Whether the comparison of a fragment leads behind the jump that leads there."""
    if block.details.skip is not None:
        return block.start + block.details.skip + block.compares in space.memory.made_at(block.start).starts
    behind = block.start - base + block.size
    main = space.registry.block(block.slot)
    leads = base + behind + int(image[behind - 4 : behind].view("<i4")[0])
    assert main.details.skip is not None
    return leads == main.start + main.details.skip + 4


def alike_out_of_the_way(block: Any, image: Any, base: int, fields: dict[int, Any]) -> bool:
    """Whether a fragment's slow path is what the emitter makes of it, and both lead to each other."""
    cold, place = block.details.cold, block.cold - base
    expected = bytearray(cold.code)
    for offset, to in cold.backs:
        expected[offset : offset + 4] = (block.start + to - (block.cold + offset + 4)).to_bytes(
            4, "little", signed=True
        )
    same = bytes(expected) == image[place : place + len(expected)].tobytes()
    for offset, begin in cold.enters:
        at = block.start - base + offset
        same &= int(image[at : at + 4].view("<i4")[0]) == place + begin - (at + 4)
    mine = {(kind, block.cold + offset) for kind, offset in cold.fields}
    there = range(block.cold, block.cold + len(expected))
    return same and mine == {(fields[p], p) for p in there if p in fields}


def check_links(space: CodeCache, cache: Cache) -> None:
    """Each link leads to the fragment of its target, if there is one, else to a stop that is known."""
    registry, image = space.registry, np.frombuffer(cache.map, np.uint8)
    for field, target in cache.record.all_links().tolist():
        offset = field - cache.base
        leads = field + 4 + int(image[offset : offset + 4].view("<i4")[0])
        slot = registry.slots.get(target)
        if cache.module is None and (slot is None or not cache.covers(target)):
            continue  # to an earlier fragment, perhaps, which leads on, or elsewhere
        right = cache.stubs[target] if slot is None else registry.starts[slot]
        far = slot is not None and not cache.serves(target) and cache.module is not None
        copies = () if slot is None else registry.further_starts(slot)  # a loop leads from one to the next
        if leads != right and not far and leads not in copies:
            seen["astray"] += 1
            print(f"{field:#x} leads to {leads:#x}, not to {right:#x} of {target:#x}")


def main(directory: str, *command: str) -> None:
    """See above."""
    analyses: tuple[str, ...] = ()
    size, cache_size, kept = 0, None, True
    if directory == "--record":
        analyses, (directory, *command) = ("split",), command
    elif directory == "--branches":
        analyses, (directory, *command) = ("indirect",), command
    elif directory == "--filter":
        analyses, (directory, *command) = ("cachesim:filtered=True",), command
    elif directory == "--intervals":
        size, (directory, *command) = 20_000_000, command
    elif directory == "--short":
        size, (directory, *command) = 1_000_000, command
    elif directory == "--dropping":
        cache_size, (directory, *command) = 1_000_000, command
    elif directory == "--unkept":
        kept, (directory, *command) = False, command
    compile_always()
    ended, flush = TranslateEngine.process_ended, FlushPolicy.flush

    def look(space: CodeCache) -> None:
        seen["again"] += space.flusher.flushes > 1 and not space.registry.cells.original
        for cache in space.memory.caches.all:
            if cache.batches:
                compare(space, cache)
                check_links(space, cache)

    def process_ended(self: TranslateEngine, process: Any) -> None:
        space = self.table.spaces.get(process)
        if space is not None:
            look(space)
        ended(self, process)

    def flush_all(self: FlushPolicy, state: TranslatedThread) -> bool:
        look(state.space)
        return flush(self, state)

    TranslateEngine.process_ended = process_ended  # type: ignore[method-assign]
    if cache_size:
        FlushPolicy.flush = flush_all  # type: ignore[method-assign]
    result = livepro.run(
        command,
        engine="translate",
        cache=directory if kept else False,
        analyses=analyses,
        interval_size=size,
        cache_size=cache_size,
    )
    asking = seen["same"] - seen["comparisons"] if size >= LONG else 0
    if seen["out of the way"] != asking and not analyses:
        sys.exit("not just those that are given allowances have a slow path")
    if cache_size and not seen["again"]:
        sys.exit("nothing has been dropped")
    print(
        seen["same"],
        "the same",
        seen["different"],
        "different",
        seen["astray"],
        "astray,",
        seen["comparisons"],
        "compared",
    )
    sys.exit(result.exit)


if __name__ == "__main__":
    main(*sys.argv[1:])
