"""Where things are in the arrays that the kernels work on."""

from __future__ import annotations

from livepro.engines.translate.translator.compiling.tables import CHAIN, COMMON

# -- instructions and blocks

LONGEST = 15
"""Bytes of an instruction (SDM vol. 2, 2.3.11)."""
# What there is of a shape, by column of `facts`.
KIND, READS, KILLS, REGISTERS_READ, REGISTERS_KILLED, FAULTS, HEAD, COLUMNS = range(8)

# `facts.Kind`, and one for what is left to Python.
PLAIN, RELATIVE, REP, SYSCALL, NATIVE, JUMP, BRANCH, COUNTED, CALL = range(9)
INDIRECT_JUMP, INDIRECT_CALL, RETURN, INVALID, OTHER = range(9, 14)

MANY = 0x80
"""So many instructions are taken from a budget as a number of four bytes, fewer as one of one
(`encode.subtract_area`)."""

# -- `state`, by index

LOW = COMMON
"""Not 0 where code is below 2 GiB: branches through registers may be by a table, and are left to Python."""
RECORDS = COMMON + 1
"""Not 0 where executions of blocks are recorded."""
PLACES, WORDS = COMMON + 2, COMMON + 3
"""Of the block that was planned last: how many addresses it records (-1: it is not recorded), and the words
of its record."""
ASKS = COMMON + 4
"""Not 0 where blocks are given allowances."""
ENTER, BACK = COMMON + 5, COMMON + 6
"""Of the block that was counted last: the index of the 4 bytes that lead to where it asks for an allowance,
and the one that leads back to."""
FILTERS = COMMON + 7
"""Not 0 where what hits in a thread's caches is left out of the event stream."""
DATA_LINE, DATA_MASK, CODE_LINE, CODE_MASK = range(COMMON + 8, COMMON + 12)
"""The bytes of a line of these caches, and the bits of an address that say where its set is."""
LATEST = COMMON + 12
"""The line that the block fetched last (-1: none)."""
USED = COMMON + 13
"""The registers that a block uses."""
ADDRESSES = COMMON + 14
"""Not 0 where the addresses that blocks access are recorded."""
HERE = COMMON + 15
"""The address of the block that was planned last."""
CHARGES = COMMON + 16
"""Not 0 where each execution of a block takes its length from a budget."""
CHECKS = COMMON + 17
"""Not 0 where code may change: fragments compare it with what they were made from when they are entered."""
STATE_SIZE = COMMON + 18

ROOM_PLAIN, ROOM_RECORDED, ROOM_FILTERED = CHAIN * 2048, CHAIN * 10240, CHAIN * 10240
ROOM_COMPARED = CHAIN * 2560
"""Bytes that a chain may take: its blocks have 512 bytes at most, which twice that and a lookup hold, and
`MOST_WORDS` words of a record, which take 82 each, and 27 for each instruction that needs the register that
is lent, or accesses that are filtered, which take 132, and a slow path of 140. To compare them takes 27 bytes
for each 8 more, and 100."""

FIELDS_OF_BLOCK = 5 * 64 + 4 * 16 + 8
"""Fields of a block, at most: five of each access, four of each line that is fetched."""

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
