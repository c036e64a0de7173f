"""Functions by their unwind information: the FDEs of `.eh_frame`, which stripped files keep.

Format: Linux Standard Base, Core, "Exception Frames" (`.eh_frame`) and
"DWARF Extensions" (pointer encodings). Compilers write one encoding, which
NumPy reads at once; everything else is read by pyelftools.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.linux.elf import ElfImage

_EXTENDED = 0xFFFFFFFF
_HEADER = 8  # of an entry: its length and the distance to its CIE
_PLAIN_TABLE = (1, 0x1B, 0x03, 0x3B)
"""`.eh_frame_hdr`: version, DW_EH_PE_pcrel|sdata4, DW_EH_PE_udata4, DW_EH_PE_datarel|sdata4."""


def fde_ranges(image: ElfImage) -> npt.NDArray[np.uint64]:
    """The [start, end) of each FDE's code (uint64, N x 2), ascending; none without `.eh_frame`."""
    frames, header = image.section(".eh_frame"), image.section(".eh_frame_hdr")
    if frames is None:
        return np.zeros((0, 2), np.uint64)
    if header is not None:
        found = _by_table(image.contents(frames), frames.address, image.contents(header), header.address)
        if found is not None:
            return found
    return _by_entries(image)


def _by_table(frames: bytes, base: int, table: bytes, table_base: int) -> npt.NDArray[np.uint64] | None:
    """The ranges, where the sorted table of `.eh_frame_hdr` leads to entries of the usual encoding;
    None where it does not."""
    if tuple(table[:4]) != _PLAIN_TABLE or len(table) < 12:
        return None
    count = int.from_bytes(table[8:12], "little")
    pairs = np.frombuffer(table, "<i4", offset=12, count=min(2 * count, (len(table) - 12) // 8 * 2))
    pairs = pairs.reshape(-1, 2).astype(np.int64) + table_base
    starts, at = pairs[:, 0], pairs[:, 1] - base
    if len(pairs) != count or np.any(at < 0) or np.any(at + 16 > len(frames)):
        return None
    data = np.frombuffer(frames, np.uint8)

    def word(shift: int, layout: str) -> npt.NDArray[np.int64]:
        parts = data[(at + shift)[:, None] + np.arange(4)]
        return np.ascontiguousarray(parts).view(layout).ravel().astype(np.int64)

    begins = word(_HEADER, "<i4") + at + _HEADER + base
    if np.any(word(0, "<u4") == _EXTENDED) or np.any(begins != starts):
        return None
    out = np.stack([starts, starts + word(_HEADER + 4, "<u4")], 1).astype(np.uint64)
    return out[np.lexsort((out[:, 1], out[:, 0]))]


def _by_entries(image: ElfImage) -> npt.NDArray[np.uint64]:
    """The ranges, entry by entry."""
    from elftools.dwarf.callframe import FDE

    ranges = set()
    entries: list[Any] = image.call_frames()
    for entry in entries:
        if isinstance(entry, FDE):
            start = int(entry["initial_location"])
            ranges.add((start, start + int(entry["address_range"])))
    return np.array(sorted(ranges), np.uint64).reshape(-1, 2)
