"""What a record of a stream says of itself, without the events in it."""

# mypy: ignore-errors

from __future__ import annotations

from numba import njit

from livepro.engines.stream import COUNT_SHIFT, FLAGS, FLAGS_SHIFT, GOES_ON, INTERRUPTED, NUMBER, PARTIAL


@njit(nogil=True, cache=True, forceinline=True)
def record_at(words, at, first, words_of, access_of, pattern, lanes_of):
    """The block of the record at a word (-1: it says where the thread goes on, and executes nothing), the
    instructions that it executes, and the word behind it."""
    head = words[at]
    flags = head >> FLAGS_SHIFT & FLAGS
    if flags & GOES_ON:
        return -1, 0, at + 2
    number = head & NUMBER
    if not flags & PARTIAL:
        return number, first[number + 1] - first[number], at + words_of[number]
    count = head >> COUNT_SHIFT  # only some of the block
    behind, start = at + 1, first[number]
    for a in range(access_of[start], access_of[start + count + (1 if flags & INTERRUPTED else 0)]):
        how = pattern[a]
        behind += 1 if how == 0 else (1 + lanes_of[a] if how == 4 else 2)
    return number, count, behind
