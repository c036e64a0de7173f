"""A thread under the block engine."""

from __future__ import annotations

from livepro.engines.block.plan import Node, Plan
from livepro.engines.block.text import Text
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.step.stepping import StepThread
from livepro.isa.base import CodeBlock, Quirk
from livepro.linux.vm import Words
from livepro.model import Flow
from livepro.tracee import TracedThread

_NOTHING = CodeBlock(0, b"", (0, 0), (Flow.NEXT,), (False,), (Quirk.NONE,), None, False)


class BlockThread(StepThread):
    """A thread that is stepped, or, while it has a `plan`, runs.

    `block` and `index` say where it is, of a running thread where it was let
    run. `owed` says that it has hit a breakpoint whose SIGTRAP has not been
    reported yet, since another stop came before; `watched`, that it executes a
    rep whose end a hardware breakpoint will show. `known` are its process's
    decoded blocks by address, `text` its breakpoints, `words` its memory. `carried` says of a stopped thread
    that the terminator has been carried out whose breakpoint it stopped at: it stands at `block` and `index`,
    even where that is right behind the breakpoint.
    """

    __slots__ = ("carried", "cutting", "entries", "known", "owed", "plan", "text", "watched", "words")

    block: Node

    def __init__(
        self,
        thread: TracedThread,
        tally: ThreadTally,
        record: ImageRecord,
        text: Text,
        known: dict[int, Node],
    ) -> None:
        super().__init__(thread, tally, record, Node(_NOTHING, False, None))
        self.entries = tally.entries
        self.cutting = tally.cutting
        self.text = text
        self.known = known
        self.words = Words(thread.tid)
        self.plan: Plan | None = None
        self.owed = False
        self.watched = False
        self.carried = False
