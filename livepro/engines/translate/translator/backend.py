"""What an instruction set gives to the translate engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.translator.emitted import Check, Countdown, Emitted, Landing
from livepro.engines.translate.translator.source import SourceBlock
from livepro.isa.base import StoppedThread
from livepro.linux.ptrace import SignalInfo

if TYPE_CHECKING:
    from livepro.engines.stream.blocks import StreamBlocks
    from livepro.engines.stream.filtering import Filter, Repeats

Words = npt.NDArray[np.uint64]
"""A thread's area as livepro sees it."""


WHEN_TOLD = -1
"""With the number of a system call that must stop: not always, but where the data window says so."""

Owed = Sequence[tuple[int, int]]
"""Blocks that have been executed and not counted: slot, length."""


ENTRIES = 256
"""Of a jump table: what one byte can choose."""


class JumpTable(NamedTuple):
    """Where a table of `ENTRIES` addresses is, and the number of the register that holds the index first
    and the entry then."""

    address: int
    register: int


class Text(Protocol):
    """A piece of a program's code, from address `base` to `end`."""

    base: int
    end: int


class Reader(Protocol):
    """Decodes basic blocks, with facts shared by all code that a run meets."""

    def decode(self, text: Any, pc: int) -> SourceBlock:
        """The basic block at `pc`, which lies in `text`. Empty when its first instruction
        cannot be read or decoded; `cut` when the text ends before the block does."""

    def rest_of_sequence(self, decode: Callable[[int], SourceBlock | None], pc: int) -> list[SourceBlock]:
        """The blocks from `pc` on that an exclusive sequence begun before goes through, up to the
        one with its store; none if there is no such way, as where there are no such sequences."""

    def trim(self) -> None:
        """Forget what encodings mean where there are very many: generated code has ever new ones."""

    def live_in(self, block: SourceBlock | None) -> int:
        """Flags that a block may read before it has overwritten them (None: any block)."""


class Records(Protocol):
    """What an emitter that records has."""

    blocks: StreamBlocks

    def wants(self, block: SourceBlock) -> bool:
        """Whether a block is recorded."""

    def knows(self, start: int, end: int) -> None:
        """There is code to be translated at addresses from `start` on and before `end`. Raises LiveproError
        if it cannot be recorded."""


class Entries(Protocol):
    """Code that simulates a thread's cache of data and writes entries of a filtered stream, of `size` bytes:
    where it begins for each of `layout.RECORDERS`, and where it stops when a thread's chunk is full."""

    code: bytes
    size: int
    starts: list[int]
    stops: list[int]

    def restart(self, registers: Any, words: Words, offset: int) -> None:
        """Bring a thread that is at an offset here, and whose caches will be emptied, to where nothing that
        it has in hand is of these."""

    def begin_anew(self, registers: Any, words: Words, offset: int) -> None:
        """Bring a thread to the beginning of a path on which it writes an entry itself (`Cold.writes`), so
        many bytes back."""

    def order(self, words: Words) -> None:
        """Write the lines of data into a thread's chunk (in its area)."""

    def empty(self, words: Words) -> None:
        """Let there be no line of data in a thread's cache."""

    def put_back(self, words: Words, where: int, line: int) -> None:
        """Let a line be where it was, so many bytes from the first one of data on, and the lines that are
        there and before it those before it."""


class Emitter(Protocol):
    """Turns blocks into their copies. `lookup` is what looks up where an indirect branch leads."""

    lookup: bytes

    @property
    def plain(self) -> bool:
        """Whether copies of blocks without rare instructions do nothing but count, maybe with allowances or a
        budget, or record all."""

    @property
    def asks(self) -> bool:
        """Whether blocks are given allowances (`Countdown.ALLOWANCES`)."""

    @property
    def charges(self) -> bool:
        """Whether each execution of a block takes its length from a budget (`Countdown.BUDGET`)."""

    @property
    def records(self) -> bool:
        """Whether all executions of copies are recorded, with all that they access."""

    @property
    def lends(self) -> bool:
        """Whether copies that record are lent a general register (`layout.LENDS`)."""

    @property
    def filter(self) -> Filter | None:
        """What of that is left out (None: none of it)."""

    @property
    def recording(self) -> Records | None:
        """What records the executions of its copies (None: nothing does)."""

    @property
    def entries(self) -> Entries | None:
        """What writes the entries of a filtered stream (None: there are none)."""

    def record(self, blocks: StreamBlocks, filter: Filter | Repeats | None) -> None:
        """Record from now on, all or what a `filter` lets through; blocks have numbers in `blocks`. Raises
        LiveproError where that cannot be."""

    def emit(
        self,
        block: SourceBlock,
        at: int,
        slot: int,
        live_out: Callable[[SourceBlock], int],
        check: Check,
        owed: Owed | None = None,
        stubs: int = 0,
    ) -> Emitted:
        """Copy `block` to cache address `at`, counting in `slot`; `check` says whether its
        source may change, `live_out` which flags its direct successors may read. `owed`: the
        copy is only entered within an exclusive sequence (see `Emitted.within`). `stubs`: where
        those of the jump table are (`table_stub`) by which the block branches, or any address, to see how
        long such a copy is; 0 if there are none."""

    def padding(self, at: int, before: int) -> bytes:
        """What to put at `at` so that a branch's field `before` bytes behind is aligned."""

    def landing(self, target: int) -> Landing:
        """What the lookup table leads to for `target`: goes on behind itself if that is where
        the branch leads, else elsewhere."""

    def resume(self) -> bytes:
        """What returns from signal handlers lead to, where they stay in the cache (else nothing)."""

    def refill(self) -> bytes:
        """What a block goes to that has no allowance left (nothing, if there are no allowances)."""


class Compiler(Protocol):
    """Translates plain blocks by compiled code, many at once."""

    changes: bool
    """Whether it translates code that may change, too."""
    answering: bool
    """Whether it has the stops of threads that have come to new code answered without Python."""

    def ready(self, emitter: Emitter) -> bool:
        """Whether blocks can be translated as this emitter would: what that takes is imported."""

    @property
    def at_hand(self) -> bool:
        """Whether that has been imported."""

    @property
    def prepared(self) -> bool | None:
        """Whether all has been compiled that is needed; None without what compiles."""

    def prepare(self) -> int:
        """Have all compiled that is needed, now. Returns how many shapes of instructions are known. Raises
        ImportError without what compiles."""

    def close(self) -> None:
        """A run is over: keep what it has learnt."""

    def answers(self) -> Any:
        """What answers the stops of threads that have come to new code (`compiled_code.Answers`), where it is
        `answering`."""

    def text(self, start: int, size: int) -> Any:
        """The code of a module, to be read when it is wanted."""

    def changing(self, start: int, size: int) -> tuple[Any, Any]:
        """The code of a range of addresses that may change, to be read again and again, and what keeps the
        code that blocks are made from (`compiled_code.KeptCode`); where it `changes`."""

    def module(
        self, text: Any, base: int, image: Any, emitter: Emitter, *, low: bool, checks: bool = False
    ) -> Any:
        """What translates a module's code into a cache at address `base`, whose memory `image` (uint8) is.
        `low`: it may branch by jump tables; `checks`: it may change, fragments compare it."""


class Backend(Protocol):
    """One instruction set's part of the engine. Implementations are stateless.

    A *field* is the part of a direct branch that says where it leads: 4 aligned
    bytes at its end, which can be rewritten while threads run there. *Own
    registers* are those that the program would have, were it not translated.
    """

    system_call: bytes
    """The instruction."""

    gadget: bytes
    """A system call and a stop: what calls made inside a process go through."""

    stop: bytes
    """An instruction that stops the thread, and can be written over others."""

    jump: bytes
    """A direct branch, its field at its end."""

    nothing: bytes
    """An instruction of the same size that does nothing."""

    compiler: Callable[[], Compiler] | None
    """What makes a `Compiler`, if there is one."""

    index_shift: int
    """Low bits of an address that do not go into the lookup table's index."""

    largest_cache: int
    """Bytes of address space that one cache may take: branches in it reach all of it."""

    movable: bool
    """Whether copies say which of their fields depend on where things are (`Emitted.fields`),
    those that lead somewhere being distances from their own end: then translations can be kept."""
    countdown: Countdown
    """How copies can keep a thread's budget at the least cost."""
    guards: bool
    """Whether copies of generated code say how their comparison is jumped over (`Emitted.skip`)."""
    filters: bool
    """Whether copies can leave lines of memory out of the event stream (`stream.filtering.Filter`)."""
    enters_handlers: bool
    """Whether the kernel can be told of an entry into a code cache as a signal handler: that is,
    whether threads reach their areas as soon as they are there."""

    text: Callable[[int, bytes], Text]
    """Code to decode: its address, its bytes."""

    reader: Callable[[], Reader]

    emitter: Callable[[int, Mapping[int, int | None], Countdown], Emitter]
    """Given the data window's address, system call numbers that must stop, and how copies keep
    a thread's budget. With a number may go
    the place of an argument: the size of a buffer without which the call cannot ask anything of
    livepro, and then need not stop (`livepro.engines.inprocess`); or `WHEN_TOLD`."""

    link: Callable[[Any, int, int], bool]
    """Write a field: into a buffer, at an index, so that its branch leads to the given
    distance from there. False if that is too far."""

    arrival: bytes
    """What must stand where `jump_far_away` leads."""

    synchronise: Callable[[Any, int, int], None] | None
    """Let every processor fetch what a range of a cache (livepro's mapping, start, end) now
    holds. None where that goes without saying."""

    own_frame: Callable[[StoppedThread, int, int], None] | None
    """Where the kernel moves the pc back onto an interrupted system call before its signal is
    seen, and then goes by that pc: put right the signal frame of a thread that has just
    entered the handler, given the call's address in the cache and its own."""

    def check_processor(self) -> None:
        """Raises LiveproError if this machine's processor cannot run translated code."""

    def jump_far_away(self, target: int) -> bytes:
        """A jump that reaches anywhere; at an address divisible by 8."""

    def raises_trap(self, encoding: bytes) -> bool:
        """Whether an instruction raises a trap that looks like a step's."""

    def jump_table(self, block: SourceBlock) -> JumpTable | None:
        """The table that a block branches by at its end, if it can branch to the table's stubs instead."""

    def table_stub(self, table: JumpTable, entry: int) -> tuple[bytes, int]:
        """What an entry's branch leads to: leaves the entry in the register and goes on over a branch
        whose field is at the end. All are of one size. Also the offset at which it is gone into."""

    # -- stopped threads

    def obstacle(self, registers: Any) -> str:
        """What keeps a thread that runs from being translated, as a clause; empty if nothing does."""

    def forget_call(self, registers: Any) -> None:
        """Keep the kernel from beginning again the system call that a thread is in."""

    def stepped(self, info: SignalInfo | None) -> bool:
        """Whether a SIGTRAP tells of a step, by what PTRACE_GETSIGINFO says."""

    def enter_area(self, tid: int, area: int, words: Words, *, inherited: bool = False) -> int:
        """Let a thread that has its own registers reach its area at `area`. Returns what
        `set_own` needs to undo that. `inherited`: the register that leads there is
        the parent's, from its area."""

    def set_own(self, tid: int, registers: Any, words: Words, own: int) -> None:
        """Set a thread's registers to its own: `registers`, but for the one that leads to
        its area, which is as `enter_area` found it."""

    def let_go(self, tid: int, registers: Any) -> None:
        """Set the registers of a child that ran in a copy of the cache and will not be followed."""

    def lead(self, tid: int, words: Words, code: bytes) -> None:
        """A stopped thread goes on from `code` in a cache, its registers being its own there but for one that
        it may be lent (`layout.LENDS`): lend it that."""

    def lend(self, registers: Any, words: Words) -> None:
        """The same by its registers, within a copy."""

    def keep_own(self, registers: Any, words: Words) -> None:
        """A thread is right behind a system call, which has overwritten the register that it may be lent:
        keep that for it."""

    def branch_target(self, tid: int) -> int:
        """Where the indirect branch leads that has just missed the lookup table."""

    def missed_target(self, registers: Any) -> int:
        """The same by a thread's registers."""

    def area_of(self, registers: Any) -> int:
        """The address that a thread's registers have for its area, if it is one that runs from a cache."""

    def faults_before(self, target: int) -> bool:
        """Whether an indirect branch to `target` faults before it retires."""

    def undo_branch(self, registers: Any, facts: Any, words: Words) -> tuple[int, int] | None:
        """Take back what an indirect terminator did besides branching. Returns an address and
        the 64-bit word that was there, if it wrote one."""

    def restore_spills(self, registers: Any, words: Words, which: int = 0) -> None:
        """Restore the registers that a lookup or a comparison borrows, or those that
        `Emitted.borrowed` says."""

    def prepare_return(self, words: Words, area: int, resume: int) -> None:
        """Prepare a new thread's area, at `area`, for returns from signal handlers that stay in
        the cache; `resume` is where `Emitter.resume` is."""

    def retreat(self, registers: Any, words: Words) -> None:
        """Give a thread back the registers that preparing such a return has borrowed."""

    def roll_forward(
        self, registers: Any, words: Words, area: int, read: Callable[[int, int], bytes]
    ) -> bool:
        """Carry out the emitted instruction at which a thread is; False if that is left to it.
        Changes `registers` and `words`, its area at address `area`; `read` reads its memory."""

    def behind_syscall(self, registers: Any, pc: int) -> None:
        """Set what a system call leaves in registers besides its result; `pc` is behind it."""
