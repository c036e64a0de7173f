"""Names for the entries of procedure linkage tables, which no symbol covers.

A PLT entry jumps through a slot of the global offset table, and the relocation
of that slot names the function. Which entry uses which slot is found without
decoding an instruction, in two ways:

- by displacement: an entry that holds the 32-bit distance from its own code to
  a relocated slot uses that slot. True of every x86-64 layout (`.plt`,
  `.plt.sec`, `.plt.got`; System V ABI, AMD64 supplement, figure 5.2).
- by the slot's first content: a slot that is bound lazily begins by pointing
  back into the PLT, on x86-64 into its own entry, on AArch64 at the beginning
  of the table, whose entries then follow its header in the order of their
  slots (binutils, `bfd/elfxx-x86.c` and `bfd/elfnn-aarch64.c`; the same in lld).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.linux.elf import DT_TLSDESC_PLT, ElfImage, Section, Uint64s

USUAL_ENTRY_SIZE = 16

UNSTATED_SIZES = (16, 24)
"""Entry sizes on AArch64, where GNU ld leaves sh_entsize at 0: plain, and with BTI or PAC."""

HEADER_SIZES = (32, 0)
"""On AArch64 (PLT0); without one in static programs, whose entries are all IFUNCs'."""

NameLookup = Callable[[Uint64s], list[str]]


def plt_entries(image: ElfImage, function_at: NameLookup) -> list[tuple[int, int, str]]:
    """(virtual address, size in bytes, ``NAME@plt``) of each PLT entry whose function is known.

    `function_at` gives the names of the functions at virtual addresses: a slot
    that a resolver function fills (an IFUNC's) has no symbol but its address.
    """
    tables = [s for s in image.sections if s.executable and (s.name == ".plt" or s.name.startswith(".plt."))]
    if not tables:
        return []
    lazy = image.relocations(".rela.plt")
    slots = np.concatenate([lazy, image.relocations(".rela.dyn")])
    slots = slots[np.argsort(slots["offset"], kind="stable")]
    lazy = np.sort(lazy, order="offset")
    found: list[tuple[int, int, Any]] = []
    for table in tables:
        found += by_displacement(image, table, slots) or by_content(image, table, lazy)
    names = slot_names(image, [slot for _, _, slot in found], function_at)
    return [
        (address, size, f"{name}@plt") for (address, size, _), name in zip(found, names, strict=True) if name
    ]


def by_displacement(image: ElfImage, table: Section, slots: npt.NDArray[Any]) -> list[tuple[int, int, Any]]:
    """(address, size, relocation) of each entry that holds the distance to a relocated slot.

    Nothing unless most entries do: bytes that happen to fit are then no evidence.
    """
    code = np.frombuffer(image.contents(table), np.uint8)
    if len(code) < 4 or not len(slots):
        return []
    distances = np.lib.stride_tricks.sliding_window_view(code, 4).copy().view("<i4").ravel().astype(np.int64)
    # A displacement counts from behind its own four bytes, where the instruction ends.
    targets = (table.address + np.arange(len(distances)) + 4 + distances).astype(np.uint64)
    at = np.minimum(np.searchsorted(slots["offset"], targets), len(slots) - 1)
    hits = np.flatnonzero(slots["offset"][at] == targets)
    # In static programs the entries have 8 bytes, and GNU ld does not state it.
    size = min([table.entry_size or USUAL_ENTRY_SIZE, len(code), *np.diff(hits).tolist()])
    if size < 4 or 2 * len(hits) * size < len(code):
        return []
    return [(table.address + int(hit) // size * size, size, slots[at[hit]]) for hit in hits]


def by_content(image: ElfImage, table: Section, lazy: npt.NDArray[Any]) -> list[tuple[int, int, Any]]:
    """(address, size, relocation) of each entry, from what the slots hold before they are bound.

    `lazy` are the relocations of `.rela.plt` in the order of their slots.
    """
    end = table.address + table.size
    # The entry for thread-local storage descriptors closes the table and is nobody's.
    trailer = image.dynamic_entry(DT_TLSDESC_PLT) or end
    end = trailer if table.address <= trailer < end else end
    contents = [int.from_bytes(image.memory(int(offset), 8), "little") for offset in lazy["offset"]]
    pairs = [(at, slot) for at, slot in zip(contents, lazy, strict=True) if table.address <= at < end]
    if any(at != table.address for at, _ in pairs):
        size = table.entry_size or USUAL_ENTRY_SIZE
        return [(at - (at - table.address) % size, size, slot) for at, slot in pairs]
    for header in HEADER_SIZES:
        for size in [table.entry_size] if table.entry_size else UNSTATED_SIZES:
            if table.address + header + size * len(pairs) == end:
                first = table.address + header
                return [(first + i * size, size, slot) for i, (_, slot) in enumerate(pairs)]
    return []


def slot_names(image: ElfImage, slots: list[Any], function_at: NameLookup) -> list[str]:
    """The function that each slot is going to hold: its relocation's symbol, else what is at the addend."""
    symbols = image.symbols(".dynsym")
    names = [""] * len(slots)
    unnamed = []
    for i, slot in enumerate(slots):
        index = int(slot["info"]) >> 32
        if index == 0:
            unnamed.append(i)
        elif symbols is not None and index < len(symbols.entries):
            names[i] = symbols.name(int(symbols.entries["name"][index]))
    if unnamed:
        addends = np.array([int(slots[i]["addend"]) % (1 << 64) for i in unnamed], np.uint64)
        for i, name in zip(unnamed, function_at(addends), strict=True):
            names[i] = name
    return names
