"""Where stepped threads are: blocks prepared for stepping, and a thread's place in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.step.calling import Call
from livepro.engines.window import Position
from livepro.errors import LiveproError
from livepro.isa.base import CodeBlock, Isa, Quirk
from livepro.linux import ptrace, rseq
from livepro.model import Flow
from livepro.tracee import TracedThread

if TYPE_CHECKING:
    from livepro.engines.stream.recorder import Recorder
    from livepro.engines.stream.stepping import StepTrace

NEVER = -2
"""No program counter, and not the -1 of a failed read."""


class StepBlock:
    """A decoded block, ready for stepping.

    `expect[i]` is the program counter that a step over instruction i must
    give to need no second look. `look[i]` says whether registers must be read
    before instruction i runs, or it needs more than a step (rep, system calls, exclusives).
    `links` are the blocks that the
    last instruction has been seen to lead to, by address, where neither it nor
    they need a second look; `last` is its index, -1 if it always needs one.
    """

    __slots__ = ("code", "expect", "last", "links", "look", "row", "stable")

    def __init__(self, code: CodeBlock, row: int, stable: bool) -> None:
        self.code = code
        self.row = row
        self.stable = stable
        self.look = tuple(
            rep or quirk in (Quirk.SYSCALL, Quirk.SHADOW, Quirk.EXCLUSIVE)
            for rep, quirk in zip(code.reps, code.quirks, strict=True)
        )
        last = len(code) - 1
        self.expect = tuple(
            code.addresses[i + 1]
            if stable
            and i < last
            and not self.look[i]
            and not self.look[i + 1]
            and code.quirks[i] is Quirk.NONE
            else NEVER
            for i in range(len(code))
        )
        plain = not self.look[last] and code.quirks[last] is Quirk.NONE and code.flows[last] is not Flow.TRAP
        self.last = last if plain else -1
        self.links: dict[int, StepBlock] = {}

    def link(self, follower: StepBlock) -> None:
        """Note that the last instruction can lead to `follower`."""
        address = follower.code.address
        moved = address != self.code.addresses[self.last]  # else it may not have executed anything
        if self.last >= 0 and moved and follower.stable and not follower.look[0]:
            self.links[address] = follower


def may_follow(code: CodeBlock, pc: int) -> bool:
    """Whether `pc` is a possible successor of the block's last instruction."""
    flow = code.flows[-1]
    behind = code.addresses[-1]
    if flow in (Flow.JUMP, Flow.CALL):
        return pc == code.target
    if flow is Flow.BRANCH:
        return pc in (code.target, behind)
    if flow is Flow.NEXT:
        return pc == behind
    return True


class StepThread:
    """Where a thread is: about to attempt instruction `index` of `block`.

    `suspect` says that the next trap may not stand for an executed
    instruction; `counted`, that it may stand for one that has been counted;
    `held`, that a system call has been entered and will be restarted, so it has
    yet to be counted; `muddled`, that the kernel takes the tracer's trap flag
    for the program's until a resumption without stepping; `asking`, where it stands
    while a command of its own is carried out; `trace`, its event stream (None: it is not recorded); `call`,
    where it is in a system call that ends with a stop of its own.
    """

    __slots__ = (
        "asking",
        "before",
        "block",
        "call",
        "counted",
        "expect",
        "expected",
        "held",
        "index",
        "muddled",
        "record",
        "suspect",
        "tally",
        "thread",
        "trace",
    )

    def __init__(
        self, thread: TracedThread, tally: ThreadTally, record: ImageRecord, block: StepBlock
    ) -> None:
        self.thread = thread
        self.tally = tally
        self.record = record
        self.block = block
        self.expect = block.expect
        self.expected = NEVER
        self.index = 0
        self.before: object = None
        self.suspect = True
        self.counted = False
        self.held = False
        self.muddled = False
        self.asking: Position | None = None
        self.trace: StepTrace | None = None
        self.call = Call.NONE

    @property
    def position(self) -> Position:
        """Where it is, as of its last stop. A thread that was let run into a system call has executed it."""
        if self.asking is not None:
            return self.asking
        code, index = self.block.code, self.index
        entered = code.quirks[index] is Quirk.SYSCALL
        return Position(self.block.row, index + entered, 0, len(code))


def unchanged(state: StepThread, block: StepBlock, index: int) -> bool:
    """Whether memory still holds the instruction decoded (the whole block for its first)."""
    code = block.code
    start = code.addresses[index]
    end = code.addresses[index + 1] if index else code.addresses[-1]
    return state.thread.read(start, end - start) == code.code[start - code.address : end - code.address]


def count_iterations(isa: Isa, state: StepThread) -> None:
    """Add what a rep's count register says has been done since it was last read."""
    code, index = state.block.code, state.index
    start = code.addresses[index] - code.address
    text = code.code[start : code.addresses[index + 1] - code.address]
    registers = state.thread.registers()
    state.tally.rep_iterations += isa.rep_count(text, state.before) - isa.rep_count(text, registers)
    state.before = registers


def begin_trace(state: StepThread, recorder: Recorder | None, isa: Isa) -> None:
    """Record the event stream of a thread, if there is a recorder."""
    if recorder is not None:
        from livepro.engines.stream.stepping import StepTrace  # what few runs need, none should load

        state.trace = StepTrace(recorder, recorder.thread(state.thread, state.record, isa), isa)


def end_trace(state: StepThread, goes: int | None = None) -> None:
    """The thread will execute nothing more, or not be watched: it goes on at `goes`."""
    if state.trace is not None:
        if goes is not None:
            state.trace.goes_on(goes)
        state.trace.end()


# -- threads that ran before they were stepped, and will run on


def taken_at(isa: Isa, thread: TracedThread) -> int:
    """Where a thread is that was running: at a system call's instruction if it waits in the
    call, for it will execute that once more; behind a restartable sequence that it was in."""
    registers = thread.registers()
    pc = int(getattr(registers, isa.registers.pc))
    if isa.rewind_call(registers):
        return int(getattr(registers, isa.registers.pc))
    goes_on = rseq.abort(thread.tid, pc, thread.read, thread.write)
    if goes_on != pc:
        setattr(registers, isa.registers.pc, goes_on)
        thread.set_registers(registers)
    return goes_on


def refuse_shadow_stack(isa: Isa, thread: TracedThread) -> None:
    """Raises LiveproError for a thread that has a shadow stack, which only the processor's own calls
    and returns keep up."""
    if ptrace.has_regset(thread.tid, isa.registers.shadow_stack):
        raise LiveproError(
            f"Thread {thread.tid} of process {thread.process.pid} has a shadow stack, which only the "
            "processor's own calls and returns keep up.",
            "Use `--engine step`.",
        )


def hold(isa: Isa, state: StepThread) -> None:
    """Know a thread that waits in the system call it was taken over at."""
    if state.thread.attached:
        registers = state.thread.registers()
        if isa.rewind_call(registers):
            state.held = True
            state.before = registers


def unstep(isa: Isa, thread: TracedThread, in_call: bool) -> None:
    """Take out of the thread's registers what stepping may have left there."""
    registers = thread.registers()
    if isa.stop_stepping(registers):
        thread.set_registers(registers)
    if in_call:
        isa.after_step(Quirk.SYSCALL, thread)
