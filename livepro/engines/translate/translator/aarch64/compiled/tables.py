"""Where things are in the arrays that the kernels for AArch64 work on."""

from __future__ import annotations

from livepro.engines.translate.translator.compiling.tables import CHAIN, COMMON

# `facts.Kind` as far as it is translated here; `OTHER` is what is left to Python.
PLAIN, ADDRESS, LITERAL, JUMP, BRANCH, CALL, INDIRECT_JUMP, INDIRECT_CALL, RETURN, OTHER = range(10)

# -- `state`, by index

CHARGES = COMMON
"""Not 0 where each execution of a block takes its length from a budget."""
STATE_SIZE = COMMON + 1

ROOM_OF_CHAIN = CHAIN * 4096
"""Bytes that a chain may take: its blocks have 128 instructions at most, which 7 words each hold (a vector
that is loaded from an address that is put together), with a counter and a lookup."""

STUB_SIZE = 4
"""Bytes of a stub: a stop."""

# -- `decoded`, by column: the instructions of a block

KIND, MENTIONS, KILLS, DECODED_COLUMNS = range(4)
"""What is to be done with it (as above); masks of the general registers that it may mention, and that it
overwrites whole without reading them."""
