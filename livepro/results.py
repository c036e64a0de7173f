"""From an engine's records to the model: tables described and symbolised, counts as arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt

from livepro.described import Descriptions
from livepro.engines.alike import Alike
from livepro.engines.control import SnapshotRecord
from livepro.engines.recording import BlockStore, ImageRecord, ThreadTally
from livepro.engines.window import Counts, Partial
from livepro.isa.base import Isa
from livepro.isa.kinds import Kinds, restore
from livepro.jvm.vmstructs import LIBRARY
from livepro.linux.symbols import Symbolizer
from livepro.model import (
    BlockTable,
    CodeLabel,
    Origin,
    ProcessResult,
    Snapshot,
    SnapshotThread,
    ThreadCounts,
)
from livepro.model.label import generated, outside
from livepro.names.demangle import Demangler


def build_processes(
    images: Sequence[ImageRecord], isa: Isa, kept: Path | None = None, *, demangle: bool = True
) -> tuple[ProcessResult, ...]:
    """The model of every image: tables described and symbolised, counts as arrays. With `demangle`
    the functions of C++ and Rust are called as in their sources."""
    symbolizer = Symbolizer(kept=kept, spelled=Demangler() if demangle else None)
    tables = _Tables(isa, kept, symbolizer)
    alike = Alike()
    return tuple(
        ProcessResult(
            pid=image.process.pid,
            ppid=image.process.ppid,
            image=image.process.image,
            command=image.process.command,
            machine=isa.name,
            exit=image.process.exit,
            table=tables.of(image),
            threads=tuple(_counts(tally, len(image.store), alike) for tally in image.tallies),
        )
        for image in images
    )


def reported(images: Sequence[ImageRecord], snapshots: Sequence[SnapshotRecord]) -> list[ImageRecord]:
    """The images without the threads that ended before the last reset, and without those that
    then have none; but with what a snapshot has counts of."""
    out = []
    for image in images:
        image.tallies = [
            tally
            for tally in image.tallies
            if not tally.window.over or any(tally in snapshot.counts for snapshot in snapshots)
        ]
        if image.tallies:
            out.append(image)
    return out


def build_snapshots(
    snapshots: Sequence[SnapshotRecord], images: Sequence[ImageRecord]
) -> tuple[Snapshot, ...]:
    """The model of the snapshots of a run with these images."""
    places = {
        tally: (process, thread)
        for process, image in enumerate(images)
        for thread, tally in enumerate(image.tallies)
    }
    return tuple(
        Snapshot(
            snapshot.label,
            snapshot.seconds,
            snapshot.resets,
            tuple(
                _snapshot_thread(places[tally], snapshot.counts[tally])
                for tally in sorted(snapshot.counts, key=places.__getitem__)
            ),
        )
        for snapshot in snapshots
    )


def _snapshot_thread(place: tuple[int, int], counts: Counts) -> SnapshotThread:
    entries = counts.times.astype(np.uint64)
    return SnapshotThread(*place, counts.rows, entries, _partial(counts.partial), counts.rep_iterations)


def _forms(store: BlockStore, kind_of: Kinds) -> npt.NDArray[np.uint32]:
    """The kind of each instruction of each block, block after block."""
    parts: list[npt.NDArray[np.uint32]] = []
    row = 0
    for known in (*store.known, None):
        end = len(store) if known is None else known.first
        form: list[int] = []
        for code, sizes in zip(store.codes[row:end], store.sizes[row:end], strict=True):
            form += kind_of.split(code, sizes)
        parts.append(np.array(form, np.uint32))
        if known is not None:
            met, where = np.unique(known.kinds, return_inverse=True)
            numbers = [kind_of.number(restore(known.instructions[kind])) for kind in met.tolist()]
            parts.append(np.array(numbers, np.uint32)[where])
            row = known.first + known.count
    return np.concatenate(parts)


class _Tables:
    """The block tables of a run's images. What images that executed the same code have in common is made
    once, and is one."""

    def __init__(self, isa: Isa, kept: Path | None, symbolizer: Symbolizer) -> None:
        self._isa = isa
        self._kept = kept
        self._symbolizer = symbolizer
        self._made: dict[Hashable, BlockTable] = {}

    def of(self, image: ImageRecord) -> BlockTable:
        """The table of an image."""
        store = labelled(image)
        # Stores of which nothing changes any more have the same lists (see `BlockStore.share`).
        key = (
            *(id(store.codes), id(store.sizes), id(store.modules), id(store.offsets)),
            image.process.command[:1],
        )
        if key in self._made and not store.labels:
            return self._made[key].moved(store.addresses)
        descriptions = Descriptions(
            self._isa.describe, (self._isa.name, *image.process.command[:1]), self._kept
        )
        table = build_table(store, descriptions, self._symbolizer)
        if not store.labels:
            self._made[key] = table
        return table


def build_table(store: BlockStore, describe: Descriptions, symbolizer: Symbolizer) -> BlockTable:
    """A store as a block table."""
    kinds = Kinds(describe)
    form = _forms(store, kinds)
    describe.keep()
    functions = [""] * len(store)
    offsets = np.array(store.offsets, np.uint64)
    modules = np.array(store.modules, object)
    for module in set(store.modules):
        rows = np.flatnonzero(modules == module)
        names, addresses = symbolizer.lookup(module, offsets[rows])
        offsets[rows] = addresses
        for row, name in zip(rows.tolist(), names, strict=True):
            functions[row] = name
    labels = code_labels(store.modules, store.labels)
    for row, label in store.labels.items():
        functions[row] = symbolizer.spelled(label.name) or functions[row]
    return BlockTable(
        address=np.array(store.addresses, np.uint64),
        size=np.array([len(code) for code in store.codes], np.uint32),
        length=np.array(store.lengths, np.uint32),
        code=tuple(store.codes),
        step=np.frombuffer(b"".join(store.sizes), np.uint8),
        form=form,
        instructions=tuple(kinds.instructions),
        function=tuple(functions),
        module=tuple(store.modules),
        offset=offsets,
        label=labels,
    )


def labelled(image: ImageRecord) -> BlockStore:
    """The blocks of an image, with labels for those that have none yet of code that it has made, where a JIT
    compiler has told perf what it is. (An engine that labels blocks when they are new knows better: code
    may have taken the place of other code since.)"""
    store = image.store
    modules = {module for module in set(store.modules) if generated(module)}
    rows = [row for row, module in enumerate(store.modules) if module in modules and row not in store.labels]
    if rows:
        from livepro.names.generated import GeneratedNames

        names = GeneratedNames(image.process)
        names.look()
        for row in rows:
            name = names.find(store.addresses[row])
            if name:
                store.labels[row] = CodeLabel(Origin.GENERATED, 0, name)
    return store


def code_labels(modules: Sequence[str], known: Mapping[int, CodeLabel]) -> tuple[CodeLabel, ...] | None:
    """A label for every block of a Java virtual machine's process; None for another's. `known` are
    those given while it ran (by row), of code that is in no file. (It may have executed nothing else.)"""
    made = any(label.origin is not Origin.GENERATED for label in known.values())
    if not made and not any(PurePath(module).name == LIBRARY for module in set(modules)):
        return None
    by_module = {module: _by_file(module) for module in set(modules)}
    return tuple(known.get(row) or by_module[module] for row, module in enumerate(modules))


def _by_file(module: str) -> CodeLabel:
    return CodeLabel(Origin.VM) if PurePath(module).name == LIBRARY else outside(module)


def _counts(tally: ThreadTally, blocks: int, alike: Alike) -> ThreadCounts:
    counts = tally.raw_counts()
    entries = np.zeros(blocks, np.uint64)
    entries[counts.rows] = counts.times
    return ThreadCounts(
        tid=tally.thread.tid,
        name=tally.thread.name,
        entries=alike.of_array(entries),
        partial=_partial(counts.partial),
        rep_iterations=counts.rep_iterations,
        intervals=tuple(tally.intervals),
    )


def _partial(counts: Partial) -> npt.NDArray[np.int64]:
    rows = [(row, count, times) for (row, count), times in sorted(counts.items()) if times]
    return np.array(rows, np.int64).reshape(-1, 3)
