"""Threads in the code cache: the loop, the stops there, and steps outside it.

A thread's program counter is in a cache while it runs. Instructions that must
be executed at their own place (system calls that change mappings, traps, far
transfers) are stepped there, with the program's own registers.
"""

from __future__ import annotations

import gc

from livepro.engines.base import EngineOptions
from livepro.engines.translate import layout
from livepro.engines.translate.cache import Block, Stop
from livepro.engines.translate.emitted import Countdown
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.syscalls import SteppedCalls
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.isa.base import Isa
from livepro.linux import ptrace
from livepro.linux.wait import TRAP_STATUS
from livepro.model import Flow
from livepro.tracee import TracedProcess
from livepro.tracee.stops import failed, killed

_ADDRESS_MASK = (1 << 64) - 1


_LONG = 10_000_000  # instructions in an interval that may end in a few stops


class CacheRunner(SteppedCalls):
    """Runs threads from their code caches and answers the stops they make there."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        layout_ = isa.registers
        read_pc = ptrace.program_counter_reader(layout_.pc_user_offset, layout_.structure, layout_.pc)
        self._read_pc = read_pc
        self._write_pc = ptrace.program_counter_writer(layout_.pc_user_offset, layout_.structure, layout_.pc)
        self._pc_advance = isa.breakpoint.pc_advance
        self._reader = self._backend.reader()
        self._states: dict[int, TranslatedThread] = {}
        self._spaces: dict[TracedProcess, CodeSpace] = {}
        self._inherited: dict[TracedProcess, CodeSpace] = {}
        self._free_areas: dict[CodeSpace, list[int]] = {}
        self._gadgets: dict[TracedProcess, int] = {}
        metered = options.region is not None and options.region.metered
        self._countdown = Countdown.BUDGET if metered or options.cut is not None else Countdown.NONE
        if options.cut is not None and not metered and options.cut(0) >= _LONG:
            self._countdown = self._backend.countdown
        self.stops = 0
        self._missed_lookups = 0
        self._blocks = 0
        self._blocks_put_back = 0
        self._cache_bytes = 0
        self._flushes = 0
        self._trusted = 0
        self._written = 0
        self._shelf = self._open_shelf()

    # -- the loop

    def run(self) -> None:
        # Hundreds of thousands of small objects that live to the end: the cycle
        # collector would look through them again and again, and find nothing.
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._watch()
        finally:
            if collecting:
                gc.enable()
        self.finish()
        self.stats |= {
            "stops": self.stops,
            "blocks translated": self._blocks,
            "blocks kept from before": self._blocks_put_back,
            "translation seconds": round(self._translating, 3),
            "cache bytes": self._cache_bytes,
            "lookups missed": self._missed_lookups,
            "flushes": self._flushes,
            "generated blocks trusted": self._trusted,
            "writes to them": self._written,
        }

    def _watch(self) -> None:
        threads, dispatch, states = self.tracer.threads, self.tracer.dispatch, self._states
        wait = self._wait
        running = Mode.RUNNING
        while threads or self.tracer.busy:
            try:
                tid, status = wait()
            except ChildProcessError:
                break
            self.stops += 1
            if status == TRAP_STATUS:
                state = states.get(tid)
                if state is not None and state.mode is running:
                    try:
                        self._stopped_in_cache(state)
                    except OSError:
                        # Else killed meanwhile. (One that has been let go by now was asked nothing more.)
                        if tid not in threads or not killed(tid):
                            raise
                    continue
            dispatch(tid, status)

    def _stopped_in_cache(self, state: TranslatedThread) -> None:
        tid = state.thread.tid
        pc = self._pc(tid) - self._pc_advance
        target = state.space.exits.get(pc)
        if target is not None:
            self._enter(state, target)
            return
        stop = state.space.stop_at(pc)
        if stop is None:
            self.tracer.dispatch(tid, TRAP_STATUS)
            return
        kind = stop.kind
        if kind == "miss":
            self._missed(state)
        elif kind == "native":
            self._begin_native(state, stop)
        elif kind == "dropped":
            self._enter(state, stop.pc)
        elif kind == "waited":
            self._woke(state, stop)
        elif kind == "changed":
            self._changed(state, stop)
        elif kind == "budget":
            self._budget_spent(state, stop)
            self._go(state, stop.resume)
        elif kind == "full":
            self._full(state, stop)
            self._go(state, stop.resume)
        elif kind == "region":
            self._at_region(state, stop)

    def _pc(self, tid: int) -> int:
        """Where a stopped thread is. Raises OSError when that cannot be told."""
        pc = self._read_pc(tid)
        if pc == -1:
            failed(tid)  # else it is indeed there
        return pc & _ADDRESS_MASK

    def _lead(self, tid: int, address: int) -> None:
        """Have a stopped thread run on from an address. Raises OSError if it cannot be led there."""
        if self._write_pc(tid, address) == -1:
            failed(tid)

    def _go(self, state: TranslatedThread, address: int) -> None:
        """Run on from a cache address."""
        tid = state.thread.tid
        state.mode = Mode.RUNNING
        state.led_to = address
        self._lead(tid, address)
        if ptrace.raw(ptrace.PTRACE_CONT, tid, None, None) == -1:
            failed(tid)
        state.led_to = 0

    def _enter(self, state: TranslatedThread, pc: int) -> None:
        """Run on from the program's address `pc`, where a block starts."""
        start = self._translate(state, pc)
        if start is None:
            self._step_uncopied(state, pc)
        else:
            self._go(state, start)

    def _woke(self, state: TranslatedThread, stop: Stop) -> None:
        """Back from a system call in a copy that was dropped meanwhile."""
        block = stop.block
        assert block is not None
        registers = state.thread.registers()
        self._backend.behind_syscall(registers, stop.pc)
        state.thread.set_registers(registers)
        behind = self._in_force(state, block, stop.index, stop.resume)
        if behind is not None:
            self._go(state, behind)
            return
        self._uncount(state, block, stop.index, counted=stop.counted)
        self._enter(state, stop.pc)

    def _missed(self, state: TranslatedThread) -> None:
        """An indirect branch to an address that the lookup table does not have."""
        tid = state.thread.tid
        self._missed_lookups += 1
        target = self._backend.branch_target(tid)
        space = state.space
        faults = self._backend.faults_before(target)
        if not faults and self._translate(state, target, landing=True) is not None:
            self._go(state, space.lookup.landings[target])
            return
        registers = state.thread.registers()
        self._backend.give_back(registers, state.words)
        if faults:
            # The processor faults before such a branch retires: undo what it did, and
            # let it fault at its own place. (Behind a return from a signal handler the fault
            # is at the target.)
            site = int(state.words[layout.SITE // 8]) & 0xFFFF_FFFF
            if site != layout.NOWHERE:
                source = space.counted_in(site)
                written = self._backend.undo_branch(registers, source.source.facts[-1], state.words)
                if written is not None:
                    state.thread.write(written[0], written[1].to_bytes(8, "little"))
                state.native = Stop("native", source, 0, len(source.source.facts) - 1, 0, True)
                target = source.source.pc + source.source.offsets[-2]
                state.thread.set_registers(registers)
                self._step_natively(state, target)
                return
        state.thread.set_registers(registers)
        self._step_uncopied(state, target)

    def _budget_spent(self, state: TranslatedThread, stop: Stop) -> None:
        """An interval of the thread's basic block vectors ends in the stop's block."""
        assert stop.block is not None
        state.budget.withdraw(len(stop.block.source.facts))
        if state.clock is not None:
            state.clock.ran_out(stop.block.slot)
        state.budget.level()

    @staticmethod
    def _full(state: TranslatedThread, stop: Stop) -> None:
        """The thread's chunk of records is full."""
        assert state.trace is not None
        assert stop.block is not None
        state.trace.full(stop.block)

    def _changed(self, state: TranslatedThread, stop: Stop) -> None:
        """The program has changed code that was translated."""
        registers = state.thread.registers()
        self._backend.give_back(registers, state.words)
        state.thread.set_registers(registers)
        self._enter(state, self._forget(state, stop))

    def _forget(self, state: TranslatedThread, stop: Stop) -> int:
        """Drop a changed block; returns the program's address that the thread is at."""
        block = stop.block
        assert block is not None
        self._uncount(state, block, stop.index, counted=stop.counted)
        found = state.space.find(block.source.pc)
        if found is not None and found.slot == block.slot:
            state.space.forget(block.source.pc)
        return block.source.pc + block.source.offsets[stop.index]

    # -- native steps

    def _begin_native(self, state: TranslatedThread, stop: Stop) -> None:
        """Step the instruction that the stop stands for at its own address."""
        block = stop.block
        assert block is not None
        state.native = stop
        self._prepare_native(state, block.source.pc + block.source.offsets[stop.index])
        if state.trace is not None:
            state.trace.stepping(block, stop.index, state.thread.registers)
        if block.source.facts[stop.index].flow is Flow.SYSCALL:
            self._before_system_call(state)
        elif state.mask is not None:
            self._restore_mask(state)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, state.thread.tid)

    def _step_natively(self, state: TranslatedThread, pc: int) -> None:
        """Execute one instruction at the program's address `pc`."""
        self._prepare_native(state, pc)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, state.thread.tid)

    def _step_uncopied(self, state: TranslatedThread, pc: int) -> None:
        """Execute the instruction at the program's address `pc`, for which there is no room in the cache
        (or it cannot be executed: then it will fault)."""
        block = state.space.uncopied(pc)
        if block is None:
            self._step_natively(state, pc)
            return
        encoding = block.source.code[: block.source.offsets[1]]
        if self.isa.decode_block(encoding, pc).reps[0]:
            state.repeating = encoding
            state.tally.rep_iterations += self.isa.rep_count(encoding, state.thread.registers())
        raises = self._backend.raises_trap(encoding)
        self._begin_native(state, Stop("native", block, 0, 0, 0, False, raises))

    def _prepare_native(self, state: TranslatedThread, pc: int) -> None:
        """Put a thread at the program's address `pc`, with its own registers, for one step.

        `state.native` is the stop that stands for it, None if nothing is known of it
        (unreadable code, which will fault).
        """
        thread = state.thread
        registers = thread.registers()
        mapping = thread.process.space.find(pc)
        state.at = pc
        if mapping is not None and mapping.path == "[vsyscall]":
            # The kernel carries out the call and its return on the fetch fault; what
            # the step executes is the instruction returned to.
            state.at = int.from_bytes(thread.read(getattr(registers, self.isa.registers.sp), 8), "little")
        setattr(registers, self.isa.registers.pc, pc)
        self._backend.set_own(thread.tid, registers, state.words, state.program_base)
        state.before = registers
        state.mode = Mode.NATIVE

    def _end_native(self, state: TranslatedThread) -> None:
        """The instruction stepped natively has been executed."""
        thread = state.thread
        pc = self._pc(thread.tid)
        stop, state.native = state.native, None
        if stop is None:
            # Not known when it was stepped: known now, or it could not have run.
            block = state.space.uncopied(state.at)
            if block is not None:
                if state.trace is not None:
                    state.trace.stepping(block, 0, lambda: state.before)
                self._uncount(state, block, 1, counted=False)
            self._leave_native(state)
            self._enter(state, pc)
            return
        block, index = stop.block, stop.index
        assert block is not None
        source = block.source
        self._leave_native(state)
        executed = index + 1
        if state.trace is not None:
            state.trace.stepped(state.thread.registers, recorded=stop.counted)
        if source.facts[index].flow is Flow.SYSCALL:
            self._after_system_call(state, returned=pc == source.pc + source.offsets[executed])
        if executed < len(source.facts) and stop.resume and pc == source.pc + source.offsets[executed]:
            resume = self._in_force(state, block, executed, stop.resume)
            if resume is not None:
                self._go(state, resume)
                return
        if executed < len(source.facts) or not stop.counted:
            self._uncount(state, block, executed, counted=stop.counted)
        self._enter(state, pc)

    def _leave_native(self, state: TranslatedThread) -> None:
        """Give the thread its area back."""
        area = state.area_address
        state.program_base = self._backend.enter_area(state.thread.tid, area, state.words)
        if state.space.guard is not None:
            state.space.guard.moved(state.thread.tid)

    # -- counting what was not executed as a whole

    def _uncount(self, state: TranslatedThread, block: Block, count: int, *, counted: bool) -> None:
        """The thread left `block` after its first `count` instructions."""
        if state.trace is not None:
            state.trace.left(block, count, state.thread.registers, recorded=counted)
        tally = state.tally
        whole = count == len(block.source.facts)
        tally.entries[block.slot] += whole - counted
        if count and not whole:
            tally.partial[block.slot, count] += 1
        state.adjust(block.slot, count, len(block.source.facts) if counted else 0)
        if not counted:
            for slot, length in block.details.owed:
                tally.entries[slot] += 1
                state.adjust(slot, length, 0)
