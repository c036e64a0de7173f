"""Records of blocks: what `events.recording` plans and writes, by compiled code."""

# mypy: ignore-errors

from __future__ import annotations

from livepro.engines.translate import layout
from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.tables import FINE, MODULE, PYTHON, ROWS, WAIT
from livepro.engines.translate.translator.emitted import Field
from livepro.engines.translate.translator.x86_64.compiled.kernels.decoding import (
    measure,
    place_of,
    shape,
    target_of,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.operands import (
    LOAD,
    STORE,
    add_segment,
    advance,
    compute,
    first_of,
    in_area,
    registers_of,
    signed_at,
    store_indirect,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.slow_paths import given_back, saved
from livepro.engines.translate.translator.x86_64.compiled.kernels.writing import (
    add_one,
    note,
    put,
    write_32,
)
from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ACCESS,
    ACCESS_COLUMNS,
    ACCESSES,
    ADDRESSES,
    BRANCH,
    BY,
    BY_IMMEDIATE,
    BYTES_ACCESSED,
    CALL,
    CAN,
    CONSTANT,
    COUNTED,
    DISPLACEMENT,
    EARLY,
    FACTOR,
    FAULTS,
    FLOW,
    FROM_HERE,
    FS,
    FULL,
    HEAD,
    HERE,
    INCREMENT,
    JUMP,
    KILLS,
    KIND,
    KIND_OF,
    MOST_WORDS,
    MOVED,
    MOVES,
    NO,
    OF,
    OPERAND_BASE,
    OPERAND_SCALE,
    OPERAND_SCALED,
    PLACE_BASE,
    PLACE_FS,
    PLACE_SCALE,
    PLACE_SCALED,
    PLACES,
    PLAIN,
    READS,
    REGISTERS_KILLED,
    REGISTERS_READ,
    SEE_FULL,
    UNKNOWN,
    USED,
    WORD,
    WORDS,
    WRITTEN,
)
from livepro.engines.translate.translator.x86_64.events.lending import LENT
from livepro.engines.translate.translator.x86_64.events.recording import AT_START, FARTHEST
from livepro.engines.translate.translator.x86_64.facts import ALL

_ALL, _RECORD, _CELL = int(ALL), int(Field.RECORD), int(Field.CELL)
_OWN, _RECORDED_AT, _SPILLED, _PAGE_OF_CODE = layout.OWN, layout.RECORD, layout.SPILL[1], layout.PAGE
_RCX = 1
_REACH = 1 << 31
NOWHERE = -(1 << 63)


@kernel
def known(text_at, offsets, shapes, n, recorded, needs, counts):
    """What came of asking whether all instructions of the block at `text_at` are recorded here."""
    status = FINE
    for i in range(n):
        can = recorded[shapes[i], CAN]
        if can == UNKNOWN:
            if counts[0] == len(needs):
                return WAIT
            needs[counts[0]] = text_at + offsets[i]
            counts[0] += 1
            status = WAIT
        elif can == NO:
            return PYTHON
    return status


@kernel
def place_of_access(state, text, at, row, j, recorded, places, count):
    """Enter where the instruction at an index accesses memory the `j`-th time."""
    column = ACCESS + j * ACCESS_COLUMNS
    measured = measure(text, at)
    displacement = signed_at(text, at + (measured >> 8 & 0xFF), measured >> 16 & 0xFF)
    where = recorded[row, column + CONSTANT] + recorded[row, column + FACTOR] * displacement
    if recorded[row, column + FROM_HERE]:
        where += state[MODULE] + at
    places[count, PLACE_BASE] = recorded[row, column + OPERAND_BASE]
    places[count, PLACE_SCALED] = recorded[row, column + OPERAND_SCALED]
    places[count, PLACE_SCALE] = recorded[row, column + OPERAND_SCALE]
    places[count, MOVES] = recorded[row, column + FROM_HERE]
    places[count, PLACE_FS] = recorded[row, column + FS]
    places[count, DISPLACEMENT] = where


@kernel
def plan(state, text, begin, offsets, shapes, n, facts, recorded, places, moved, needs, counts):
    """See what is recorded of a block: `places`. Returns what came of it."""
    status = known(begin, offsets, shapes, n, recorded, needs, counts)
    if status != FINE:
        return status
    for i in range(16):
        moved[i] = 0
    lost = needed = count = 0
    state[USED], state[HERE] = 0, state[MODULE] + begin
    word = 1
    for i in range(n):
        row = shapes[i]
        accesses = recorded[row, ACCESSES] if state[ADDRESSES] else 0
        at = begin + offsets[i]
        if word + accesses > MOST_WORDS:
            return PYTHON
        for j in range(accesses):
            place_of_access(state, text, at, row, j, recorded, places, count)
            places[count, OF], places[count, WORD] = i, word
            base, scaled = places[count, PLACE_BASE], places[count, PLACE_SCALED]
            where, scale = places[count, DISPLACEMENT], places[count, PLACE_SCALE]
            registers = registers_of(places, count)
            more = 0
            if base >= 0:
                more = moved[base]
            if scaled >= 0:
                more += moved[scaled] * scale
            early = registers & (lost | 1 << LENT) == 0 and (AT_START & ~(needed | registers)) != 0
            if more and (where + more < -_REACH or where + more >= _REACH):
                early = False
            if early:
                where += more
                needed |= registers
            places[count, EARLY], places[count, DISPLACEMENT] = early, where
            word += 1
            count += 1
        lost |= recorded[row, WRITTEN]
        state[USED] |= facts[row, REGISTERS_READ] | facts[row, REGISTERS_KILLED]
        register = recorded[row, MOVED]
        if register >= 0:
            by = recorded[row, BY]
            if recorded[row, BY_IMMEDIATE]:
                measured = measure(text, at)
                field = (measured >> 8 & 0xFF) + (measured >> 16 & 0xFF)
                by += recorded[row, BY_IMMEDIATE] * signed_at(text, at + field, measured >> 24 & 0xFF)
            moved[register] += by
            if moved[register] <= -FARTHEST or moved[register] >= FARTHEST:
                lost |= 1 << register
    state[PLACES], state[WORDS] = count, word
    return FINE


@kernel
def _free_at_start(shapes, n, facts):
    """Registers that a block overwrites before anything reads them or may fault."""
    read = free = 0
    for i in range(n):
        row = shapes[i]
        if facts[row, FAULTS] or facts[row, KIND] != PLAIN:
            break
        read |= facts[row, REGISTERS_READ]
        free |= facts[row, REGISTERS_KILLED] & ~read
        read |= facts[row, REGISTERS_KILLED]
    return free


@kernel
def _borrowed(state, candidates, turn):
    """A register to borrow of those of a mask: one that the block does not use if there is one, and another
    one at each turn."""
    if candidates & ~state[USED]:
        candidates &= ~state[USED]
    count = 0
    for n in range(16):
        count += candidates >> n & 1
    left = (turn & _PAGE_OF_CODE - 1) % count
    for n in range(16):
        if candidates >> n & 1:
            if left == 0:
                return n
            left -= 1
    return 0


@kernel
def _flags_are_dead(shapes, n, facts):
    """Whether a block overwrites all arithmetic flags before it reads any."""
    killed = 0
    for i in range(n):
        row = shapes[i]
        if facts[row, READS] & ~killed:
            return False
        killed |= facts[row, KILLS]
        if killed & _ALL == _ALL:
            return True
    return False


@kernel
def _tell(state, image, at, fields, places, k, value, word):
    """Compute a place in register `value` and write it, so many words from where the register that is lent
    says."""
    owning = registers_of(places, k) >> LENT & 1
    if owning:
        at = in_area(image, at, LOAD, LENT, _OWN)
    at = compute(state, image, at, fields, places, k, value)
    if places[k, PLACE_FS]:
        at = add_segment(image, at, value, LENT)
    if owning or places[k, PLACE_FS]:
        at = in_area(image, at, LOAD, LENT, _RECORDED_AT)
    return store_indirect(image, at, value, LENT, 8 * word)


@kernel
def begin_record(state, image, at, shapes, n, facts, pieces, bounds, fields, places, cell):
    """Begin a block's record, and count the block."""
    count, words = state[PLACES], state[WORDS]
    needed, any_early = 0, False
    for k in range(count):
        if places[k, EARLY]:
            needed |= registers_of(places, k)
            any_early = True
    value, spilled = 0, False
    if any_early:
        candidates = AT_START & ~needed
        free = candidates & _free_at_start(shapes, n, facts)
        if free:
            value = first_of(free)
        else:
            value, spilled = _borrowed(state, candidates, state[HERE]), True
            at = saved(image, at, value)
    image[at], image[at + 1], image[at + 2], image[at + 3] = 0x65, 0x48 | LENT >> 3, 0xC7, LENT & 7
    write_32(image, at + 4, state[ROWS])
    note(state, fields, _RECORD, at + 4)
    at += 8
    for k in range(count):
        if places[k, EARLY]:
            at = _tell(state, image, at, fields, places, k, value, places[k, WORD])
    if spilled:
        at = given_back(image, at, value)
    at = advance(image, at, LENT, 8 * words)
    at = in_area(image, at, STORE, LENT, _RECORDED_AT)
    if _flags_are_dead(shapes, n, facts):
        at = put(image, at, pieces, bounds, SEE_FULL)
        at = put(image, at, pieces, bounds, INCREMENT)
        write_32(image, at - 4, cell)
        note(state, fields, _CELL, at - 4)
        return at
    at = in_area(image, at, STORE, _RCX, _SPILLED)
    at = put(image, at, pieces, bounds, FULL)
    at = add_one(state, image, at, pieces, bounds, fields, _RCX, cell)
    return in_area(image, at, LOAD, _RCX, _SPILLED)


@kernel
def record_before(state, image, at, fields, places, first, last, offset):
    """Put words into the record that was begun at the block's start: those of `places` from `first` to
    `last` that could not be told there."""
    needed, some = 0, False
    for k in range(first, last):
        if not places[k, EARLY]:
            needed |= registers_of(places, k)
            some = True
    if not some:
        return at
    value = _borrowed(state, AT_START & ~needed, state[HERE] + offset)
    at = saved(image, at, value)
    for k in range(first, last):
        if not places[k, EARLY]:
            at = _tell(state, image, at, fields, places, k, value, places[k, WORD] - state[WORDS])
    return given_back(image, at, value)


@kernel
def needs_own(row, facts):
    """Whether an instruction needs the program's own value in the register that is lent."""
    return (facts[row, REGISTERS_READ] | facts[row, REGISTERS_KILLED]) >> LENT & 1 != 0


@kernel
def take(image, at):
    """Give the program the register that is lent."""
    return in_area(image, at, LOAD, LENT, _OWN)


@kernel
def lend(image, at, row, recorded):
    """Lend it again behind an instruction that needed it."""
    if recorded[row, WRITTEN] >> LENT & 1 or recorded[row, MOVED] == LENT:
        at = in_area(image, at, STORE, LENT, _OWN)
    return give_back(image, at)


@kernel
def give_back(image, at):
    """Lend it again where the program has not changed it."""
    return in_area(image, at, LOAD, LENT, _RECORDED_AT)


@kernel
def tell(
    text, at, counts, lows, highs, rows, facts, recorded, steps, flows, accesses, sizes, kinds, words, to
):
    """What is static of blocks at these offsets that have so many instructions: of each instruction the size,
    flow and how many accesses; of these the bytes and kinds; of each block the words of its record and where
    its last instruction leads (`to`, an offset in the module). Returns how many accesses there are."""
    n = m = 0
    for i in range(len(at)):
        here, total, last = at[i], 1, 0
        for _ in range(counts[i]):
            measured = measure(text, here)
            low, high = shape(text, here, measured)
            row = rows[place_of(lows, highs, low, high)]
            steps[n] = measured & 0xFF
            flows[n] = recorded[row, FLOW]
            accesses[n] = recorded[row, ACCESSES]
            for j in range(recorded[row, ACCESSES]):
                sizes[m] = recorded[row, ACCESS + j * ACCESS_COLUMNS + BYTES_ACCESSED]
                kinds[m] = recorded[row, ACCESS + j * ACCESS_COLUMNS + KIND_OF]
                m += 1
            total += accesses[n]
            last = here
            here += steps[n]
            n += 1
        words[i], to[i] = total, NOWHERE
        kind = facts[row, KIND]
        if kind in (JUMP, BRANCH, COUNTED, CALL):
            to[i] = target_of(text, last, here, facts[row, HEAD])
    return m
