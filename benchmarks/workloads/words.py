"""Text to compress: the same bytes on every machine, about as compressible as prose."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from random import Random

_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_WORDS = 6000
_LINE = 11
_BATCH = 20_000
_SEED = 20_260_101


def write(path: Path, size: int) -> None:
    """Write `size` bytes of lines of words to `path`. Words are drawn by Zipf's law (the
    n-th most frequent one is n times rarer than the first), as in natural languages."""
    random = Random(_SEED)
    letters = list(accumulate(1 / (n + 2) for n in range(len(_LETTERS))))
    words = [
        "".join(random.choices(_LETTERS, cum_weights=letters, k=2 + n % 9)) for n in range(1, _WORDS + 1)
    ]
    weights = list(accumulate(1 / n for n in range(1, _WORDS + 1)))
    with path.open("wb") as stream:
        left = size
        while left:
            drawn = random.choices(words, cum_weights=weights, k=_BATCH)
            lines = [" ".join(drawn[i : i + _LINE]) for i in range(0, _BATCH, _LINE)]
            left -= stream.write(("\n".join(lines) + "\n").encode()[:left])
