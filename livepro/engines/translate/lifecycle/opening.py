"""Code caches opened: livepro's memory mapped into a process, a forked child's copied, areas handed out."""

from __future__ import annotations

import contextlib
import signal

from livepro.engines.base import EngineOptions
from livepro.engines.recording import ImageRecord
from livepro.engines.region import RegionWatch
from livepro.engines.translate import layout, memory
from livepro.engines.translate.codecache.code_cache import CodeCache
from livepro.engines.translate.threads.calling import TargetCalls
from livepro.engines.translate.threads.syscalls import SyscallMonitor
from livepro.engines.translate.threads.table import ProgramCounter, ThreadTable
from livepro.engines.translate.translator.arrivals import Arrivals
from livepro.engines.translate.translator.backend import WHEN_TOLD, Backend
from livepro.engines.translate.translator.emitted import Countdown
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.jvm.labels import Labeller
from livepro.linux import ptrace
from livepro.linux.vm import shares_memory
from livepro.tracee import TracedThread

_PLACES = 3  # attempts: mappings of the program's own may come in between


class CacheOpener:
    """Makes the code caches of processes."""

    def __init__(
        self,
        isa: Isa,
        backend: Backend,
        options: EngineOptions,
        region: RegionWatch | None,
        countdown: Countdown,
        table: ThreadTable,
        pc: ProgramCounter,
        calls: TargetCalls,
        syscalls: SyscallMonitor,
    ) -> None:
        self._isa = isa
        self._numbers = isa.syscalls.numbers
        self._backend = backend
        self._reader = backend.reader()
        self.compiler = None if backend.compiler is None else backend.compiler()
        self._arrivals = Arrivals()
        self._options = options
        self._region = region
        self._countdown = countdown
        self._table = table
        self._pc = pc
        self._calls = calls
        self._syscalls = syscalls

    def open(self, thread: TracedThread, record: ImageRecord) -> CodeCache:
        """Map livepro's memory into a process that has just begun an image. Raises LiveproError or OSError
        when that is refused; nothing is left there then."""
        # At the exec stop the kernel has yet to store that call's result: let it leave the call.
        mask = ptrace.signal_mask(thread.tid)
        ptrace.set_signal_mask(thread.tid, memory.HELD_OFF)
        traps: list[ptrace.SignalInfo] = []
        interrupted = memory.run_to_trap(ptrace.PTRACE_SINGLESTEP, thread.tid, traps)
        ptrace.set_signal_mask(thread.tid, mask)
        memory.send_again(self._numbers["tgkill"], thread.process.pid, thread.tid, traps)
        if interrupted:
            ptrace.call(ptrace.PTRACE_INTERRUPT, thread.tid)
        entry = self._pc.of(thread.tid)
        text = thread.read(entry, len(self._backend.gadget))
        thread.write(entry, self._backend.gadget)
        made: list[memory.SharedFile] = []
        try:
            return self._lay_out(thread, record, entry, made)
        except OSError:
            calls = self._calls.through(thread, entry)
            for file in made:
                calls.call(self._numbers["munmap"], file.base, file.size)
            raise
        finally:
            thread.write(entry, text)

    def open_running(self, thread: TracedThread, record: ImageRecord, labeller: Labeller | None) -> CodeCache:
        """Map livepro's memory into a process that runs, through one of its threads; `labeller` knows its
        generated code. Raises LiveproError or OSError when that is refused; nothing is left there then."""
        process = thread.process
        for attempt in range(1, _PLACES + 1):
            process.remapped()
            made: list[memory.SharedFile] = []
            try:
                space = self._lay_out(thread, record, self._pc.of(thread.tid), made)
                if labeller is not None:
                    space.generated.use(labeller)
                self._note_trap(thread, space)
                break
            except (OSError, LiveproError) as error:
                calls = self._calls.by(process, thread.tid)
                for file in made:
                    calls.call(self._numbers["munmap"], file.base, file.size)
                if not isinstance(error, FileExistsError) or attempt == _PLACES:
                    raise
        return space

    def _note_trap(self, thread: TracedThread, space: CodeCache) -> None:
        """Ask the kernel for the program's handler of SIGTRAP, which it will forget."""
        actions = self._syscalls.actions[thread.process]
        if not actions.caught(thread.tid, signal.SIGTRAP):
            return
        calls, at = self._calls.by(thread.process, thread.tid), layout.SCRATCH_ACTION
        there = space.areas.area_address(0) + at
        calls.call(self._numbers["rt_sigaction"], signal.SIGTRAP, 0, there, 8)
        actions.trap = space.areas.area(0)[at // 8 : at // 8 + 4].tobytes()

    def _lay_out(
        self, thread: TracedThread, record: ImageRecord, gadget: int, made: list[memory.SharedFile]
    ) -> CodeCache:
        """Map livepro's memory into a process, through a stopped thread of it whose code is near
        `gadget`; what has been mapped is added to `made`."""
        process, options = thread.process, self._options
        sharing = self._calls.sharing(thread, gadget)
        data = sharing.create(layout.DATA_SIZE, memory.data_address(process.space), executable=False)
        made.append(data)
        areas = sharing.create(layout.AREAS_SIZE, memory.areas_address(process.space), executable=False)
        made.append(areas)
        process.remapped()
        base = memory.free_near(process.space, gadget, layout.CACHE_SIZE)
        if base is None:
            raise LiveproError(
                f"There is no room for a code cache near {gadget:#x} in the program's address space.",
                "Use `--engine block` or `--engine step`.",
            )
        cache = sharing.create(layout.CACHE_SIZE, base, executable=True)
        watched = self._syscalls.watched
        emitter = self._backend.emitter(data.base, watched, self._countdown)
        if options.stream is not None:
            emitter.record(options.stream.image(record, self._isa).blocks, options.stream.filter)
        space = CodeCache(
            process,
            memory.ThreadAreas(data, [areas]),
            *(self._backend, self._reader, emitter, self._region, options.cache_size, self.compiler),
            self._arrivals,
        )
        space.memory.add_cache(cache)
        for number, when in watched.items():
            data.map[layout.WATCHED + number] = when != WHEN_TOLD
        process.remapped()
        self._table.spaces[process] = space
        return space

    def inherit(self, thread: TracedThread, space: CodeCache) -> CodeCache:
        """The code cache of a forked child: its parent's, if they share memory until an
        exec (vfork), else a copy."""
        process = thread.process
        if not self.shares_memory(process.pid, space.process.living):
            create = self._calls.sharing(thread, space.memory.gadget).create
            # One thread comes through a fork: one window of areas will do.
            data, areas = space.areas.data, space.areas.windows[0]
            memories = memory.ThreadAreas(
                create(data.size, data.base, executable=False, copy=(data, space.areas.used_data())),
                [create(areas.size, areas.base, executable=False, copy=(areas, []))],
            )
            guard = space.trust.guard
            with contextlib.nullcontext() if guard is None else guard.checking():
                files = [
                    create(g.file.size, g.file.base, executable=True, copy=(g.file, space.memory.used(g)))
                    for g in space.memory.files
                ]
            space = space.fork(process, memories, files)
        self._table.spaces[process] = space
        return space

    def shares_memory(self, one: int, other: int) -> bool:
        """Whether two processes, by pid, run in the same memory."""
        return bool(shares_memory(self._numbers["kcmp"], one, other))

    def take_area(self, thread: TracedThread, space: CodeCache) -> int:
        """The index of an unused area; a window more is mapped if there is none."""
        if space.areas.full:
            sharing = self._calls.sharing(thread, space.memory.gadget)
            place = memory.areas_address(thread.process.space)
            space.areas.windows.append(sharing.create(layout.AREAS_SIZE, place, executable=False))
            thread.process.remapped()
        return space.areas.take()
