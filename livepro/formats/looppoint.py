"""LoopPoint's region lists: gem5's JSON, the pcregions.csv that Pin, SDE and gem5 read, options for Sniper.

JSON: ``{ID: {"simulation": {"start": {"pc", "global"}, "end": {"pc", "global", "relative"}}, "multiplier",
"warmup": {"start": {"pc", "count"}, "end": {"pc", "count"}}}}`` (LooppointJsonLoader in gem5's
src/python/gem5/resources/looppoint.py). A region begins when all cores together execute the instruction at
`pc` for the `global`th time, and ends in the same way; `relative` counts from the region's start.

CSV: a line ``cluster C from slice S,global,ID,START,END,RELATIVE,LENGTH,WEIGHT,MULTIPLIER,simulation`` for
each region and ``Warmup for regionid ID,global,0,...,warmup`` for what comes before; START and END are each
pc, image, offset in it, count. gem5's LooppointCsvLoader takes fields by their places in the line, and by
the blanks in its first.

Sniper: for each region the options of its run-sniper, a line. It runs the program under Pin or SDE, whose
controller tells it where a region begins and ends: ``-control start:address:IMAGE+OFFSET:countN:global`` is
the Nth execution of that instruction by all threads together, ``stop:`` likewise (the controller's chains in
Pin's manual; LoopPoint's run-looppoint.py starts Sniper with the same). ``-ssimuserroi --roi-script`` is
Sniper's script that has the controller's region simulated in detail; before it, the program runs on with its
caches kept warm.
"""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, TextIO

from livepro.errors import LiveproError
from livepro.formats.files import open_text

HEADING = (
    "# comment,thread-id,region-id,start-pc,start-image-name,start-image-offset,start-pc-count,"
    "end-pc,end-image-name,end-image-offset,end-pc-count,end-pc-relative-count,region-length,region-weight,"
    "region-multiplier,region-type"
)


class Marker(NamedTuple):
    """The execution with that `number`, from 1, of the instruction at `pc`: `offset` bytes behind where the
    file `image` is loaded."""

    pc: int
    image: str
    offset: int
    number: int


class LoopRegion(NamedTuple):
    """One region. `relative` are the executions of the end's instruction from the start to it, `length` the
    instructions, `multiplier` how many times the region counts."""

    number: int
    cluster: int
    slice: int
    warmup: Marker | None
    start: Marker
    end: Marker
    relative: int
    length: int
    weight: float
    multiplier: float


def to_document(regions: Sequence[LoopRegion]) -> dict[str, Any]:
    """The regions as gem5 reads them."""
    out: dict[str, Any] = {}
    for region in regions:
        start, end = region.start, region.end
        own = out[str(region.number)] = {
            "simulation": {
                "start": {"pc": start.pc, "global": start.number},
                "end": {"pc": end.pc, "global": end.number, "relative": region.relative},
            },
            "multiplier": region.multiplier,
        }
        if region.warmup is not None:
            own["warmup"] = {
                "start": {"pc": region.warmup.pc, "count": region.warmup.number},
                "end": {"pc": start.pc, "count": start.number},
            }
    return out


def write_json(out: TextIO, regions: Sequence[LoopRegion]) -> None:
    """Write gem5's JSON."""
    json.dump(to_document(regions), out, indent=4)
    out.write("\n")


def write_csv(out: TextIO, regions: Sequence[LoopRegion]) -> None:
    """Write a pcregions.csv."""
    out.write(HEADING + "\n")
    writer = csv.writer(out, lineterminator="\n")
    for region in regions:
        if region.warmup is not None:
            writer.writerow(
                (
                    f"Warmup for regionid {region.number}",
                    *("global", 0, *_place(region.warmup), *_place(region.start)),
                    *(0, 0, 0, 0, "warmup"),
                )
            )
        writer.writerow(
            (
                f"cluster {region.cluster} from slice {region.slice}",
                *("global", region.number, *_place(region.start), *_place(region.end)),
                *(region.relative, region.length, repr(region.weight), repr(region.multiplier), "simulation"),
            )
        )


def _place(marker: Marker) -> tuple[str, str, str, int]:
    return hex(marker.pc), PurePath(marker.image).name, hex(marker.offset), marker.number


def read_csv(name: str) -> list[LoopRegion]:
    """The regions in a pcregions.csv; images by their names. Raises LiveproError for a malformed line."""
    out: list[LoopRegion] = []
    warmups: dict[int, Marker] = {}
    with open_text(name, "r") as stream:
        for number, line in enumerate(stream, 1):
            if line.startswith("#") or not line.strip():
                continue
            (fields,) = csv.reader([line])
            try:
                comment, _, region, *rest = fields
                start, end = _marker(rest[:4]), _marker(rest[4:8])
                relative, length, weight, multiplier, kind = rest[8:]
                words = comment.split()
                if kind == "warmup":
                    warmups[int(words[3])] = start
                    continue
                out.append(
                    LoopRegion(
                        *(int(region), int(words[1]), int(words[4]), None, start, end),
                        *(int(relative), int(length), float(weight), float(multiplier)),
                    )
                )
            except (ValueError, IndexError) as error:
                raise LiveproError(
                    f"{name}:{number}: the line is no region of a pcregions.csv.",
                    "Each has 16 fields, from the comment to simulation or warmup.",
                ) from error
    return [region._replace(warmup=warmups.get(region.number)) for region in out]


def _marker(fields: Sequence[str]) -> Marker:
    pc, image, offset, count = fields
    return Marker(int(pc, 16), image, int(offset, 16), int(count))


def sniper_options(region: LoopRegion) -> list[str]:
    """What run-sniper is given to simulate a region; its results go to a directory by the region's number."""
    return [
        *("-d", f"region-{region.number}", "-ssimuserroi", "--roi-script"),
        f"--trace-args=-control {_chain('start', region.start)}",
        f"--trace-args=-control {_chain('stop', region.end)}",
    ]


def write_sniper(out: TextIO, regions: Sequence[LoopRegion]) -> None:
    """Write a comment with the multiplier and a line of `sniper_options`, as a shell takes them, for each."""
    out.write("# Each line: run-sniper OPTIONS -- PROGRAM. A region counts multiplier times.\n")
    for region in regions:
        out.write(
            f"# region {region.number}: cluster {region.cluster}, slice {region.slice}, "
            f"{region.length} instructions, multiplier {region.multiplier!r}\n"
            f"{shlex.join(sniper_options(region))}\n"
        )


def _chain(event: str, marker: Marker) -> str:
    place = f"{PurePath(marker.image).name}+{marker.offset:#x}"
    return f"{event}:address:{place}:count{marker.number}:global"
