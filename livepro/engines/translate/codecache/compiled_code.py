"""What a module's cache keeps of compiled code that translates, and how that is asked (see `compiled`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import KeptBlocks
from livepro.isa.kinds import Kinds
from livepro.model import Instruction

Array = npt.NDArray[np.int64]


PC, START, SIZE, LENGTH, CODE_SIZE, LIVE, SLOW, AT = range(8)
"""Of a block the offset in the module, the offset in the cache, the fragment's bytes, instructions, the
block's bytes, flags live at its end, the offset in the cache of its slow path or 0, the index of the block's
bytes in `CodeText.code`."""


class Batch(NamedTuple):
    """Rows of a cache that were made by compiled code: the first row, the cells that they count in and their
    slots (int64), and what they are (int64; columns as above).

    The comparison of a fragment's code has a row of its own, of no instructions, with the same slot."""

    row: int
    cells: Array
    slots: Array
    blocks: Array


class AllMade(NamedTuple):
    """The same for several batches: by block its row and its slot (int64), and what it is."""

    rows: Array
    slots: Array
    blocks: Array


def batch_of(batches: Sequence[Batch], row: int) -> tuple[int, int, Array]:
    """The cell and slot of a block that compiled code has made, and what it is (a row of `Batch.blocks`)."""
    batch = batches[bisect_right(batches, row, key=_row) - 1]
    at = row - batch.row
    return int(batch.cells[at]), int(batch.slots[at]), batch.blocks[at]


def comparison_of(batches: Sequence[Batch], row: int) -> int:
    """The offset in the cache of the comparison of the block in a row."""
    batch = batches[bisect_right(batches, row, key=_row) - 1]
    mine = (batch.slots == batch.slots[row - batch.row]) & (batch.blocks[:, LENGTH] == 0)
    return int(batch.blocks[mine, START][0])


def _row(batch: Batch) -> int:
    return batch.row


def all_made(batches: Sequence[Batch], before: AllMade | None) -> AllMade:
    """All blocks that compiled code has made in some batches, and before, in one piece."""
    blocks = np.concatenate([batch.blocks for batch in batches])
    slots = np.concatenate([batch.slots for batch in batches])
    rows = np.concatenate([np.arange(len(batch.blocks)) + batch.row for batch in batches])
    made = blocks[:, LENGTH] > 0
    new = AllMade(rows[made], slots[made], blocks[made])
    if before is None:
        return new
    return AllMade(*(np.concatenate(parts) for parts in zip(before, new, strict=True)))


def pieces(data: npt.NDArray[np.uint8], sizes: Array) -> list[bytes]:
    """Consecutive pieces of these sizes."""
    text, ends = data.tobytes(), np.cumsum(sizes)
    return [text[begin:end] for begin, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True)]


class Instructions(NamedTuple):
    """Of all instructions of some blocks the sizes in bytes (uint8), the numbers of their kinds (uint16) and
    their bytes (uint8)."""

    steps: npt.NDArray[np.uint8]
    kinds: npt.NDArray[np.uint16]
    code: npt.NDArray[np.uint8]


class CodeText(Protocol):
    """A module's code (uint8), as far as it has been read."""

    code: npt.NDArray[np.uint8]

    def describe(self, code: bytes) -> Instruction:
        """What an encoding means."""

    def instructions(self, at: Array, counts: Array, sizes: Array, kind_of: Kinds) -> Instructions:
        """The instructions of blocks at these offsets that have so many of them and so many bytes; `kind_of`
        numbers kinds."""

    def steps_of(self, at: Array, counts: Array, sizes: Array) -> npt.NDArray[np.uint8]:
        """The sizes of those instructions."""

    def told(self, at: Array, counts: Array, sizes: Array, *, accessing: bool) -> KeptBlocks:
        """Blocks at these offsets that have so many instructions and bytes, as the event stream knows
        them: `accessing` memory, or nothing, where it has no addresses."""

    def steps(self, at: int, count: int) -> bytes:
        """The sizes of so many instructions from an offset on."""


class KeptCode(CodeText, Protocol):
    """The code that blocks of code that changes were made from."""

    def add(self, text: CodeText, offsets: Array, sizes: Array) -> Array:
        """Take the bytes of blocks at these offsets of a `text`. Returns the index of each (int64)."""


class ChangingText(CodeText, Protocol):
    """Code that may change, as it was read last: by whoever translates, anew each time."""

    def forget(self) -> None:
        """Have all read anew that is wanted from now on."""

    def fill(self, at: int, read: Callable[[int, int], bytes]) -> None:
        """Read the page that an index is in, and some that follow; `read` (address, bytes) returns what there
        is."""


class Changing(NamedTuple):
    """Code that may change: as it was read last, and what blocks of it were made from."""

    latest: ChangingText
    kept: KeptCode


class Made(NamedTuple):
    """What one call of compiled code has made; offsets in the cache and in the module (int64).

    `rows` are blocks (columns as in `Batch.blocks`), which count in the next cells, one after the other;
    `fields` kinds and places; `links` fields and where they are to lead; `stubs` where they lead and where
    they are; `landings` for what, where, and whether that is being branched to; `left` blocks for the
    translator in Python. `size` are bytes.
    """

    rows: Array
    fields: Array
    links: Array
    stubs: Array
    landings: Array
    left: Array
    size: int


class LookupTable(NamedTuple):
    """The lookup table of indirect branches (see `Lookup`): its entries (uint64), where the last landing of
    each has the displacement by which it goes on (int64), the stop that an entry without any leads to; where
    all landings are as long as each other, each goes on over the displacement `otherwise` bytes behind.
    `enter` enters a single one (`Lookup.enter`)."""

    table: npt.NDArray[np.uint64]
    tails: Array
    miss: int
    otherwise: int
    enter: Callable[..., None] | None = None


class CompiledCode(Protocol):
    """Translates the code of one cache's module. Offsets are those in the module and in the cache."""

    @property
    def ends(self) -> tuple[int, int]:
        """The offsets of the cache's free places."""

    def take(
        self,
        pcs: Array,
        fragments: Array,
        fields: Array,
        targets: Array,
        stub_targets: Array,
        stubs: Array,
        landed: Array,
    ) -> None:
        """Know of what was made elsewhere: fragments of `pcs`, links from `fields` to `targets`, stubs for
        `stub_targets`, addresses that have `landed` and where (pairs)."""

    def links_to(self, offset: int) -> list[int]:
        """The fields of all branches that are to lead to an offset in the module."""

    def forget(self, offset: int, *, gone: bool) -> None:
        """The fragment of an offset is in force no longer. While it is `gone`, no other one is made: it may
        come back."""

    def begin(self, eager: int, returns: Sequence[int] = (), successors: Sequence[int] = ()) -> None:
        """Begin anew: these offsets are likely to follow (the last return first, the first successor), and
        whatever follows them; so many blocks are to be translated at most."""

    def run(
        self, pc: int, cell: int, room: tuple[int, int, int, int], *, lands: bool, likely: bool
    ) -> Made | None:
        """Translate the block at offset `pc` of the module (-1: none), and what is likely to follow. None if
        nothing came of it: it must wait for what `prepare` sees to, or is left to Python. `cell` is the next
        one; `room` are the offsets of the cache's free places, and of the ends of its parts."""

    def prepare(self, read: Callable[[int, int], bytes]) -> bool:
        """Read and learn what the last call was in need of; False if that was nothing."""

    def publish(self) -> None:
        """Let the branches that wait for what the last call has made lead there."""

    def land(self, lookup: LookupTable) -> list[list[int]]:
        """Enter the landings that have been made, and not been entered yet, in the lookup table. Returns the
        displacements in other caches that are to lead to one of those made, and to which (addresses)."""

    def stands_by(self, room: tuple[int, int, int, int]) -> int:
        """Where that is said if it stands by still (see `stand_by`), else 0."""

    def stand_by(
        self,
        room: tuple[int, int, int, int],
        eager: int,
        lookup: LookupTable,
        told: npt.NDArray[np.int32],
        log: Array,
    ) -> int:
        """Be ready to answer stops (of a `Compiler` that is `answering`), with so many likely successors at
        each; `room` as for `run`. Returns where that is said (an address; see `Answers`). What came of each
        is told in a row of the `log`; how long blocks with allowances are, where the process is `told`
        (`ThreadAreas.told`)."""

    def made(self) -> Made:
        """What has been made while stops were answered."""

    @property
    def latest(self) -> tuple[Array, Array]:
        """The blocks and stubs that were made last (as in `Made`), whether they have been entered or not."""


class Reached(NamedTuple):
    """A place that a thread has come to: the number of the module, the offset in it, whether by an indirect
    branch; the rows of `Made` that were made for it, from the first up to the last."""

    module: int
    offset: int
    lands: int
    first: int
    end: int


class Standing(NamedTuple):
    """What stands by in one code cache: of each of its modules the cache and the code, from where to where,
    and where it stands by (addresses); the stop that the lookup table leads to, and the next cell."""

    modules: Sequence[tuple[int, ...]]
    miss: int
    cell: int


class Answers(Protocol):
    """Has stops answered by compiled code that stands by. `log` is for its modules to write to."""

    log: Array

    def answer(
        self, tids: Sequence[tuple[int, int]], standing: Sequence[Standing], first: tuple[int, int]
    ) -> tuple[list[list[Reached]], tuple[int, int] | None]:
        """Wait for stops after the `first` one (tid and status; 0: there is none), and let those of `tids`
        (each with the number of its code cache) go on that have come to new code of what is `standing` by.
        Returns where they have come to in each code cache, and the next stop if it is something else (tid
        and status; None: nobody has stopped for a while)."""
