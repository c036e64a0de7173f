"""What a characterisation is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from livepro.errors import LiveproError
from livepro.model.itypes import ItypesSpec

ANALYSES = (
    "ilp",
    "ilp_one",
    "itypes",
    "ppm",
    "reg",
    "stride",
    "memfootprint",
    "memstackdist",
    "fullmemstackdist",
)
"""All that there are, in the order of reports."""
ALL = tuple(name for name in ANALYSES if name not in ("ilp_one", "fullmemstackdist"))
"""What `all` means to MICA."""
WINDOWS = (32, 64, 128, 256)
"""Instructions in the windows of `ilp`."""
LARGEST_WINDOW = 1 << 20


class MicaDialect(StrEnum):
    """Whose definitions hold where MICA's can be improved on."""

    EXACT = "exact"
    MICA = "mica"


@dataclass(frozen=True)
class Settings:
    """The analyses, and their parameters. `interval_size` is 0 for the whole run; `block_size` and
    `page_size` are powers of two, `ilp_size` is the window of `ilp_one` (0: none).

    Raises LiveproError for what is not possible.
    """

    analyses: tuple[str, ...] = ALL
    interval_size: int = 0
    block_size: int = 6
    page_size: int = 12
    ilp_size: int = 0
    dialect: MicaDialect = MicaDialect.EXACT
    ppm_initial: int | None = None
    """What counters of a branch's own tables begin with (None: the dialect's, -1 in both)."""
    spec: ItypesSpec | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.analyses if name not in ANALYSES]
        if unknown:
            raise LiveproError(
                f"MICA has no analysis '{unknown[0]}'.", f"There are all, {', '.join(ANALYSES)}."
            )
        if not self.analyses:
            raise LiveproError("There is no analysis to do.", f"There are all, {', '.join(ANALYSES)}.")
        if self.interval_size < 0:
            raise LiveproError(
                f"An interval of {self.interval_size} instructions is not possible.",
                "Give 1 or more, or full for the whole run.",
            )
        for what, bits in (("block", self.block_size), ("page", self.page_size)):
            if not 0 <= bits <= 40:
                raise LiveproError(
                    f"A {what} size of {bits} is not possible.",
                    "It is the binary logarithm of a number of bytes, from 0 to 40: 6 means 64 bytes.",
                )
        if not 0 <= self.ilp_size <= LARGEST_WINDOW or ("ilp_one" in self.analyses and not self.ilp_size):
            raise LiveproError(
                f"A window of {self.ilp_size} instructions is not possible.",
                f"ilp_one needs ilp_size, the instructions in its window, from 1 to {LARGEST_WINDOW}.",
            )
