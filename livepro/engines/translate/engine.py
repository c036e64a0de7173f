"""The translate engine: threads run from a code cache that counts, and stop only for what is new.

A thread's program counter is in a cache while it runs. It is brought back to
the program's own address whenever the program, or the kernel on its behalf,
could see it: in signal frames, and around instructions that are stepped
natively at their own place (system calls that change mappings, traps, far
transfers).
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
from enum import Enum
from typing import Any

import numpy as np

from livepro.engines.base import Engine, EngineOptions, run_free
from livepro.engines.recording import ImageRecord, ThreadTally
from livepro.engines.translate import layout, memory
from livepro.engines.translate.intervals import IntervalClock
from livepro.engines.translate.space import Block, CodeSpace, Place, Stop
from livepro.engines.translate.x86_64 import encode
from livepro.engines.translate.x86_64.emitter import Emitter, canonical, undo_stack
from livepro.engines.translate.x86_64.facts import FactTable
from livepro.isa.base import Isa, Quirk
from livepro.linux import proc, ptrace
from livepro.linux.wait import TRAP_STATUS, WALL
from livepro.model import Flow
from livepro.tracee import TracedProcess, TracedThread
from livepro.tracee.tracer import WAIT_FLAGS

_HANDLER_ENTERED = signal.SIGTRAP  # si_code of ptrace_notify in signal_setup_done (kernel/signal.c)
_TRAP_BRKPT = 1  # a step reported on the way out of a system call: nothing was executed since
_RESTARTS = frozenset((1 << 64) - code for code in (512, 513, 514, 516))  # include/linux/errno.h
_FAULTS = frozenset((signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP))
_PROT_EXEC = 4
_ADDRESS_MASK = (1 << 64) - 1
_KCMP = 312  # __NR_kcmp, arch/x86/entry/syscalls/syscall_64.tbl
_KCMP_VM = 1  # include/uapi/linux/kcmp.h


class Mode(Enum):
    """What a thread's next SIGTRAP stop means."""

    RUNNING = 0  # a stop in the cache
    NATIVE = 1  # one instruction was stepped at its own address
    DELIVERING = 2  # a signal handler was entered
    SETTLING = 3  # one step further towards a boundary, with a signal in hand


class TranslatedThread:
    """One thread: its area, its mode, and what it is in the middle of."""

    __slots__ = ("area", "at", "before", "clock", "held", "mode", "native", "program_gs", "record", "space")
    __slots__ += ("tally", "thread", "words")

    def __init__(
        self, thread: TracedThread, record: ImageRecord, tally: ThreadTally, space: CodeSpace, area: int
    ):
        self.thread = thread
        self.record = record
        self.tally = tally
        self.space = space
        self.area = area
        self.words = space.memory.area(area)
        self.mode = Mode.RUNNING
        self.native: Stop | None = None
        self.at = 0
        self.before: Any = None
        self.held: tuple[int, Any] | None = None
        self.program_gs = 0
        self.clock: IntervalClock | None = None


class TranslateEngine(Engine):
    """See `livepro.engines.base.Engine`."""

    name = "translate"
    notices_children = True

    def __init__(self, isa: Isa, options: EngineOptions) -> None:
        super().__init__(isa, options)
        layout_ = isa.registers
        read_pc = ptrace.program_counter_reader(layout_.pc_user_offset, layout_.structure, layout_.pc)
        self._pc = lambda tid: read_pc(tid) & _ADDRESS_MASK
        self._pc_at = layout_.pc_user_offset
        self._gs_at = layout_.structure.gs_base.offset
        self._rcx_at = layout_.structure.rcx.offset
        self._numbers = dict(isa.syscalls.numbers)
        named = isa.syscalls.named
        self._remapping = named(
            "mmap", "munmap", "mprotect", "pkey_mprotect", "mremap", "shmat", "shmdt", "remap_file_pages"
        )
        self._moving = named("mremap", "shmat")
        self._watched = self._remapping | named("rt_sigreturn", "execve", "execveat", "arch_prctl")
        self._facts = FactTable()
        self._states: dict[int, TranslatedThread] = {}
        self._spaces: dict[TracedProcess, CodeSpace] = {}
        self._inherited: dict[TracedProcess, CodeSpace] = {}
        self._free_areas: dict[CodeSpace, list[int]] = {}
        self._finished = 0
        self.stops = 0

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

    def _watch(self) -> None:
        threads, dispatch, states = self.tracer.threads, self.tracer.dispatch, self._states
        wait = os.waitpid
        running = Mode.RUNNING
        while threads or self.tracer.live:
            try:
                tid, status = wait(-1, WAIT_FLAGS)
            except ChildProcessError:
                break
            self.stops += 1
            if status == TRAP_STATUS:
                state = states.get(tid)
                if state is not None and state.mode is running:
                    self._stopped_in_cache(state)
                    continue
            dispatch(tid, status)
            self.report_progress()

    def _stopped_in_cache(self, state: TranslatedThread) -> None:
        tid = state.thread.tid
        pc = self._pc(tid)
        target = state.space.exits.get(pc - 1)
        if target is not None:
            self._enter(state, target)
            return
        stop = state.space.stops.get(pc - 1)
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
        elif kind == "changed":
            self._changed(state, stop)
        elif kind == "budget":
            self._budget_spent(state, stop)
            self._go(state, stop.resume)

    def _go(self, state: TranslatedThread, address: int) -> None:
        """Run on from a cache address."""
        tid = state.thread.tid
        state.mode = Mode.RUNNING
        ptrace.raw(6, tid, self._pc_at, address)  # POKEUSER
        ptrace.raw(7, tid, None, None)  # CONT

    def _enter(self, state: TranslatedThread, pc: int) -> None:
        """Run on from the program's address `pc`, where a block starts."""
        block = state.space.translate(pc) if self._room(state, pc) else None
        if block is None:
            self._step_natively(state, pc)
        else:
            self._go(state, block.start)

    def _missed(self, state: TranslatedThread) -> None:
        """An indirect branch to an address that the lookup table does not have."""
        tid = state.thread.tid
        target = ptrace.peek_user(tid, self.isa.registers.structure.rax.offset)
        space = state.space
        block = space.translate(target, landing=True) if self._room(state, target) else None
        if block is not None:
            self._go(state, space.landings[target])
            return
        registers = state.thread.registers()
        self._give_back(state, registers)
        if not canonical(target):
            # The processor faults before such a branch retires: undo what it did, and
            # let it fault at its own place.
            source = space.by_slot[int(state.words[layout.SITE // 8]) & 0xFFFF_FFFF]
            registers.rsp += undo_stack(source.source.facts[-1])
            state.native = Stop("native", source, 0, len(source.source.facts) - 1, 0, True)
            target = source.source.pc + source.source.offsets[-2]
        state.thread.set_registers(registers)
        self._step_natively(state, target)

    @staticmethod
    def _budget_spent(state: TranslatedThread, stop: Stop) -> None:
        """An interval of the thread's basic block vectors ends in the stop's block."""
        assert stop.block is not None
        assert state.clock is not None
        state.clock.ran_out(stop.block.slot)

    def _changed(self, state: TranslatedThread, stop: Stop) -> None:
        """The program has changed code that was translated."""
        registers = state.thread.registers()
        self._give_back(state, registers)
        state.thread.set_registers(registers)
        self._enter(state, self._forget(state, stop))

    def _forget(self, state: TranslatedThread, stop: Stop) -> int:
        """Drop a changed block; returns the program's address that the thread is at."""
        block = stop.block
        assert block is not None
        self._uncount(state, block, stop.index, counted=stop.counted)
        if state.space.find(block.source.pc) is block:
            state.space.forget(block)
        return block.source.pc + block.source.offsets[stop.index]

    @staticmethod
    def _give_back(state: TranslatedThread, registers: Any) -> None:
        """Restore the registers that a lookup borrows."""
        registers.rax = int(state.words[layout.SPILL[0] // 8])
        registers.rcx = int(state.words[layout.SPILL[1] // 8])

    def _room(self, state: TranslatedThread, pc: int) -> bool:
        """See to it that there is a cache near `pc`. False where nothing is mapped."""
        space = state.space
        if pc in space.blocks or space.cache_for(pc) is not None:
            return True
        process = state.thread.process
        mapping = process.space.find(pc)
        if mapping is None:
            process.remapped()
            mapping = process.space.find(pc)
        if mapping is None or not mapping.executable or not mapping.readable:
            return False  # the vsyscall page, or nothing to execute
        sharing = self._sharing(state.thread, space.gadget)
        base = memory.free_near(process.space, pc, layout.CACHE_SIZE)
        space.add_cache(sharing.create(layout.CACHE_SIZE, base, executable=True))
        process.remapped()
        return True

    def _sharing(self, thread: TracedThread, gadget: int) -> memory.Sharing:
        """Means to map more of livepro's memory, through a stopped thread."""
        injector = memory.Injector(thread, self.isa.registers, gadget)
        return memory.Sharing(injector, self._numbers, thread.registers().rsp - 1024)

    # -- native steps

    def _begin_native(self, state: TranslatedThread, stop: Stop) -> None:
        """Step the instruction that the stop stands for at its own address."""
        block = stop.block
        assert block is not None
        state.native = stop
        self._step_natively(state, block.source.pc + block.source.offsets[stop.index])

    def _step_natively(self, state: TranslatedThread, pc: int) -> None:
        """Execute one instruction at the program's address `pc`."""
        self._prepare_native(state, pc)
        ptrace.call(ptrace.PTRACE_SINGLESTEP, state.thread.tid)

    def _prepare_native(self, state: TranslatedThread, pc: int) -> None:
        """Put a thread at the program's address `pc`, with its own gs base, for one step.

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
            state.at = int.from_bytes(thread.read(registers.rsp, 8), "little")
        registers.rip = pc
        registers.gs_base = state.program_gs
        thread.set_registers(registers)
        ptrace.poke_user(thread.tid, self._gs_at, state.program_gs)
        state.before = registers
        state.mode = Mode.NATIVE

    def _end_native(self, state: TranslatedThread) -> None:
        """The instruction stepped natively has been executed."""
        thread = state.thread
        pc = self._pc(thread.tid)
        stop, state.native = state.native, None
        if stop is None:
            # Not known when it was stepped: known now, or it could not have run.
            block = state.space.translate(state.at)
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
            if pc == source.pc + source.offsets[executed] and state.space.find(source.pc) is block:
                self._go(state, stop.resume)
                return
            self._uncount(state, block, executed, counted=stop.counted)
        self._enter(state, pc)

    def _leave_native(self, state: TranslatedThread) -> None:
        """Give the thread its area back."""
        tid = state.thread.tid
        state.program_gs = ptrace.peek_user(tid, self._gs_at)
        ptrace.poke_user(tid, self._gs_at, state.space.memory.area_address(state.area))

    def _after_system_call(self, state: TranslatedThread, *, returned: bool) -> None:
        if returned:  # not by sigreturn, whose registers are all the program's own
            self.isa.after_step(Quirk.SYSCALL, state.thread)
        registers = self.isa.registers
        number = getattr(state.before, registers.syscall_number)
        if number in self._remapping:
            address, size, protection = (
                getattr(state.before, name) for name in registers.syscall_arguments[:3]
            )
            process = state.thread.process
            touched = any(
                m.executable and m.start < address + size and address < m.end for m in process.space.mappings
            )
            if touched or protection & _PROT_EXEC or number in self._moving:
                process.remapped()
            if touched:
                state.space.drop(address, address + size)

    # -- counting what was not executed as a whole

    def _uncount(self, state: TranslatedThread, block: Block, count: int, *, counted: bool) -> None:
        """The thread left `block` after its first `count` instructions."""
        tally = state.tally
        whole = count == len(block.source.facts)
        tally.entries[block.slot] += whole - counted
        if count and not whole:
            tally.partial[block.slot, count] += 1
        if state.clock is not None:
            state.clock.adjust(block.slot, count, len(block.source.facts) if counted else 0)

    # -- stops that the tracer tells of

    def trapped(self, thread: TracedThread) -> None:
        state = self._states.get(thread.tid)
        if state is None:
            run_free(thread)
            return
        info = ptrace.signal_info(thread.tid)
        kind = info.code if info is not None else 0
        if state.mode is Mode.DELIVERING and kind == _HANDLER_ENTERED:
            # A trap that finds SIGTRAP blocked resets its action (force_sig_info_to_task in
            # kernel/signal.c): a handler of the program's own would be lost by a stop.
            ptrace.unblock(thread.tid, signal.SIGTRAP)
            self._leave_native(state)
            self._enter(state, self._pc(thread.tid))
        elif state.mode is Mode.SETTLING:
            self._settled(state)
        elif kind in (1, 2) and state.mode in (Mode.NATIVE, Mode.DELIVERING):
            if self._pc(thread.tid) == state.at:
                # Nothing executed yet (on the way out of a system call), or one iteration of a rep.
                ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid)
            elif state.mode is Mode.DELIVERING:
                state.native = None
                self._end_native(state)
            elif state.native is not None and state.native.raises:
                self.signalled(thread, signal.SIGTRAP)
            else:
                self._end_native(state)
        else:
            self.signalled(thread, signal.SIGTRAP)

    def signalled(self, thread: TracedThread, number: int) -> None:
        state = self._states.get(thread.tid)
        if state is None:
            run_free(thread, number)
            return
        if state.mode is Mode.SETTLING:
            # A fault on the way to a boundary is the program's own, and comes first.
            self._requeue(state)
        caught = self._caught(thread, number)
        if state.mode in (Mode.NATIVE, Mode.DELIVERING):
            self._signalled_natively(state, number, caught)
            return
        if not caught:
            ptrace.call(ptrace.PTRACE_CONT, thread.tid, 0, number)
            return
        info = ptrace.signal_info(thread.tid)
        fault = number in _FAULTS and info is not None and info.code > 0
        state.held = (number, info)
        self._deliver_or_settle(state, fault=fault)

    def _caught(self, thread: TracedThread, number: int) -> bool:
        """Whether the program has a handler for the signal."""
        mask = int(proc.status_field(thread.tid, "SigCgt"), 16)
        return bool(mask >> number - 1 & 1)

    def _requeue(self, state: TranslatedThread) -> None:
        """Send the signal in hand once more, to be delivered later."""
        if state.held is not None:
            ctypes.CDLL(None).syscall(
                234, state.thread.process.pid, state.thread.tid, state.held[0]
            )  # tgkill
            state.held = None

    def _deliver_or_settle(self, state: TranslatedThread, *, fault: bool = False) -> None:
        """Deliver the signal in hand if the thread is at a boundary, else step on."""
        thread = state.thread
        pc = self._pc(thread.tid)
        place = state.space.locate(pc)
        if place is None or not (place.exact or fault):
            state.mode = Mode.SETTLING
            ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid)
            return
        registers = thread.registers()
        block = place.block
        within = pc - block.start
        if place.at_rep:
            self._refund(state, place, registers)
        if within in block.details.pushes:
            self._give_back(state, registers)
        if fault and state.held is not None:
            self._place_fault(state.held[1], place.pc, pc)
        if place.behind_syscall:
            registers.rcx = place.pc
        self._uncount(state, block, place.index, counted=place.counted)
        self._deliver(state, registers, place.pc)

    @staticmethod
    def _place_fault(info: ptrace.SignalInfo, pc: int, copied: int) -> None:
        """A fault that names the instruction (SIGFPE, SIGILL) names the program's."""
        if info.address == copied:
            info.address = pc

    def _deliver(self, state: TranslatedThread, registers: Any, pc: int) -> None:
        """Let the kernel build the signal frame with the program's own registers."""
        assert state.held is not None
        number, info = state.held
        state.held = None
        thread = state.thread
        registers.rip = pc
        thread.set_registers(registers)
        ptrace.poke_user(thread.tid, self._gs_at, state.program_gs)
        if info is not None:
            ptrace.call(0x4203, thread.tid, 0, ctypes.addressof(info))  # SETSIGINFO
        state.mode = Mode.DELIVERING
        state.at = pc
        state.before = registers
        ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)

    def _settled(self, state: TranslatedThread) -> None:
        """One step towards a boundary has been made, or a stop been run into."""
        tid = state.thread.tid
        pc = self._pc(tid)
        stop = state.space.stops.get(pc - 1)
        if stop is None and pc - 1 in state.space.exits:
            stop = Stop("exit", None, state.space.exits[pc - 1])
        info = ptrace.signal_info(tid)
        if stop is not None and info is not None and info.code == 0x80:  # SI_KERNEL: an int3 was executed
            held = state.held
            block = None
            target = stop.pc
            if stop.kind == "miss":
                registers = state.thread.registers()
                target = registers.rax
                self._give_back(state, registers)
                state.thread.set_registers(registers)
            elif stop.kind == "changed":
                registers = state.thread.registers()
                self._give_back(state, registers)
                state.thread.set_registers(registers)
                target = self._forget(state, stop)
            elif stop.kind == "native":
                # The boundary is the native instruction itself.
                block = stop.block
                assert block is not None
                registers = state.thread.registers()
                state.held = held
                self._uncount(state, block, stop.index, counted=stop.counted)
                self._deliver(state, registers, block.source.pc + block.source.offsets[stop.index])
                return
            elif stop.kind == "budget":
                self._budget_spent(state, stop)
                ptrace.poke_user(tid, self._pc_at, stop.resume)
                self._deliver_or_settle(state)
                return
            # At an exit: the boundary is the target.
            self._deliver(state, state.thread.registers(), target)
            return
        self._deliver_or_settle(state)

    def _refund(self, state: TranslatedThread, place: Place, registers: Any) -> None:
        """Iterations charged for a rep instruction that has them yet to do."""
        source = place.block.source
        encoding = source.code[source.offsets[place.index] : source.offsets[place.index + 1]]
        at = layout.REP_ITERATIONS // 8
        state.words[at] -= np.uint64(self.isa.rep_count(encoding, registers))

    def _signalled_natively(self, state: TranslatedThread, number: int, caught: bool) -> None:
        """A signal at an instruction that is being stepped at its own address."""
        thread = state.thread
        if not caught:
            ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)
            return
        pc = self._pc(thread.tid)
        stop, state.native = state.native, None
        if stop is not None and stop.block is not None:
            self._uncount(state, stop.block, stop.index + (pc != state.at), counted=stop.counted)
        state.mode = Mode.DELIVERING
        state.at = pc
        ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid, 0, number)

    def interrupted(self, thread: TracedThread) -> None:
        pass

    def resume(self, thread: TracedThread, number: int = 0) -> None:
        state = self._states.get(thread.tid)
        request = (
            ptrace.PTRACE_CONT if state is None or state.mode is Mode.RUNNING else ptrace.PTRACE_SINGLESTEP
        )
        ptrace.call(request, thread.tid, 0, number)

    # -- lives

    def thread_started(self, thread: TracedThread) -> None:
        process = thread.process
        record = self.records[process]
        tally = ThreadTally(thread, record.store, None)
        record.tallies.append(tally)
        if not process.measured:
            return
        space = self._spaces.get(process)
        first = space is None
        if space is None:
            inherited = self._inherited.pop(process, None)
            space = self._open(thread) if inherited is None else self._inherit(thread, inherited)
        area = self._take_area(thread, space)
        state = TranslatedThread(thread, record, tally, space, area)
        state.words[: layout.COUNTERS // 8] = 0
        if self.options.cut is not None:
            state.clock = IntervalClock(state.words, tally, space, self.options.cut)
        self._states[thread.tid] = state
        pc = self._pc(thread.tid)
        place = space.locate(pc)
        if place is not None:
            # Born of a system call in the cache: it goes on behind it.
            pc = place.pc
            ptrace.poke_user(thread.tid, self._rcx_at, pc)
        ptrace.poke_user(thread.tid, self._gs_at, space.memory.area_address(area))
        block = space.translate(pc) if first or self._room(state, pc) else None
        if block is None:
            self._prepare_native(state, pc)  # it will fault there
        else:
            ptrace.poke_user(thread.tid, self._pc_at, block.start)

    def process_started(self, process: TracedProcess, parent: TracedProcess | None) -> None:
        super().process_started(process, parent)
        if parent is not None and parent in self._spaces:
            self._inherited[process] = self._spaces[parent]

    def _inherit(self, thread: TracedThread, space: CodeSpace) -> CodeSpace:
        """The code space of a forked child: its parent's, if they share memory until an
        exec (vfork), else a copy."""
        process = thread.process
        if not self._shares_memory(process.pid, space.process.pid):
            sharing = self._sharing(thread, space.gadget)
            create = sharing.create
            # One thread comes through a fork: one window of areas will do.
            data, areas = space.memory.data, space.memory.windows[0]
            everything = [(0, layout.DATA_SIZE)]
            memories = memory.ThreadAreas(
                create(data.size, data.base, executable=False, copy=(data, everything)),
                [create(areas.size, areas.base, executable=False, copy=(areas, []))],
            )
            caches = [
                create(c.file.size, c.base, executable=True, copy=(c.file, space.used(c)))
                for c in space.caches
            ]
            space = space.fork(process, memories, caches)
            self._free_areas[space] = []
        self._spaces[process] = space
        return space

    def let_go(self, tid: int, parent: TracedProcess) -> bool:
        """Put a child that runs from its copy of the cache back into its own code. One that
        shares its parent's memory stays translated until it execs."""
        space = self._spaces.get(parent)
        if space is None:
            return True
        if self._shares_memory(tid, parent.pid):
            return False
        structure = self.isa.registers.structure
        registers = ptrace.get_registers(tid, structure)
        place = space.locate(registers.rip)
        if place is not None:
            registers.rip = registers.rcx = place.pc
            ptrace.set_registers(tid, registers)
        ptrace.poke_user(tid, self._gs_at, 0)
        return True

    @staticmethod
    def _shares_memory(one: int, other: int) -> bool:
        return bool(ctypes.CDLL(None).syscall(_KCMP, one, other, _KCMP_VM, 0, 0) == 0)

    def _take_area(self, thread: TracedThread, space: CodeSpace) -> int:
        """The index of an unused area; a window more is mapped if there is none."""
        free = self._free_areas[space]
        if free:
            return free.pop()
        if space.users == space.memory.room:
            sharing = self._sharing(thread, space.gadget)
            place = memory.areas_address(thread.process.space)
            space.memory.windows.append(sharing.create(layout.AREAS_SIZE, place, executable=False))
            thread.process.remapped()
        space.users += 1
        return space.users - 1

    def _open(self, thread: TracedThread) -> CodeSpace:
        """Map livepro's memory into a process that has just begun an image."""
        process = thread.process
        # At the exec stop the kernel has yet to store that call's result: let it leave the call.
        ptrace.call(ptrace.PTRACE_SINGLESTEP, thread.tid)
        os.waitpid(thread.tid, WALL)
        registers = thread.registers()
        text = thread.read(registers.rip, 3)
        thread.write(registers.rip, encode.SYSCALL + encode.INT3)
        try:
            sharing = self._sharing(thread, registers.rip)
            data = sharing.create(layout.DATA_SIZE, memory.data_address(process.space), executable=False)
            areas = sharing.create(layout.AREAS_SIZE, memory.areas_address(process.space), executable=False)
            process.remapped()
            base = memory.free_near(process.space, registers.rip, layout.CACHE_SIZE)
            cache = sharing.create(layout.CACHE_SIZE, base, executable=True)
        finally:
            thread.write(registers.rip, text)
        emitter = Emitter(data.base, self._watched, self._facts, budgeted=self.options.cut is not None)
        space = CodeSpace(process, memory.ThreadAreas(data, [areas]), emitter)
        space.add_cache(cache)
        for number in self._watched:
            data.map[layout.WATCHED + number] = 1
        process.remapped()
        self._spaces[process] = space
        self._free_areas[space] = []
        return space

    def exiting(self, thread: TracedThread, in_exec: bool) -> None:
        state = self._states.get(thread.tid)
        if state is None:
            return
        if state.mode is Mode.RUNNING and not in_exec:
            pc = self._pc(thread.tid)
            place = state.space.locate(pc)
            if place is not None:
                if place.at_rep:
                    self._refund(state, place, thread.registers())
                self._uncount(state, place.block, place.index, counted=place.counted)
        elif state.native is not None and state.native.block is not None:
            stop = state.native
            executed = stop.index + (in_exec or self._pc(thread.tid) != state.at)
            self._uncount(state, stop.block, executed, counted=stop.counted)
        self._close(state)

    def gone(self, thread: TracedThread) -> None:
        state = self._states.get(thread.tid)
        if state is not None:
            self._close(state)

    def _close(self, state: TranslatedThread) -> None:
        """Take a thread's counters down and give its area back."""
        del self._states[state.thread.tid]
        self._collect(state)
        state.words[: layout.COUNTERS // 8 + len(state.space.sources)] = 0
        self._free_areas[state.space].append(state.area)

    @staticmethod
    def _collect(state: TranslatedThread) -> None:
        if state.clock is not None:
            state.clock.finish()
        first = layout.COUNTERS // 8
        counters = state.words[first : first + len(state.space.sources)]
        tally = state.tally
        for slot in np.flatnonzero(counters).tolist():
            tally.entries[slot] += int(counters[slot])
        tally.rep_iterations += int(state.words[layout.REP_ITERATIONS // 8])

    # -- what the engine delivers

    def process_ended(self, process: TracedProcess) -> None:
        space = self._spaces.pop(process, None)
        if space is not None:
            self._write_down(self.records[process], space)

    @staticmethod
    def _write_down(record: ImageRecord, space: CodeSpace) -> None:
        """Turn counter slots into rows of the image's own table."""
        used: set[int] = set()
        for tally in record.tallies:
            used.update(slot for slot, count in tally.entries.items() if count)
            used.update(slot for slot, _ in tally.partial)
            for interval in tally.intervals:
                used.update(interval.rows.tolist())
        rows = {
            slot: record.store.append(
                space.sources[slot].pc,
                space.sources[slot].code,
                space.sources[slot].offsets,
                space.mappings[slot],
            )
            for slot in sorted(used)
        }
        for tally in record.tallies:
            tally.rename(rows)

    @property
    def instructions(self) -> int:
        live = 0
        for state in self._states.values():
            lengths = state.space.lengths()
            first = layout.COUNTERS // 8
            live += int(state.words[first : first + len(lengths)].astype(np.int64) @ lengths)
        return live + sum(
            tally.instructions for image in self.images for tally in image.tallies if len(image.store)
        )
