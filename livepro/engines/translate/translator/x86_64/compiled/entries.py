"""The kernels for x86-64, compiled into one object file (`objects`)."""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any

from numba import njit

from livepro.engines.translate.translator.compiling import objects
from livepro.engines.translate.translator.compiling.kernels import kernel
from livepro.engines.translate.translator.compiling.kernels.index import forget, links_to, rehash, take
from livepro.engines.translate.translator.compiling.native import ObjectFile
from livepro.engines.translate.translator.x86_64.compiled.answering.arriving import arrive
from livepro.engines.translate.translator.x86_64.compiled.answering.waiting import answering
from livepro.engines.translate.translator.x86_64.compiled.kernels.decoding import (
    enter,
    locate,
    measure,
    place_of,
    shape,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.eager import translate
from livepro.engines.translate.translator.x86_64.compiled.kernels.linking import enter as enter_landings
from livepro.engines.translate.translator.x86_64.compiled.kernels.linking import publish
from livepro.engines.translate.translator.x86_64.compiled.kernels.recording import tell
from livepro.engines.translate.translator.x86_64.compiled.specifications import SPECIFICATIONS


@kernel
def measure_all(text, at, out):
    """The sizes of as many instructions from an index on as there is room for."""
    for i in range(len(out)):
        out[i] = measure(text, at) & 0xFF
        at += out[i]


@kernel
def shapes_of(text, offsets, counts, lows, highs, rows, steps, shapes, code):
    """The sizes and shapes of all instructions of blocks, and their bytes."""
    n = m = 0
    for block in range(len(offsets)):
        at = offsets[block]
        for _ in range(counts[block]):
            measured = measure(text, at)
            low, high = shape(text, at, measured)
            shapes[n] = rows[place_of(lows, highs, low, high)]
            steps[n] = measured & 0xFF
            for i in range(steps[n]):
                code[m + i] = text[at + i]
            at += steps[n]
            m += steps[n]
            n += 1


@kernel
def find_shape(text, at, lows, highs, found):
    """What `locate` finds."""
    found[0], found[1] = locate(text, at, lows, highs)


@kernel
def rehash_shapes(lows, highs, rows, new_lows, new_highs, new_rows):
    """Enter all shapes in a larger table."""
    for i in range(len(lows)):
        if highs[i]:
            at = place_of(new_lows, new_highs, lows[i], highs[i])
            new_lows[at], new_highs[at], new_rows[at] = lows[i], highs[i], rows[i]


_FUNCTIONS = {
    "translate": translate,
    "take": take,
    "links_to": links_to,
    "forget": forget,
    "rehash": rehash,
    "enter": enter_landings,
    "publish": publish,
    "measure_all": measure_all,
    "shapes_of": shapes_of,
    "tell": tell,
    "find_shape": find_shape,
    "enter_shape": enter,
    "rehash_shapes": rehash_shapes,
    "arrive": arrive,
}
_RETURNING = ("translate", "links_to", "enter", "tell", "arrive", "answer")


def _arriving() -> Any:
    """`arrive`, given where its arguments are (an address) and those that are different each time."""
    lines = ["def arriving(address, stop, target, cell, row):", "    table = i64(address)"]
    lines += [f"    table[{at}] = {name}" for at, name in enumerate(("stop", "target", "cell", "row"))]
    known = {**objects.names(), "arrive": arrive}
    exec("\n".join([*lines, f"    return {objects.call('arrive', SPECIFICATIONS['arrive'])}", ""]), known)
    # (Arrays made of addresses take numba's runtime, in name.)
    return njit(nogil=True)(known["arriving"])


def compiled() -> ObjectFile:
    """Compile all of it."""
    kernels = {**_FUNCTIONS, "answer": answering(_arriving())}
    return objects.Built(kernels, SPECIFICATIONS, _RETURNING).object_file()
