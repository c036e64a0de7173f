"""The simulator's loop over records: blocks executed whole, whose accesses are plain, are simulated as they
are read; of the others spans are made first, a record at a time.

Most of what is executed is such a block. What is counted of it is static, so its executions are counted, and
nothing is done for each of its instructions: it fetches where its code begins another line, and accesses what
the record says. Most of either is the line that its set was last accessed at, which hits and changes nothing.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
from numba import njit

from livepro.cachesim.plain import (
    ACCESSES_AT,
    BEFORE,
    BLOCK_BITS,
    COLUMN_BITS,
    CROSSED,
    FETCH_BITS,
    FETCHES,
    FETCHES_AT,
    FETCHING,
    LINE,
    SIZE_BITS,
    WORD_BITS,
    WORDS,
)
from livepro.cachesim.simulating import (
    D1,
    I1,
    LL,
    count_runs,
    misses,
    predict,
    simulate_branches,
    simulate_caches,
)
from livepro.engines.stream import FLAGS, FLAGS_SHIFT, GOES_ON, NUMBER
from livepro.events.pointers import borrowed
from livepro.events.spans.flattening import BRANCHES, CUTS, EVENTS, HELD, OPERANDS, SPANS, TOTAL, flatten

U = np.uint64
ONE, BLOCK, FETCH, FETCH_ROW = U(1), U(BLOCK_BITS), U(FETCH_BITS), U(1 << FETCH_BITS)
WORD, SIZE, COLUMN = (1 << WORD_BITS) - 1, (1 << SIZE_BITS) - 1, (1 << COLUMN_BITS) - 1


@njit(nogil=True, cache=True)
def simulate_blocks(
    words, upto, at, counters, first, address_of, nbytes, flow, noted, caching, bare,
    blocks, fetches, accesses, shapes, i1, d1, ll, latest, conditional, history, predictors, goals,
    executions, counts, missed,
):  # fmt: skip
    """The part of `simulate_records` that most records take: plain blocks executed whole, with another record
    behind. Returns the word it has come to. Branches are predicted unless `conditional` is None: numba makes
    a loop of its own for that.

    Indices are unsigned, or numba asks of each whether it is negative."""
    shapes, nbytes, address_of = borrowed(shapes), borrowed(nbytes), borrowed(address_of)
    first = borrowed(first)
    i1, d1, ll, goals = borrowed(i1), borrowed(d1), borrowed(ll), borrowed(goals)
    counts, missed = borrowed(counts), borrowed(missed)
    history, predictors = borrowed(history), borrowed(predictors)
    i_mask, i_ways = shapes[I1 + 1], U(shapes[I1 + 2])
    d_bits, d_mask, d_ways = shapes[D1], shapes[D1 + 1], U(shapes[D1 + 2])
    width = 1 << d_bits
    before_branch = history[0]
    behind, upto, at = U(len(words) - 1), U(upto), U(at)
    line_before, retired = latest[0], 0
    while at < upto:
        number = words[at]
        if number >> FLAGS_SHIFT & FLAGS:
            break
        block = U(number) << BLOCK
        next_at = at + ONE
        if not bare:
            next_at = at + U(blocks[block + U(WORDS)])
        if next_at > behind or next_at == at:
            break
        executions[U(number)] += 1
        retired += first[U(number) + ONE] - first[U(number)]
        if caching:
            f = U(blocks[block + U(FETCHES_AT)]) << FETCH
            last = f + (U(blocks[block + U(FETCHES)]) << FETCH)
            k = U(blocks[block + U(ACCESSES_AT)])
            before, hits, g = line_before, True, f
            while g < last:
                line, more = fetches[g + U(LINE)], fetches[g + U(CROSSED)]
                if line != line_before and i1[U(line & i_mask) * i_ways] != line:
                    hits = False
                if more and (more > 1 or i1[U((line + 1) & i_mask) * i_ways] != line + 1):
                    hits = False
                line_before = line + more
                g += FETCH_ROW
            if hits:  # no fetch changes anything: all accesses in one go
                f = last - FETCH_ROW
                before = fetches[f + U(LINE)]
            while f < last:
                line, more = fetches[f + U(LINE)], fetches[f + U(CROSSED)]
                if line != before or (more and not hits):
                    i = fetches[f + U(FETCHING)]
                    if misses(i1, shapes, I1, address_of[i], nbytes[i]):
                        counts[i, 1] += 1
                        missed[1] += 1
                        if misses(ll, shapes, LL, address_of[i], nbytes[i]):
                            counts[i, 2] += 1
                            missed[2] += 1
                before = line + more
                end = U(fetches[f + U(BEFORE)])
                f += FETCH_ROW
                while k < end:
                    access = accesses[k]
                    address, size = words[at + U(access & WORD)], access >> WORD_BITS & SIZE
                    k += ONE
                    line = address >> d_bits
                    if (address & (width - 1)) + size <= width:
                        place = U(line & d_mask) * d_ways
                        moved = d1[place]
                        if moved == line:
                            continue
                        d1[place] = line
                        way, beyond = place + ONE, place + d_ways
                        while way < beyond:  # the others move, up to where it was
                            there = d1[way]
                            d1[way] = moved
                            if there == line:
                                break
                            moved = there
                            way += ONE
                        if way < beyond:
                            continue
                    elif not misses(d1, shapes, D1, address, size):
                        continue
                    i = access >> WORD_BITS + SIZE_BITS
                    i, column = i >> COLUMN_BITS, i & COLUMN
                    counts[i, column + 1] += 1
                    missed[column + 1] += 1
                    if misses(ll, shapes, LL, address, size):
                        counts[i, column + 2] += 1
                        missed[column + 2] += 1
        at = next_at
        if conditional is not None:
            i = first[U(number) + ONE] - 1
            if noted[flow[i]]:
                following = words[at]
                if following >> FLAGS_SHIFT & GOES_ON:
                    goes = words[at + ONE]
                else:
                    goes = address_of[first[following & NUMBER]]
                taken = np.int64(goes != address_of[i] + nbytes[i])
                before_branch = predict(
                    i, taken, goes, conditional, address_of,
                    before_branch, predictors, goals, counts, missed,
                )  # fmt: skip
    history[0] = before_branch
    latest[0] = line_before
    counters[TOTAL] += retired
    return at


@njit(nogil=True, cache=True)
def simulate_records(
    words, upto, cursor, final, counters,
    first, words_of, address, nbytes, flow, noted, access_of, pattern, bytes_of, kind_of, lanes_of,
    plain, listed_at, listed_words, listed,
    begins, ends, marks, operands_at, addresses, operands, branches, taken, targets, cuts, out,
    caching, bare, blocks, fetches, accesses, lengths, following,
    shapes, i1, d1, ll, latest, conditional, history, predictors, goals,
    runs, executions, counts, missed,
):  # fmt: skip
    """Simulate the records that begin before the word `upto`, from where the cursor is; `flatten` says what
    it is given. True if the last one must wait for the next one."""
    held = False
    while True:
        cursor[0] = simulate_blocks(
            words, upto, cursor[0], counters, first, address, nbytes, flow, noted, caching, bare,
            blocks, fetches, accesses, shapes, i1, d1, ll, latest, conditional, history, predictors, goals,
            executions, counts, missed,
        )  # fmt: skip
        if cursor[0] >= upto:
            break
        more, one = True, cursor[0] + 1
        while more:
            more = flatten(
                words, one, cursor, final, False, counters, first, words_of, address, nbytes, flow, noted,
                access_of, pattern, bytes_of, kind_of, lanes_of, plain, listed_at, listed_words, listed,
                begins, ends, marks, operands_at, addresses, operands, branches, taken, targets, cuts, out,
            )  # fmt: skip
            count_runs(begins, ends, marks, 0, out[SPANS], runs)
            if caching:
                simulate_caches(
                    begins, ends, marks, operands_at, addresses, operands, 0, out[SPANS],
                    lengths, address, nbytes, following, shapes, i1, d1, ll, latest, counts, missed,
                )  # fmt: skip
            if conditional is not None:
                simulate_branches(
                    branches, taken, targets, 0, out[BRANCHES], conditional, address,
                    history, predictors, goals, counts, missed,
                )  # fmt: skip
            out[SPANS] = out[OPERANDS] = out[BRANCHES] = out[CUTS] = out[EVENTS] = 0
        if out[HELD]:
            held = True
            break
    return held
