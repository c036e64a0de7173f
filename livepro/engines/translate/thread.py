"""One translated thread: where its counters are, and what it is in the middle of."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.translate import layout
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.codecache.fragment import Fragment
from livepro.engines.translate.codecache.stop_reasons import NativeStop
from livepro.engines.translate.counting.allowances import AllowingCounters
from livepro.engines.translate.counting.budget import Budget
from livepro.engines.translate.counting.counters import ThreadCounters
from livepro.engines.translate.counting.intervals import IntervalClock
from livepro.engines.translate.signals.actions import Change
from livepro.engines.translate.translator.emitted import Countdown
from livepro.engines.window import Position
from livepro.tracee import TracedThread

if TYPE_CHECKING:
    from livepro.engines.translate.counting.filtered import FilteredTrace
    from livepro.engines.translate.counting.recorded import TranslateTrace
    from livepro.engines.translate.counting.repeated import RepeatedTrace

NOWHERE = (-1, 0, 0)
"""See `TranslatedThread.furthest`."""


class Mode(Enum):
    """What a thread's next SIGTRAP stop means."""

    RUNNING = 0  # a stop in the cache
    NATIVE = 1  # one instruction was stepped at its own address
    DELIVERING = 2  # a signal handler was entered
    SETTLING = 3  # one step further towards a boundary, with a signal in hand
    PARTED = 4  # none: it has been let go, and its counters are to be added up


class TranslatedThread:
    """One thread: its area, its mode, and what it is in the middle of.

    `held` is a signal (number and siginfo) to be delivered at the next boundary, `mask`
    the program's signal mask while livepro's own is in force, `change` an rt_sigaction
    that is being made. `streak` signals in a row, since `since`, have each found the
    thread where it returned from the handler of the one before; `deferred` is a signal
    that is put off for that reason (0: none). `asking` is where it stands while a
    command of its own is carried out. `budget` is its countdown, `share_end` how many instructions
    it will have executed in all when its share of a region's is spent, `repeating` a rep instruction
    that it executes natively, `within` the block that it is in where that is known beforehand. `furthest`
    is the block whose counter slot, and which of its executions, it was last found in, and how many of
    the block's instructions it had executed then. `led_to` is the cache address that it has been put at and
    is yet to go on from (0: none). `taking` is a signal that it was let go on with and may not have taken yet
    (0: none). `trace` is its event stream (None: it is not recorded); `lends` says whether its copies are
    lent a register for that.
    """

    __slots__ = (
        "area",
        "asking",
        "at",
        "before",
        "budget",
        "change",
        "clock",
        "counters",
        "deferred",
        "frame",
        "furthest",
        "held",
        "led_to",
        "lends",
        "mask",
        "mode",
        "native",
        "program_base",
        "record",
        "repeating",
        "share_end",
        "since",
        "space",
        "streak",
        "taking",
        "tally",
        "thread",
        "trace",
        "within",
        "words",
    )

    def __init__(
        self, thread: TracedThread, record: ImageRecord, tally: ThreadTally, space: CodeCache, area: int
    ):
        self.thread = thread
        self.record = record
        self.tally = tally
        self.space = space
        self.area = area
        self.words = space.areas.area(area)
        self.counters = ThreadCounters(self.words, space.registry)
        self.mode = Mode.RUNNING
        self.native: NativeStop | None = None
        self.at = 0
        self.before: Any = None
        self.frame: tuple[int, int] | None = None
        self.held: tuple[int, Any] | None = None
        self.mask: int | None = None
        self.change: Change | None = None
        self.deferred = 0
        self.streak = 0
        self.since = 0.0
        self.program_base = 0
        self.clock: IntervalClock | None = None
        self.asking: Position | None = None
        self.budget = Budget(self.words)
        self.share_end = 0
        self.furthest = NOWHERE
        self.led_to = 0
        self.taking = 0
        self.repeating = b""
        self.lends = False
        self.within: Fragment | None = None
        self.trace: TranslateTrace | FilteredTrace | RepeatedTrace | None = None

    @property
    def area_address(self) -> int:
        """Where its area is in the target."""
        return self.space.areas.area_address(self.area)

    def going_to(self, pc: int) -> int:
        """The cache address that the thread is about to go on at, being at `pc`: another one where it writes
        an entry of a filtered stream."""
        return int(self.words[layout.ENTRY_RETURN // 8]) if pc in self.space.memory.entries else pc

    def keep_countdown(self, countdown: Countdown) -> None:
        """Begin to count down as copies do."""
        if countdown is Countdown.ALLOWANCES:
            self.words[layout.REFILL // 8] = self.space.memory.refill.start
            self.counters = allowing = AllowingCounters(self.words, self.space.registry)
            self.budget = Budget(self.words, allowing)
        else:
            self.budget = Budget(self.words)

    def adjust(self, slot: int, executed: int, charged: int) -> None:
        """It left the block of `slot` after `executed` instructions, `charged` having been taken
        from its budget for it. To be told after the tally is."""
        if self.clock is not None:
            self.clock.adjust(slot, executed, charged)
        else:
            self.budget.give(charged - executed)
