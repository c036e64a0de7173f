"""What is written of a characterisation: MICA's files, rows of named metrics, a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from livepro.formats import mica, mica_files
from livepro.formats.files import name_for_thread
from livepro.formats.mica_files import Line
from livepro.mica.metrics import metrics
from livepro.mica.settings import MicaDialect, Settings


def files(
    result: Mapping[str, Any], settings: Settings, pid: int | None
) -> Iterator[tuple[str, Iterable[str]]]:
    """MICA's files of one process, as names and texts, for each analysis and each thread: thread N > 1 has
    the suffix ``.N``. `pid` is in the names if it is given."""
    quirks = settings.dialect is MicaDialect.MICA
    for number, thread in enumerate(result["threads"], 1):
        for analysis, values in thread["values"].items():
            base = mica_files.base_of(analysis, settings.ilp_size)
            name = mica_files.name_of(base, intervals=settings.interval_size > 0, pid=pid)
            text: Iterable[str]
            if settings.interval_size:
                lines = [
                    Line(i["instructions"], i["events"], i["values"][analysis]) for i in thread["intervals"]
                ]
                text = mica_files.phases(analysis, lines, settings.interval_size, quirks=quirks)
            else:
                line = Line(thread["instructions"], thread["events"], values)
                text = (mica_files.full(analysis, line, quirks=quirks),)
            yield name_for_thread(name, number), text
    if "itypes" in settings.analyses and pid is None:
        yield mica.OTHER_CATEGORIES, [f"{category}\n" for category in result["others"]]


def document(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Everything, for JSON: of each process image its result, with the named metrics of the whole."""
    return {
        "processes": [
            {
                "pid": process["pid"],
                "image": process["image"],
                "command": process["command"],
                **process["result"],
                "metrics": [
                    metric._asdict()
                    for metric in metrics(
                        process["result"]["total"]["values"],
                        process["result"]["total"]["events"],
                        process["result"]["settings"],
                    )
                ],
            }
            for process in told
        ]
    }


def csv_rows(told: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """A heading, and a row of named metrics for each interval of each thread, or for each thread where there
    are no intervals (its `interval` is empty then). A metric of which nothing was there is empty."""
    heading: list[Any] = []
    for process in told:
        result = process["result"]
        for thread in result["threads"]:
            parts: list[tuple[int | str, Any]] = [*enumerate(thread["intervals"])] or [("", thread)]
            for number, part in parts:
                named = metrics(part["values"], part["events"], result["settings"])
                columns = [f"{metric.analysis}: {metric.name}" for metric in named]
                if not heading:
                    heading = ["pid", "thread", "interval", "instructions", "events", *columns]
                    yield heading
                values = ["" if metric.value is None else metric.value for metric in named]
                yield [
                    process["pid"],
                    thread["number"],
                    number,
                    part["instructions"],
                    part["events"],
                    *values,
                ]
