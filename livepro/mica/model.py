"""MICA as an analysis of the event stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.blocks import StaticTables
from livepro.engines.stream.filtering import Repeats
from livepro.engines.stream.recorder import Executed, StreamImage, StreamThread
from livepro.errors import LiveproError
from livepro.events.analysis import Analysis
from livepro.events.program import Program
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import CONDITIONAL
from livepro.events.spans.flattening import Turns
from livepro.events.spans.region import Regions
from livepro.isa.base import Isa
from livepro.mica import report
from livepro.mica.builtin import BUILT_IN, NAMES
from livepro.mica.counted import BlockTypes, CountedThread, counts_alone
from livepro.mica.facts import Facts
from livepro.mica.functions import by_function
from livepro.mica.outputs import function_rows, part_rows
from livepro.mica.reading import ReadingThread, reads_alone
from livepro.mica.settings import ALL, MicaDialect, Settings
from livepro.mica.thread import Characterised
from livepro.model import ProcessResult
from livepro.model.itypes import DEFAULT_GROUPS, ItypesSpec

Measured = Characterised | CountedThread
"""A thread under characterisation."""
DOCUMENT = "livepro-mica-1"
"""Which shape of results this is."""


class Mica(Analysis):
    """MICA's microarchitecture-independent characteristics: ILP, instruction mix, branch predictability, registers, memory"""  # noqa: E501

    name: ClassVar[str] = "mica"

    def __init__(
        self,
        analyses: str | tuple[str, ...] | Settings = ALL,
        *,
        interval_size: int = 0,
        block_size: int = 6,
        page_size: int = 12,
        ilp_size: int = 0,
        dialect: str = "exact",
    ) -> None:
        if isinstance(analyses, Settings):
            self.settings = analyses
            return
        names = tuple(analyses.split("+")) if isinstance(analyses, str) else tuple(analyses)
        chosen = tuple(n for name in names for n in (ALL if name == "all" else (name,)))
        self.settings = Settings(
            analyses=tuple(dict.fromkeys(chosen)),
            interval_size=interval_size,
            block_size=block_size,
            page_size=page_size,
            ilp_size=ilp_size,
            dialect=MicaDialect(dialect),
        )

    def consumer(self, name: str, isa: Isa) -> MicaConsumer:
        """See `livepro.events.analysis.Analysis`."""
        return MicaConsumer(name, isa, self.settings)

    def frames(self, result: Any) -> dict[str, list[dict[str, Any]]]:
        """Named metrics of each interval of each thread, or of each thread; in ``.functions`` what can be
        told of functions."""
        return {"": list(part_rows(result)), ".functions": list(function_rows(result))}

    def report(self, result: Any) -> Iterable[str]:
        """The tables of a result."""
        return report.lines(result)


class MicaConsumer:
    """Characterises all threads of a run (`livepro.events.pump.Consumer`)."""

    def __init__(self, name: str, isa: Isa, settings: Settings) -> None:
        self.name = name
        self._isa = isa
        self._settings = settings
        self._turns = Turns()
        self._crew = Crew()
        self._regions = Regions()
        self._images: dict[StreamImage, Facts] = {}
        self._threads: dict[StreamThread, Measured] = {}
        self._counts = False
        self._tables: dict[StreamImage, StaticTables] = {}

    def see(self, thread: StreamThread, words: npt.NDArray[np.int64], tables: StaticTables) -> None:
        """See `Consumer`."""
        self._tables[thread.image] = tables
        self._of(thread).see(words, tables)

    def filtered(self) -> tuple[Repeats, MicaConsumer] | None:
        """See `livepro.events.pump.Filterable`."""
        self._counts = counts_alone(self._settings)
        return (Repeats(), self) if self._counts else None

    def executed(self, thread: StreamThread, blocks: Executed) -> None:
        """See `livepro.events.pump.Counting`."""
        found = self._of(thread)
        assert isinstance(found, CountedThread)
        found.executed(blocks)

    @property
    def _spec(self) -> ItypesSpec | None:
        """The groups of instruction types; None if they are those of `livepro.model.itypes`."""
        asked = self._settings
        return BUILT_IN if asked.spec is None and asked.dialect is MicaDialect.MICA else asked.spec

    def _of(self, thread: StreamThread) -> Measured:
        found = self._threads.get(thread)
        if found is None:
            facts = self._images.get(thread.image)
            if facts is None:
                facts = Facts(self._isa, thread.image.blocks, self._settings.dialect, self._spec)
                self._images[thread.image] = facts
            if self._counts:
                found = self._threads[thread] = CountedThread(self._settings, facts)
                return found
            size = self._settings.interval_size
            feed = partial(self._regions.feed, thread)
            kind = ReadingThread if reads_alone(self._settings) else Characterised
            found = kind(
                *(self._settings, facts, self._crew),
                lambda taker: feed(taker, facts.listing, self._turns, CONDITIONAL, size),
            )
            self._threads[thread] = found
        return found

    def keeps(self, *, waiting: bool) -> None:
        """See `livepro.events.pump.Regional`. Raises LiveproError if intervals are asked for."""
        if self._settings.interval_size:
            raise LiveproError(
                "MICA's intervals are of the whole run: they do not go with a region yet.",
                "Leave one or the other away.",
            )
        self._regions.keeps(waiting=waiting)

    def bound(
        self, positions: Mapping[StreamThread, int], goes: Mapping[StreamThread, int], *, begins: bool
    ) -> None:
        """See `livepro.events.pump.Regional`."""
        self._regions.bound(positions, goes, lambda thread: self._tables[thread.image])

    @property
    def divisible(self) -> bool:
        """See `livepro.events.pump.Divisible`: not if there are intervals, or what is executed comes from
        counters."""
        return not self._settings.interval_size and not self._counts

    def restart(self, positions: Mapping[StreamThread, int], *, counting: bool) -> None:
        """See `livepro.events.pump.Divisible`."""
        self._regions.restart(positions, lambda thread: self._tables[thread.image], counting=counting)
        self._crew.wait()
        self._threads.clear()
        self._images.clear()

    def told(self, image: StreamImage, process: ProcessResult) -> tuple[Any, list[str]] | None:
        """See `Consumer`."""
        threads = {t: c for t, c in self._threads.items() if t.image is image}
        for characterised in threads.values():
            characterised.finish(image.blocks.tables())
        types = self._settled(list(threads.values()), process) if self._counts else None
        threads = {t: c for t, c in threads.items() if c.events}  # of a region some threads have none
        if not threads:
            return None
        facts = self._images[image]
        self._crew.dismiss()
        result = {
            "document": DOCUMENT,
            "settings": self._described(facts),
            "total": _total(list(threads.values())),
            "threads": [
                {"number": thread.number, "tid": thread.thread.tid, **_of(characterised)}
                for thread, characterised in sorted(threads.items(), key=lambda item: item[0].number)
            ],
            "functions": by_function(
                list(threads.values()), facts, Program(image, process), self._settings, types
            ),
            "others": list(facts.others) if types is None else types.others,
        }
        return result, list(report.lines(result))

    def _settled(self, threads: list[Measured], process: ProcessResult) -> BlockTypes:
        """Have threads whose blocks are counted know what they have executed."""
        counted = [thread for thread in threads if isinstance(thread, CountedThread)]
        told = [blocks for thread in counted for blocks in thread.told]
        types = BlockTypes(process.table, told, self._spec, self._isa)
        for thread in counted:
            thread.settle(types)
        return types

    def _described(self, facts: Facts) -> dict[str, Any]:
        settings = self._settings
        if self._spec is BUILT_IN:
            groups = list(NAMES)
        elif self._spec is None:
            groups = list(DEFAULT_GROUPS)
        else:
            groups = list(facts.group_names)
        return {
            "analyses": list(settings.analyses),
            "interval_size": settings.interval_size,
            "block_size": settings.block_size,
            "page_size": settings.page_size,
            "ilp_size": settings.ilp_size,
            "dialect": settings.dialect.value,
            "groups": groups,
        }


def _of(thread: Measured) -> dict[str, Any]:
    """A thread's numbers: of the whole run, and of its intervals."""
    if thread.intervals:
        values = {
            name: [sum(column) for column in zip(*(i.values[name] for i in thread.intervals), strict=True)]
            for name in thread.intervals[0].values
        }
        _put_footprint(values, [thread])
    else:
        values = thread.current()
    intervals = [i._asdict() for i in thread.intervals]
    return {
        "instructions": thread.instructions,
        "events": thread.events,
        "values": values,
        "intervals": intervals,
    }


def _total(threads: list[Measured]) -> dict[str, Any]:
    """The numbers of all threads: sums, and the union of footprints."""
    each = [_of(thread) for thread in threads]
    names = each[0]["values"]
    values = {
        name: [sum(column) for column in zip(*(one["values"][name] for one in each), strict=True)]
        for name in names
    }
    _put_footprint(values, threads)
    return {
        "instructions": sum(one["instructions"] for one in each),
        "events": sum(one["events"] for one in each),
        "values": values,
    }


def _put_footprint(values: dict[str, list[int]], threads: list[Measured]) -> None:
    if "memfootprint" in values:
        everything = [thread.footprint() for thread in threads]
        values["memfootprint"] = [len(np.unique(np.concatenate(of))) for of in zip(*everything, strict=True)]
