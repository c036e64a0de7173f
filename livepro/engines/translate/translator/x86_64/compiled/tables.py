"""Where things are in the arrays that the kernels work on."""

from __future__ import annotations

# -- instructions and blocks

LONGEST = 15
"""Bytes of an instruction (SDM vol. 2, 2.3.11)."""
MOST = 512
"""Bytes of a block: longer ones may not fit into one fragment and are left to Python."""
WINDOW_SHIFT = 12
"""Of each page of code is known whether it has been read: rights are by pages."""
READ, REFUSED = 1, 2
"""What is `present` of a page: all of it, or not all can be read, as behind the end of a file (0: not asked
for yet)."""

# What there is of a shape, by column of `facts`.
KIND, READS, KILLS, REGISTERS_READ, REGISTERS_KILLED, FAULTS, HEAD, COLUMNS = range(8)

# `facts.Kind`, and one for what is left to Python.
PLAIN, RELATIVE, REP, SYSCALL, NATIVE, JUMP, BRANCH, COUNTED, CALL = range(9)
INDIRECT_JUMP, INDIRECT_CALL, RETURN, INVALID, OTHER = range(9, 14)

MANY = 0x80
"""So many instructions are taken from a budget as a number of four bytes, fewer as one of one
(`encode.subtract_area`)."""

FINE, WAIT, PYTHON = 0, 1, 2
"""What came of a block: it is decoded; something must be read or learnt first; it is left to Python."""

# -- `state`, by index

HOT, COLD, HOT_END, COLD_END = range(4)
"""Offsets in the cache: the next free places of both parts, and the ends of what may be written."""
BASE, MODULE, SIZE = range(4, 7)
"""The addresses of the cache and the module, the module's bytes."""
CELL = 7
"""The counter of the next block."""
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
RECORDS = 24
"""Not 0 where executions of blocks are recorded."""
PLACES, WORDS = 25, 26
"""Of the block that was planned last: how many addresses it records (-1: it is not recorded), and the words
of its record."""
ROOM = 27
"""Bytes that a chain may take."""
ASKS = 28
"""Not 0 where blocks are given allowances."""
ENTER, BACK = 29, 30
"""Of the block that was counted last: the index of the 4 bytes that lead to where it asks for an allowance,
and the one that leads back to."""
FILTERS = 31
"""Not 0 where what hits in a thread's caches is left out of the event stream."""
DATA_LINE, DATA_MASK, CODE_LINE, CODE_MASK = range(32, 36)
"""The bytes of a line of these caches, and the bits of an address that say where its set is."""
LATEST = 36
"""The line that the block fetched last (-1: none)."""
USED = 37
"""The registers that a block uses."""
ADDRESSES = 38
"""Not 0 where the addresses that blocks access are recorded."""
HERE = 39
"""The address of the block that was planned last."""
ENTERED, ELSEWHERE = 40, 41
"""Of the landings how many have been entered in the lookup table, and of how many the displacement that is to
lead there is in another cache."""
CHARGES = 42
"""Not 0 where each execution of a block takes its length from a budget."""
CHECKS = 43
"""Not 0 where code may change: fragments compare it with what they were made from when they are entered."""
STATE_SIZE = 44

CHAIN = 6
"""Blocks laid out in a row (as many as `building` lays out)."""
ROOM_PLAIN, ROOM_RECORDED, ROOM_FILTERED = CHAIN * 2048, CHAIN * 10240, CHAIN * 10240
ROOM_COMPARED = CHAIN * 2560
"""Bytes that a chain may take: its blocks have 512 bytes at most, which twice that and a lookup hold, and
`MOST_WORDS` words of a record, which take 82 each, and 27 for each instruction that needs the register that
is lent, or accesses that are filtered, which take 132, and a slow path of 140. To compare them takes 27 bytes
for each 8 more, and 100."""

FIELDS_OF_BLOCK = 5 * 64 + 4 * 16 + 8
"""Fields of a block, at most: five of each access, four of each line that is fetched."""

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

# -- `pieces`, by number

SAVE_RAX, SAVE_RCX, LOAD_RAX, LOAD_RCX, INCREMENT, POP_RAX, ADJUST_RSP, UNDER_STACK = range(8)
PUSH, PUSH_AT, SITE, LOOKUP, LANDING, JUMP_PIECE = range(8, 14)
ADD_ONE = 14
"""For each register: load, add one, store."""
FULL = ADD_ONE + 16
"""Ask whether a thread's chunk of records is full."""
ALLOWED, ASKING = FULL + 1, FULL + 2
"""Count in rcx, or ask for an allowance; ask."""
SAVE_FLAGS, GIVE_FLAGS_BACK, HOLD_FLAGS, RELEASE_FLAGS = range(FULL + 3, FULL + 7)
"""Save flags, and give them back; the same, and have them in rax meanwhile."""
CALL_ACCESS, CALL_FULL, IS_FULL = range(FULL + 7, FULL + 10)
"""Have an access simulated; stop, as the chunk is full; see whether it is."""
SEE_FULL = FULL + 10
"""Ask whether a thread's chunk of records is full, where flags need not be kept."""
KEEP_FLAGS, FLAGS_BACK = FULL + 11, FULL + 12
"""Save flags, and give them back, where a block is counted."""
CHARGE, CHARGE_MANY, STOP_IF_SPENT = range(FULL + 13, FULL + 16)
"""Take a block's length from the budget, of one byte or of four; stop if that makes it negative."""
COMPARE = FULL + 16
"""Compare 1, 2, 4 or 8 bytes of the program's with what they were."""
PADDING = COMPARE + 4
"""For each number of bytes up to 3."""
PIECES = PADDING + 4

# -- `recorded`, by column: what is recorded of a shape

CAN, WRITTEN, MOVED, BY, BY_IMMEDIATE, FLOW, ACCESSES, ACCESS = range(8)
"""Whether it is recorded here (`UNKNOWN`, `YES`, `NO`: left to Python); a mask of the general registers that
it writes, but for one, to which a constant and its immediate times another are added (-1: none); its index in
`livepro.engines.stream.blocks.FLOWS`; how many accesses it makes, whose columns begin at the last."""
UNKNOWN, YES, NO = range(3)
OPERAND_BASE, OPERAND_SCALED, OPERAND_SCALE, CONSTANT, FACTOR, FS, FROM_HERE = range(7)
BYTES_ACCESSED, KIND_OF = 7, 8
"""Of each: its registers (-1: none) and scale; what is added, and how often its displacement is; whether the
base of fs is, or its place; its bytes and kind."""
ACCESS_COLUMNS = 9
MOST_ACCESSES = 2
RECORDED_COLUMNS = ACCESS + MOST_ACCESSES * ACCESS_COLUMNS

# -- `places`, by column: an address that a block records

OF, WORD, PLACE_BASE, PLACE_SCALED, PLACE_SCALE, DISPLACEMENT, PLACE_FS, MOVES, EARLY, ACCESS_SIZE = range(10)
PLACE_COLUMNS = 10
"""The instruction; the word of the record; the operand (`MOVES`: its displacement is an address of the
program's); whether it is told at the block's start; its bytes."""
MOST_WORDS = 64
"""Words of a record: blocks of more are left to Python. In the first column of the rows from there on is, for
each instruction of a block that is filtered, which flags are live in front of it."""

FIXED_BELOW = 1 << 31
"""Where an address below this is pushed, it is a constant in the instruction."""

STUB_SIZE = 5
"""Bytes of a stub: a stop, and the offset in the module (32 bits) of what has no fragment yet."""

# -- `threads`, `spaces` and `modules`, by column, and the `log` of stops that are answered (see `waiting`)

TID, SPACE, THREAD_COLUMNS = range(3)
"""A thread, and the number of its code cache."""
MISS, NEXT_CELL, FIRST_MODULE, END_MODULE, SPACE_COLUMNS = range(5)
"""Of a code cache the stop that the lookup table leads to (an address), the next cell, and its modules, from
the first up to the last."""

CACHE, CACHE_END, CODE_START, CODE_END, ARGUMENTS, MODULE_COLUMNS = range(6)
"""Where a cache begins and ends, and its module; where the arguments of `arrive` are (addresses)."""
WHICH, OFFSET, LANDS, FIRST_ROW, END_ROW, LOG_COLUMNS = range(6)
"""The module and the offset in it that a thread has come to, whether by an indirect branch; the rows of what
was made for it."""
