"""Has all of this compiled, and the shapes of libc's instructions learnt, before they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile

from livepro.engines.translate import layout
from livepro.engines.translate.codecache.compiled_code import LookupTable
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.translate.translator.x86_64.compiled.prepared.store import ShapeStore

_ROOM = 64 << 20  # bytes of a cache that nobody runs
_EAGER = 1 << 20


def prepare() -> int:
    """Compile the kernels and learn the shapes in libc. Returns how many shapes are kept. Raises ImportError
    without numba."""
    from livepro.engines.translate.translator.x86_64.compiled.module import CompiledModule, Text
    from livepro.engines.translate.translator.x86_64.compiled.prepared.loading import loaded
    from livepro.engines.translate.translator.x86_64.compiled.templates import pieces
    from livepro.engines.translate.translator.x86_64.emitter import Emitter

    emitter, store = Emitter(1 << 20, {}, Countdown.NONE), ShapeStore()
    shapes = loaded(store, store.read())
    for path, start, size, offset in _libraries():
        code = Path(path).read_bytes()[offset : offset + size].ljust(size, b"\0")
        text = Text(start, size, shapes)
        image = np.frombuffer(bytearray(_ROOM), np.uint8)
        made_for = pieces(emitter.lookup, emitter.landing(0))
        module = CompiledModule(
            text,
            start + size,
            image,
            *made_for,
            low=False,
            records=False,
            filter=None,
            asks=False,
        )
        none = np.zeros(0, np.int64)
        module.take(none, none, none, none, none, none, np.zeros((0, 2), np.int64))
        table = np.zeros(layout.LOOKUP_ENTRIES, np.uint64)
        tails = np.zeros(layout.LOOKUP_ENTRIES, np.int64)
        slot = 0
        for pc in _functions(path, offset, size):
            module.begin(_EAGER)
            while True:
                hot, cold = module.ends
                room = max(hot, 16), max(cold, _ROOM // 2), _ROOM // 2, _ROOM
                made = module.run(pc, slot, room, lands=True, likely=False)
                if made is not None:
                    slot += len(made.rows)
                    module.publish()
                    module.land(LookupTable(table, tails, start, emitter.landing(0).otherwise))
                    pc = -1
                if not module.prepare(lambda at, n: code[at - start : at - start + n]):  # noqa: B023 - at once
                    break
            if cold > _ROOM - (1 << 20) or hot > _ROOM // 2 - (1 << 20):
                break
    store.write(shapes.kept())
    return len(shapes)


def _libraries() -> Iterator[tuple[str, int, int, int]]:
    """Path, address, size and file offset of libc's code as this process has it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        where, rights, offset, _, _, *path = line.split(maxsplit=5)
        if path and "x" in rights and "/libc" in path[0] and ".so" in path[0]:
            start, end = (int(part, 16) for part in where.split("-"))
            yield path[0], start, end - start, int(offset, 16)


def _functions(path: str, offset: int, size: int) -> list[int]:
    """Where functions begin that a file exports, from an offset on."""
    with open(path, "rb") as file:
        symbols: Any = ELFFile(file).get_section_by_name(".dynsym")
        functions = (s for s in symbols.iter_symbols() if s["st_info"]["type"] == "STT_FUNC")
        places = {s["st_value"] - offset for s in functions}
    return sorted(place for place in places if 0 <= place < size)
