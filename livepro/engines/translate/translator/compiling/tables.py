"""Where things are in the arrays that the kernels of both instruction sets work on."""

from __future__ import annotations

MOST = 512
"""Bytes of a block: longer ones may not fit into one fragment and are left to Python."""
WINDOW_SHIFT = 12
"""Of each page of code is known whether it has been read: rights are by pages."""
READ, REFUSED = 1, 2
"""What is `present` of a page: all of it, or not all can be read, as behind the end of a file (0: not asked
for yet)."""

FINE, WAIT, PYTHON = 0, 1, 2
"""What came of a block: it is decoded; something must be read or learnt first; it is left to Python."""

# -- `state`, by index

HOT, COLD, HOT_END, COLD_END = range(4)
"""Offsets in the cache: the next free places of both parts, and the ends of what may be written."""
BASE, MODULE, SIZE = range(4, 7)
"""The addresses of the cache and the module, the module's bytes."""
CELL = 7
"""The counter of the next block."""
BUDGET = 8
"""Blocks to be translated eagerly yet."""
LINKS, ENTRIES = 9, 10
"""How many links and entries of the index there are."""
ROWS, FIELDS, STUBS, LANDINGS, PATCHES, LEFT, AGAIN, RETURNS, SUCCESSORS, NEEDS = range(11, 21)
"""How many of each there are since the kernel was called."""
BYTES = 21
"""Bytes that fragments, landings, stubs and constants have taken since then."""
ROOM = 22
"""Bytes that a chain may take."""
ENTERED, ELSEWHERE = 23, 24
"""Of the landings how many have been entered in the lookup table, and of how many the displacement that is to
lead there is in another cache."""
COMMON = 25
"""From here on an instruction set's own."""

CHAIN = 6
"""Blocks laid out in a row (as many as `building` lays out)."""

NOWHERE = -(1 << 62)
"""No offset in a module."""

# -- `rows`, by column: what became of a block

PC, START, BYTES_OF, LENGTH, CODE, LIVE, SLOW, AT, ROW_COLUMNS = range(9)
"""Its offset in the module; its fragment's offset in the cache, and bytes; its instructions, its bytes, the
flags that were found live at its end; the offset in the cache of where it asks for an allowance (0:
nowhere); the index of its bytes. (A row of no instructions is the comparison of a block's code.)"""

# -- the index of the module's addresses, by column

FRAGMENT, STUB, LINK, FLAGS, LANDED, GONE, INDEX_COLUMNS = range(7)
"""Offsets in the cache of the fragment and of the stub for it (0: none); the first link that leads there,
plus 1; the flags it may read, plus 1 (0: not known yet); the offset in the cache of its landing (0: the
lookup table does not have it); whether it has had a fragment that is no longer in force: further ones are
left to Python."""
