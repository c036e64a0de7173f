"""What a thread that runs freely may execute before its next stop.

A thread that is let run stops at the first planted breakpoint. Between its
block and that stop it may pass through direct jumps and calls, which lead to
one place only: they need no stop, and the call's push, with its page fault if
there is one, is the processor's own. A plan is the tree of blocks (today: the
chain) that the thread can walk, and tells from the place where it stopped
which of them it has executed.
"""

from __future__ import annotations

from livepro.engines.block.text import Site
from livepro.engines.step.stepping import StepBlock
from livepro.isa.base import Carry, CodeBlock, Quirk
from livepro.model import Flow

LONGEST = 16
"""Blocks in a chain. Longer ones are rare, and a signal has to find its place in it."""

_STEPPED = (Quirk.SYSCALL, Quirk.SHADOW)


class Node(StepBlock):
    """A block that may be run: a block for stepping, and its terminator's site.

    From instruction `tail` on no instruction needs a stop of its own (a rep,
    whose iterations count; a system call, which may change anything): from
    there the thread may run to the terminator. `row` is -1 until the block has
    been entered. `plan` is for a thread that enters at the start, `rest` for one
    that stands at `tail` or behind it.
    """

    __slots__ = ("plan", "rest", "site", "tail")

    def __init__(self, code: CodeBlock, stable: bool, site: Site | None) -> None:
        super().__init__(code, -1, stable)
        self.site = site
        self.plan: Plan | None = None
        self.rest: Plan | None = None
        self.tail = len(code)
        if site is not None:
            while self.tail and not self._special(self.tail - 1):
                self.tail -= 1

    def _special(self, index: int) -> bool:
        return self.code.reps[index] or self.code.quirks[index] in _STEPPED

    @property
    def runnable(self) -> bool:
        """Whether the terminator may carry a breakpoint."""
        return self.site is not None and not self.site.barred

    @property
    def follower(self) -> int | None:
        """Where the terminator leads if it needs no stop, else None."""
        return self.code.target if self.code.flows[-1] in (Flow.JUMP, Flow.CALL) else None


class Path:
    """Blocks executed one after the other, up to a terminator that `carry` carries out.

    `rows` are theirs in the block table, empty until the path has been walked once.
    """

    __slots__ = ("carry", "nodes", "rows")

    def __init__(self, nodes: tuple[Node, ...], carry: Carry) -> None:
        self.nodes = nodes
        self.carry = carry
        self.rows: tuple[int, ...] = ()


class Plan:
    """The blocks from the one where a thread is let run to its next stop.

    `ends` maps the pc that a breakpoint's trap shows to the path walked: every
    site on the way is there, since somebody else's plan may have planted it.
    `stop` is the site that must be planted, `length` the instructions up to it and with it.
    `version` is the text's version under which it was seen to be planted.
    """

    __slots__ = ("ends", "length", "nodes", "stop", "version")

    def __init__(self, nodes: list[Node], advance: int) -> None:
        self.nodes = nodes
        self.length = sum(len(node.code) for node in nodes)
        self.version = -2
        self.ends: dict[int, Path] = {}
        for count, node in enumerate(nodes, 1):
            assert node.site is not None
            self.stop = node.site
            self.ends[node.site.address + advance] = Path(tuple(nodes[:count]), node.site.carry)

    def locate(self, pc: int) -> tuple[int, int] | None:
        """The block (index into `nodes`) and the instruction in it that stand at `pc`."""
        for number, node in enumerate(self.nodes):
            addresses = node.code.addresses
            if addresses[0] <= pc < addresses[-1] and pc in addresses:
                return number, addresses.index(pc)
        return None


def apart(node: Node, nodes: list[Node]) -> bool:
    """Whether a block shares no byte with `nodes`: only then does a pc tell one place."""
    start, end = node.code.addresses[0], node.code.addresses[-1]
    return all(end <= other.code.addresses[0] or other.code.addresses[-1] <= start for other in nodes)
