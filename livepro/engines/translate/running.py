"""Threads in the code cache: the loop, the stops there, and steps outside it.

A thread's program counter is in a cache while it runs. Instructions that must
be executed at their own place (system calls that change mappings, traps, far
transfers) are stepped there, with the program's own registers.
"""

from __future__ import annotations

import contextlib
import gc
from typing import Any

from livepro.engines.base import EngineOptions
from livepro.engines.translate import backend_for, layout
from livepro.engines.translate.actions import SignalActions
from livepro.engines.translate.backend import WHEN_TOLD
from livepro.engines.translate.cache import Block, Stop
from livepro.engines.translate.room import CacheRoom
from livepro.engines.translate.space import CodeSpace
from livepro.engines.translate.thread import Mode, TranslatedThread
from livepro.isa.base import Isa, Quirk
from livepro.linux import ptrace
from livepro.linux.wait import TRAP_STATUS
from livepro.model import Flow
from livepro.tracee import TracedProcess

_MREMAP_FIXED = 2  # include/uapi/linux/mman.h
_PROT_EXEC = 4  # include/uapi/asm-generic/mman-common.h
_ADDRESS_MASK = (1 << 64) - 1
_ERRORS = _ADDRESS_MASK - 4095  # results above are errors: MAX_ERRNO in include/linux/err.h


_LONG = 50_000_000  # instructions in an interval that may end in a dozen stops


class CacheRunner(CacheRoom):
    """Runs threads from their code caches and answers the stops they make there."""

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        layout_ = isa.registers
        read_pc = ptrace.program_counter_reader(layout_.pc_user_offset, layout_.structure, layout_.pc)
        self._read_pc = read_pc
        self._write_pc = ptrace.program_counter_writer(layout_.pc_user_offset, layout_.structure, layout_.pc)
        self._pc_advance = isa.breakpoint.pc_advance
        self._backend = backend_for(isa.name)
        self._backend.check_processor()
        self._numbers = dict(isa.syscalls.numbers)
        named = isa.syscalls.named
        self._remapping = named(
            "mmap", "munmap", "mprotect", "pkey_mprotect", "mremap", "shmat", "shmdt", "remap_file_pages"
        )
        self._moving = named("shmat")
        self._placing = named("mmap")
        self._growing = named("mremap")
        self._acting = named("rt_sigaction")
        more = ("rt_sigreturn", "execve", "execveat", "arch_prctl", *self._backend.stepped_calls)
        self._watched: dict[int, int | None] = dict.fromkeys(self._remapping | self._acting | named(*more))
        self._watched |= self.inprocess.sizes
        self._discarding = named("madvise") if self._backend.guards else frozenset()
        self._watched |= dict.fromkeys(self._discarding, WHEN_TOLD)
        self._reader = self._backend.reader()
        self._actions: dict[TracedProcess, SignalActions] = {}
        self._changing: set[int] = set()
        self._states: dict[int, TranslatedThread] = {}
        self._spaces: dict[TracedProcess, CodeSpace] = {}
        self._inherited: dict[TracedProcess, CodeSpace] = {}
        self._free_areas: dict[CodeSpace, list[int]] = {}
        self._gadgets: dict[TracedProcess, int] = {}
        metered = options.region is not None and options.region.metered
        self._budget_cells = int(metered or options.cut is not None)
        if options.cut is not None and not metered and options.cut(0) >= _LONG:
            self._budget_cells = self._backend.budget_cells
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
                    with contextlib.suppress(ProcessLookupError):  # killed meanwhile
                        self._stopped_in_cache(state)
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
        elif kind == "region":
            self._at_region(state, stop)

    def _pc(self, tid: int) -> int:
        return self._read_pc(tid) & _ADDRESS_MASK

    def _go(self, state: TranslatedThread, address: int) -> None:
        """Run on from a cache address."""
        tid = state.thread.tid
        state.mode = Mode.RUNNING
        self._write_pc(tid, address)
        ptrace.raw(ptrace.PTRACE_CONT, tid, None, None)

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
        if state.clock is not None:
            state.clock.ran_out(stop.block.slot)
        state.budget.level()

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
        if state.space.find(block.source.pc) is block:
            state.space.forget(block.source.pc)
        return block.source.pc + block.source.offsets[stop.index]

    # -- native steps

    def _begin_native(self, state: TranslatedThread, stop: Stop) -> None:
        """Step the instruction that the stop stands for at its own address."""
        block = stop.block
        assert block is not None
        state.native = stop
        self._prepare_native(state, block.source.pc + block.source.offsets[stop.index])
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
                self._uncount(state, block, 1, counted=False)
            self._leave_native(state)
            self._enter(state, pc)
            return
        block, index = stop.block, stop.index
        assert block is not None
        source = block.source
        self._leave_native(state)
        executed = index + 1
        if source.facts[index].flow is Flow.SYSCALL:
            self._after_system_call(state, returned=pc == source.pc + source.offsets[executed])
        if executed < len(source.facts):
            in_force = stop.resume and state.space.find(source.pc) is block
            if in_force and pc == source.pc + source.offsets[executed]:
                self._go(state, stop.resume)
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

    def _ranges(self, registers: Any, number: int) -> list[tuple[int, int]]:
        """What a system call may map otherwise that a thread is about to make, as [start, end)."""
        names = self.isa.registers.syscall_arguments[:5]
        address, size, third, flags, new = (getattr(registers, name) for name in names)
        if number in self._moving:
            return [(0, _ADDRESS_MASK)]  # it does not say how much
        moved = number in self._growing and flags & _MREMAP_FIXED
        return [(address, address + size), (new, new + third)] if moved else [(address, address + size)]

    def _before_system_call(self, state: TranslatedThread) -> None:
        names = self.isa.registers
        number = getattr(state.before, names.syscall_number)
        self._mask_for_call(state, number)
        thread, space = state.thread, state.space
        if space.guard is not None and (number in self._remapping or number in self._discarding):
            space.guard.moves(thread.tid, self._ranges(state.before, number))
        if not self._backend.enters_handlers or number not in self._acting:
            return
        if self.tracer.to_be_taken(thread.process):
            return  # a thread that is not watched yet must not enter a handler in the cache
        registers = thread.registers()
        actions = self._actions[thread.process]
        area = state.area_address
        state.change = actions.begin(thread.tid, registers, names, state.words, area, space.entry)
        if state.change is not None:
            thread.set_registers(registers)
            self._changing.add(thread.tid)

    def _changed_action(self, state: TranslatedThread, *, made: bool = True) -> None:
        """An rt_sigaction has been `made`, or is put off, that tells the kernel otherwise than
        the program meant."""
        thread, change = state.thread, state.change
        assert change is not None
        state.change = None
        self._changing.discard(thread.tid)
        registers = thread.registers()
        actions, names = self._actions[thread.process], self.isa.registers
        if made:
            actions.finish(change, thread.tid, registers, names, state.words, state.space.handlers)
        else:
            actions.undo(change, registers, names)
        thread.set_registers(registers)

    def _after_system_call(self, state: TranslatedThread, *, returned: bool) -> None:
        if returned:  # not by sigreturn, whose registers are all the program's own
            self.isa.after_step(Quirk.SYSCALL, state.thread)
        registers = self.isa.registers
        number = getattr(state.before, registers.syscall_number)
        if state.change is not None:
            self._changed_action(state)
        elif number in self._acting:
            self._actions[state.thread.process].forget()
        elif number in self._remapping:
            address, size, third, flags, new = (
                getattr(state.before, name) for name in registers.syscall_arguments[:5]
            )
            if number in self._placing:  # what it was given is a wish, and often 0
                result = getattr(state.thread.registers(), registers.syscall_result)
                address = address if result > _ERRORS else result
            ranges = [(address, address + size)]
            if number not in self._growing:
                executable = third & _PROT_EXEC or number in self._moving
            else:
                executable = False  # unless what is moved is
                if flags & _MREMAP_FIXED:
                    ranges.append((new, new + third))
            process = state.thread.process
            touched = [r for r in ranges if process.space.holds_code(*r)]
            if touched or executable:
                process.remapped()
            for start, end in touched:
                state.space.drop(start, end)

    # -- counting what was not executed as a whole

    def _uncount(self, state: TranslatedThread, block: Block, count: int, *, counted: bool) -> None:
        """The thread left `block` after its first `count` instructions."""
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
