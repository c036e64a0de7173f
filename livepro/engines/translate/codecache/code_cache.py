"""The code cache of one address space, put together from its parts.

Everything here is addresses and bytes in the shared memory; threads and
signals are the engine's business.
"""

from __future__ import annotations

from weakref import ReferenceType, ref

from livepro.engines.region import RegionWatch
from livepro.engines.translate.codecache.arenas import CacheMemory
from livepro.engines.translate.codecache.landings import HandlerEntries, Landings
from livepro.engines.translate.codecache.linker import Linker, Pending
from livepro.engines.translate.codecache.registry import BlockRegistry
from livepro.engines.translate.coherence.generated import GeneratedCode
from livepro.engines.translate.coherence.invalidating import Invalidator
from livepro.engines.translate.coherence.region_stops import RegionStops
from livepro.engines.translate.coherence.trust import Trust
from livepro.engines.translate.flush.flushing import Flusher
from livepro.engines.translate.memory import SharedFile, ThreadAreas
from livepro.engines.translate.translator.answering import NewCode
from livepro.engines.translate.translator.arrivals import Arrivals
from livepro.engines.translate.translator.backend import Backend, Compiler, Emitter, Reader
from livepro.engines.translate.translator.building import BlockBuilder
from livepro.engines.translate.translator.changing import ChangingCode
from livepro.engines.translate.translator.compiled import CompiledBuilder
from livepro.engines.translate.translator.liveness import Liveness
from livepro.engines.translate.translator.tables import TABLE_SIZE, JumpTables
from livepro.engines.translate.translator.text import ProgramText
from livepro.engines.translate.translator.writing import FragmentWriter
from livepro.tracee import TracedProcess


class CodeCache:
    """All fragments of one address space, and the threads' areas beside them.

    `memory` is where fragments lie, `registry` which blocks they are of, `linker`, `landings` and `handlers`
    lead to them, `builder` makes them, `new_code` many at once; `generated` and `trust` know of code that
    changes, `tables` of jump tables, `regions` of the places where a region begins or ends; `invalidator`
    puts single fragments out of force, `flusher` all of them. A forked child's was copied from its `parent`.
    """

    def __init__(
        self,
        process: TracedProcess,
        areas: ThreadAreas,
        backend: Backend,
        reader: Reader,
        emitter: Emitter,
        region: RegionWatch | None = None,
        size: int | None = None,
        compiler: Compiler | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        self.process = process
        self.parent: ReferenceType[CodeCache] | None = None
        self.areas = areas
        self.emitter = emitter
        self._backend = backend
        self._reader = reader
        self._size = size
        self._compiler = compiler
        self._arrivals = arrivals or Arrivals()
        self._pending = pending = Pending()
        # Two of the parts need what is made after them, when they are used and not before.
        self.memory = memory = CacheMemory(
            areas, backend, emitter, lambda cache, row: self.registry.recall(cache, row)
        )
        self.generated = generated = GeneratedCode(process, lambda pc: self.invalidator.forget(pc))
        self._text = text = ProgramText(process, backend, reader, region)
        self.registry = registry = BlockRegistry(process, areas, memory, generated, backend, reader, emitter)
        self.linker = linker = Linker(memory, registry, pending, backend)
        self.landings = landings = Landings(memory, registry, backend, emitter)
        self.handlers = HandlerEntries(memory, linker, backend)
        self.trust = trust = Trust(generated, backend)
        self.invalidator = Invalidator(memory, registry, linker, landings, trust, generated, process)
        self.regions = regions = RegionStops(
            process, memory, registry, linker, trust, backend, region, self.invalidator.forget
        )
        self.tables = JumpTables(process, memory, linker, backend)
        self._liveness = Liveness(registry, text, reader)
        writer = FragmentWriter(
            *(
                memory,
                registry,
                linker,
                pending,
                self.tables,
                self._liveness,
                trust,
                regions,
                backend,
                emitter,
            )
        )
        compiled = CompiledBuilder(
            *(process, areas, memory, registry, linker, landings, pending, emitter),
            compiler if region is None else None,
            self._arrivals,
            ChangingCode(process, memory, registry, generated, trust),
        )
        self.builder = BlockBuilder(
            *(process, text, generated, memory, registry, linker, landings, writer, self.invalidator),
            *(regions, pending, backend, reader, emitter, compiled),
        )
        self.new_code = NewCode(memory, registry, emitter, compiled, compiler, self.builder.follow)
        self.flusher = Flusher(memory, registry, linker, trust, backend, size, self._forget_all)

    def fork(self, process: TracedProcess, areas: ThreadAreas, files: list[SharedFile]) -> CodeCache:
        """The same for a forked child, whose memory holds copies of the files."""
        child = CodeCache(
            process,
            areas,
            self._backend,
            self._reader,
            self.emitter,
            self.regions.region,
            self._size,
            self._compiler,
            self._arrivals,
        )
        child.parent = ref(self)
        self.memory.fork_into(child.memory, files)
        self.registry.fork_into(child.registry)
        self.linker.fork_into(child.linker)
        self.landings.fork_into(child.landings)
        self.handlers.fork_into(child.handlers)
        self.regions.fork_into(child.regions)
        self.tables.fork_into(child.tables)
        self._liveness.fork_into(child._liveness)
        self.generated.fork_into(child.generated)
        return child

    def drop(self, start: int, end: int) -> None:
        """Forget the blocks whose code overlaps [start, end), or that branch by a table there: it is about to
        be something else."""
        for code in (*self.tables.drop(start, end), (start, end)):
            self.invalidator.drop(*code)
        self._liveness.forget()
        self._text.forget()
        self.builder.forget_mapping()

    def close(self) -> None:
        """All has been written down: give up what is large, as the rest waits for the cycle collector."""
        for cache in self.memory.all_caches:
            cache.compiled = cache.text = cache.changing = None

    def check_tables(self) -> None:
        """Give up the tables that have been changed by threads which were not watched."""
        for address in self.tables.changed():
            self.drop(address, address + TABLE_SIZE)

    def _forget_all(self) -> None:
        """A flush has begun: no part may know of a fragment any more."""
        self._text.forget()
        self._reader.trim()
        self.generated.begin_anew()
        self.trust.waiting.clear()
        self.landings.flush()
        self.regions.flush()
        self.tables.flush()
        self._liveness.forget()
        self._pending.clear()
        self.builder.forget_mapping()
        self.handlers.link_again()
