"""Regions for the simulator Sniper: for each the options of its run-sniper, a line.

Sniper runs the program under Pin or SDE, whose controller tells it where a region begins and ends:
``-control start:address:IMAGE+OFFSET:countN:global`` is the Nth execution of that instruction by all threads
together, and ``stop:`` likewise (the controller's chains in Pin's manual; LoopPoint's run-looppoint.py starts
Sniper with the same). ``-ssimuserroi --roi-script`` is Sniper's script that has the controller's region
simulated in detail; before it the program runs on with its caches kept warm.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import TextIO

from livepro.formats.looppoint import LoopRegion, Marker


def options(region: LoopRegion) -> list[str]:
    """What run-sniper is given to simulate a region; its results go to a directory of the region's number."""
    return [
        *("-d", f"region-{region.number}", "-ssimuserroi", "--roi-script"),
        f"--trace-args=-control {_chain('start', region.start)}",
        f"--trace-args=-control {_chain('stop', region.end)}",
    ]


def write(out: TextIO, regions: Sequence[LoopRegion]) -> None:
    """Write a comment with the region's multiplier and a line of `options`, in a shell's words, for each."""
    out.write("# Each line: run-sniper OPTIONS -- PROGRAM. A region counts multiplier times.\n")
    for region in regions:
        out.write(
            f"# region {region.number}: cluster {region.cluster}, slice {region.slice}, "
            f"{region.length} instructions, multiplier {region.multiplier!r}\n{shlex.join(options(region))}\n"
        )


def _chain(event: str, marker: Marker) -> str:
    place = f"{PurePath(marker.image).name}+{marker.offset:#x}"
    return f"{event}:address:{place}:count{marker.number}:global"
