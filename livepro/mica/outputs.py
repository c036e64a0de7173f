"""What is written of a characterisation: MICA's files, rows of named metrics, a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from livepro.formats import mica, mica_files
from livepro.formats.files import name_for_thread
from livepro.formats.mica_files import Line
from livepro.mica.metrics import PREDICTORS, STRIDES, metrics
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
        for row in part_rows(process["result"]):
            del row["tid"]
            if not heading:
                heading = ["pid", *row]
                yield heading
            yield [process["pid"], *("" if value is None else value for value in row.values())]


def part_rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The named metrics of each interval of each thread of a process image, or of each thread where there are
    no intervals (``interval`` is None then). A metric of which nothing was there is None."""
    for thread in result["threads"]:
        parts: list[tuple[int | None, Any]] = [*enumerate(thread["intervals"])] or [(None, thread)]
        for number, part in parts:
            named = metrics(part["values"], part["events"], result["settings"])
            yield {
                "thread": thread["number"],
                "tid": thread["tid"],
                "interval": number,
                "instructions": part["instructions"],
                "events": part["events"],
                **{f"{metric.analysis}: {metric.name}": metric.value for metric in named},
            }


def function_rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is known of each function of a process image: instructions of each type, conditional branches and
    how many of them each predictor missed, accesses by stride, blocks and pages touched."""
    groups = result["settings"]["groups"]
    names = {
        "itypes": [f"itypes: {name}" for name in groups],
        "ppm": [f"ppm: {name} mispredicted" for name in PREDICTORS],
        "stride": [
            f"stride: {name}"
            for kind in ("reads", "writes")
            for name in (
                kind,
                *(f"{kind} {which} <= {limit}" for which in ("local", "global") for limit in STRIDES),
            )
        ],
        "memfootprint": [
            f"memfootprint: {what} {unit}" for what in ("data", "code") for unit in ("blocks", "pages")
        ],
    }
    for function in result["functions"]:
        row: dict[str, Any] = {}
        for name, value in function.items():
            row |= dict(zip(names[name], value, strict=True)) if name in names else {name: value}
        yield row
