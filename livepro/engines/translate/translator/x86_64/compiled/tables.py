"""Where things are in the arrays that the kernels work on."""

from __future__ import annotations

# -- `state`, by index

HOT, COLD, HOT_END, COLD_END = range(4)
"""Offsets in the cache: the next free places of both parts, and the ends of what may be written."""
BASE, MODULE, SIZE = range(4, 7)
"""The addresses of the cache and the module, the module's bytes."""
SLOT = 7
"""The slot of the next block."""
LOW = 8
"""Not 0 where code is below 2 GiB: branches through registers may be by a table, and are left to Python."""
BUDGET = 9
"""Blocks to be translated eagerly yet."""
LINKS, ENTRIES = 10, 11
"""How many links and entries of the index there are."""
ROWS, FIELDS, STUBS, LANDINGS, PATCHES, LEFT, AGAIN, RETURNS, SUCCESSORS, NEEDS = range(12, 22)
"""How many of each there are since the kernel was called."""
BYTES = 22
"""Bytes that fragments, landings, stubs and constants have taken since then."""
FIRST_LINK = 23
"""The links before this one were there then."""
STATE_SIZE = 24

# -- `rows`, by column: what became of a block

PC, START, BYTES_OF, LENGTH, CODE, LIVE, ROW_COLUMNS = range(7)
"""Its offset in the module; its fragment's offset in the cache, and bytes; its instructions, its bytes, the
flags that were found live at its end."""

# -- the index of the module's addresses, by column

FRAGMENT, STUB, LINK, FLAGS, LANDED, INDEX_COLUMNS = range(6)
"""Offsets in the cache of the fragment and of the stub for it (0: none); the first link that leads there,
plus 1; the flags it may read, plus 1 (0: not known yet); whether the lookup table has it."""

# -- `pieces`, by number

SAVE_RAX, SAVE_RCX, LOAD_RAX, LOAD_RCX, INCREMENT, POP_RAX, ADJUST_RSP, UNDER_STACK = range(8)
PUSH, PUSH_AT, SITE, LOOKUP, LANDING, JUMP_PIECE = range(8, 14)
ADD_ONE = 14
"""For each register: load, add one, store."""
PADDING = ADD_ONE + 16
"""For each number of bytes up to 3."""
PIECES = PADDING + 4

FIXED_BELOW = 1 << 31
"""Where an address below this is pushed, it is a constant in the instruction."""
