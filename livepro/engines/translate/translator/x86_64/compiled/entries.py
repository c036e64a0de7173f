"""The kernels compiled into one object file: a function that is given a kernel's number and where its
arguments are (`native`)."""

# mypy: ignore-errors

from __future__ import annotations

import io
from typing import Any

from elftools.elf.elffile import ELFFile
from numba import carray, njit
from numba.core import compiler, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from livepro.engines.translate.translator.x86_64.compiled.answering.arriving import arrive
from livepro.engines.translate.translator.x86_64.compiled.answering.waiting import answering
from livepro.engines.translate.translator.x86_64.compiled.kernels import kernel
from livepro.engines.translate.translator.x86_64.compiled.kernels.decoding import (
    enter,
    locate,
    measure,
    place_of,
    shape,
)
from livepro.engines.translate.translator.x86_64.compiled.kernels.eager import translate
from livepro.engines.translate.translator.x86_64.compiled.kernels.index import forget, links_to, rehash, take
from livepro.engines.translate.translator.x86_64.compiled.kernels.linking import enter as enter_landings
from livepro.engines.translate.translator.x86_64.compiled.kernels.linking import publish
from livepro.engines.translate.translator.x86_64.compiled.kernels.recording import tell
from livepro.engines.translate.translator.x86_64.compiled.native import SPECIFICATIONS, ObjectFile

_TYPES = {"u8": types.uint8, "i32": types.int32, "i64": types.int64, "u64": types.uint64}


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


def _pointer_to(kind: Any) -> Any:
    @intrinsic
    def pointer(typing_context, address):
        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate

    return pointer


def _call(name: str) -> str:
    """The call of a kernel, in source: what it is given is in `table`."""
    given, at = [], 0
    for word in SPECIFICATIONS[name].split():
        kind, _, dimensions = word.partition(".")
        if kind in _TYPES:
            lengths = "".join(f"table[{at + 1 + n}], " for n in range(int(dimensions or 1)))
            given.append(f"carray({kind}(table[{at}]), ({lengths}))")
            at += 1 + int(dimensions or 1)
        else:
            given.append(f"table[{at}]" + (" != 0" if kind == "b" else ""))
            at += 1
    return f"{name}({', '.join(given)})"


def source() -> str:
    """The source of the function."""
    lines = ["def entry(number, table):"]
    for number, name in enumerate(SPECIFICATIONS):
        lines.append(f"    if number == {number}:")
        if name in _RETURNING:
            lines.append(f"        return {_call(name)}")
        else:
            lines += [f"        {_call(name)}", "        return 0"]
    return "\n".join([*lines, "    return -1", ""])


def _arriving(names: dict[str, Any]) -> Any:
    """`arrive`, given where its arguments are (an address) and those that are different each time."""
    lines = ["def arriving(address, stop, target, cell, row):", "    table = i64(address)"]
    lines += [f"    table[{at}] = {name}" for at, name in enumerate(("stop", "target", "cell", "row"))]
    exec("\n".join([*lines, f"    return {_call('arrive')}", ""]), names)
    # (Arrays made of addresses take numba's runtime, in name.)
    return njit(nogil=True)(names["arriving"])


def compiled() -> ObjectFile:
    """Compile all of it."""
    names = {**_FUNCTIONS, **{name: _pointer_to(kind) for name, kind in _TYPES.items()}, "carray": carray}
    names["answer"] = answering(_arriving(names))
    exec(source(), names)
    flags = compiler.Flags()
    flags.nrt = flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = False
    typing, target = cpu_target.typing_context, cpu_target.target_context
    types_of = types.int64, types.CPointer(types.int64)
    made = compiler.compile_extra(typing, target, names["entry"], types_of, types.int64, flags, {})
    code = made.library.serialize_using_object_code()[2][0]
    table = ELFFile(io.BytesIO(code)).get_section_by_name(".symtab")
    missing = [symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"]
    needed = [name for name in missing if name.startswith(("NRT_", "numba_"))]
    return ObjectFile(code, made.fndesc.llvm_cfunc_wrapper_name, needed)
