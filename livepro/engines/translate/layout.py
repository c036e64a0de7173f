"""Where things are in the memory that livepro adds to a process.

Memfds are mapped by both sides: a data window below 2 GiB (so that a lookup
can address it absolutely), windows of thread areas, reached through the
thread's segment base, and code caches near the modules they copy. The files
are sparse: only what is touched costs memory.
"""

from __future__ import annotations

import mmap

PAGE = mmap.PAGESIZE
"""Bytes of a page of memory: 4, 16 or 64 KiB on AArch64."""

# -- the data window

LOOKUP = 0
"""65,536 entries of 8 bytes: where to go for an original address by its low 16 bits."""
LOOKUP_ENTRIES = 1 << 16
WATCHED = LOOKUP + LOOKUP_ENTRIES * 8
"""65,536 bytes: not 0 for system calls that must stop, by the low 16 bits of the number."""
DATA_ALIGNMENT = LOOKUP_ENTRIES * 8
"""Lets a lookup put the index into the address."""
CELLS = WATCHED + (1 << 16)
"""Two 32-bit words: the first of the groups of counters in use, and the first behind them (`GROUP`)."""
LENGTHS = CELLS + 0x1000
"""A 32-bit word for each counter: the instructions of its block."""

# -- a thread's area

SPILL = tuple(range(0, 64, 8))
"""Eight words for registers that an emitted sequence borrows."""
REP_ITERATIONS = 0x40
SITE = 0x50
"""The slot of the block whose indirect branch was looked up last."""
OWN = 0x58
"""The program's own value of the general register that leads to the area, where that is one, or that is lent
while events are recorded."""
NOWHERE = 0xFFFF_FFFF
"""No slot: the lookup behind a return from a signal handler."""
RESUMED = 0x70
"""Where a return from a signal handler leads to."""
FRAME_AT = 0x60
"""The address of `FRAME`."""
DEFERRING = 0x68
"""Not 0 while signals are kept from the thread, which then has to stop at system calls; a
return from a signal handler sets it to 0, as it sets the signal mask."""
LENDS = 0x78
"""Not 0 if the thread's copies are lent a general register for where its next record begins, on x86-64."""
BUDGET = 0x80
"""Instructions that blocks may execute before they stop (`budget`)."""
SUPPLY = 0x88
"""Instructions that blocks may be allowed to execute without asking each time (`allowances`)."""
CHUNK = 0x90
"""Executions that each block takes from there at once, at least."""
REFILL = 0x98
"""Where a block goes that has no allowance left."""
REFILL_RETURN = 0xA0
"""Where it goes on afterwards."""
REFILL_SAVED = (0xA8, 0xB0, 0xB8)
"""Registers borrowed there."""
REFILL_CELL = 0xC0
"""Its counter."""
REFILL_LENGTH = 0xC8
"""Its instructions, while allowances are taken back."""
REFILL_TAKEN = 0xD0
"""Executions that it takes."""
PORTION = 0xD8
"""Which part of what it has executed so far a block takes besides, times 2**`PORTION_SHIFT`."""
PORTION_SHIFT = 20
RATE = 0xE0
"""The same for each instruction of the supply, times 2**(`PORTION_SHIFT` + `RATE_SHIFT`)."""
RATE_SHIFT = 32
REFILL_EACH = 0xE8
"""The most instructions that blocks with an allowance had, each counted once, when they were taken back."""
REFILL_ENDED = 0xF0
"""Not 0 if the thread has taken all allowances back, and gives out no more."""
RECORD = 0xF8
"""Where the thread's next record begins, from the area's start, if it is recorded."""
RECORDERS = (0x100, 0x108, 0x110, 0x118)
"""What a thread calls that simulates its first-level cache of data (`stream.filtering`): for an access, where
its chunk is full, to write a word that is no plain access, and before the first such word of an
instruction."""
ENTRY = 0x120
"""The entry's first word."""
ENTRY_VALUE = 0x128
"""The address, or its second word."""
ENTRY_SPAN = 0x130
"""The bytes accessed, minus one."""
ENTRY_TAG = 0x138
"""Which execution of the block it is."""
ENTRY_STACK = 0x140
"""The stack that it calls them with."""
ENTRY_RSP = 0x148
"""The program's stack pointer meanwhile."""
ENTRY_SAVED = tuple(range(0x200, 0x238, 8))
"""Registers borrowed there."""
ENTRY_FLAGS = 0x238
"""Flags."""
ENTRY_LOG = 0x240
"""Where the next change of a cache will be noted, from `LOG` on."""
ENTRY_ORDER = 0x248
"""Where the last lines of a cache are in the chunk, from the area's start."""
ENTRY_CACHE = 0x160
"""What the cache of data is like (`stream.filtering.Lines.packed`)."""
FILTER_FLAGS = (0x150, 0x158)
"""The flags where they are needed behind a filter, and the register that they are moved in."""
FILTER_SAVED = 0x180
"""16 words, by register, for those that a filter borrows: not the same one again and again, or each would
wait for the one before."""
FRAME = 0x800
"""What a return from a signal handler restores registers from: a copy of the signal frame's
part, but that it leads into a cache."""
ACTION = 0xC00
FORMER_ACTION = 0xC20
"""Two struct sigaction, that a thread tells the kernel and is told."""
SCRATCH_ACTION = 0xC40
"""In the first area, one that livepro tells the kernel."""
COUNTERS = 0x1000
GROUP = 512
"""Counters that are looked through together."""
MAX_SLOTS = (1 << 21) - 2 * GROUP
MORE = COUNTERS + MAX_SLOTS * 8
"""A word for each counter: what its block has been allowed, and what it has executed beyond that and is
not counted there (`allowances`)."""
TOUCHED = MORE + MAX_SLOTS * 8
"""A byte for each group of counters: not 0 if one may have changed since the tracer took note."""
TOUCHED_SIZE = (1 << 21) // GROUP
DATA_LINES = (TOUCHED + TOUCHED_SIZE + 0xFFF) & -0x1000
"""A thread's cache of data (`stream.filtering`)."""
CODE_LINES = DATA_LINES + 0x8000
"""4 bytes for each set of a cache of code: the page of the line that it used last."""
CODE_LINES_SIZE = 0x100
LOG = CODE_LINES + 0x8000
LOG_SIZE = 0x200
LOGGED = 32
"""The last changes of caches, bytes for each: the entry's first word, the execution, where the line was (from
`DATA_LINES` on), and what was there."""
ENTRY_RETURN = LOG + 0x8000 - 8
"""Where the thread goes on, while it simulates: the only word of a stack. (There is room for a signal's
frame, should the tracer be gone.)"""
RECORDS_END = 3 << 24
"""Where a thread's chunk of records ends: bits 16 to 23 of an address in the area are 0 from here on, and
not before that in the chunk."""
RECORDS_ENDS = (RECORDS_END, 4 << 24)
"""The same of both chunks of a thread all of which is recorded: it writes one while the other is taken."""
RECORDS_MORE = 1 << 16
"""What a record that begins in a chunk may take behind it, so that it need not be asked before."""
AREA_SIZE = RECORDS_ENDS[1] + RECORDS_MORE
DATA_SIZE = LENGTHS + MAX_SLOTS * 4
"""Of the data window."""
AREAS_PER_WINDOW = 15  # about 1 GiB in all: a limit on file sizes must allow for a window
"""Threads that share one mapping; more threads, more windows."""

AREAS_SIZE = AREA_SIZE * AREAS_PER_WINDOW

# -- code caches

CACHE_SIZE = 128 << 20
"""Bytes of address space of a cache for any code."""
LARGEST_CACHE = 256 << 20
"""Of a module's, at most (`Backend.largest_cache`)."""

REACH = (1 << 31) - LARGEST_CACHE - (256 << 20)
"""Farthest that a cache may start from code it copies, so that a 32-bit displacement
reaches from anywhere in the cache to anywhere near that code."""
