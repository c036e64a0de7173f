"""Kernels compiled into one object file: a function that is given a kernel's number and where its arguments
are (`native`)."""

# mypy: ignore-errors

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from typing import Any

from elftools.elf.elffile import ELFFile
from numba import carray
from numba.core import compiler, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from livepro.engines.translate.translator.compiling.native import ObjectFile

_TYPES = {"u8": types.uint8, "u32": types.uint32, "i32": types.int32, "i64": types.int64, "u64": types.uint64}


def _pointer_to(kind: Any) -> Any:
    @intrinsic
    def pointer(typing_context, address):
        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate

    return pointer


def call(name: str, specification: str) -> str:
    """The call of a kernel, in source: what it is given is in `table`."""
    given, at = [], 0
    for word in specification.split():
        kind, _, dimensions = word.partition(".")
        if kind in _TYPES:
            lengths = "".join(f"table[{at + 1 + n}], " for n in range(int(dimensions or 1)))
            given.append(f"carray({kind}(table[{at}]), ({lengths}))")
            at += 1 + int(dimensions or 1)
        else:
            given.append(f"table[{at}]" + (" != 0" if kind == "b" else ""))
            at += 1
    return f"{name}({', '.join(given)})"


def names() -> dict[str, Any]:
    """What such calls need to be known by name."""
    return {**{name: _pointer_to(kind) for name, kind in _TYPES.items()}, "carray": carray}


def source(specifications: Mapping[str, str], returning: Collection[str]) -> str:
    """The source of the function; `returning` are kernels that return something."""
    lines = ["def entry(number, table):"]
    for number, (name, specification) in enumerate(specifications.items()):
        lines.append(f"    if number == {number}:")
        if name in returning:
            lines.append(f"        return {call(name, specification)}")
        else:
            lines += [f"        {call(name, specification)}", "        return 0"]
    return "\n".join([*lines, "    return -1", ""])


class Built:
    """All kernels (by name, with what their calls need) in one function, compiled for this processor."""

    def __init__(
        self, kernels: Mapping[str, Any], specifications: Mapping[str, str], returning: Collection[str]
    ) -> None:
        known = {**names(), **kernels}
        exec(source(specifications, returning), known)
        flags = compiler.Flags()
        flags.nrt = flags.no_cpython_wrapper = True
        flags.no_cfunc_wrapper = False
        typing, target = cpu_target.typing_context, cpu_target.target_context
        types_of = types.int64, types.CPointer(types.int64)
        made = compiler.compile_extra(typing, target, known["entry"], types_of, types.int64, flags, {})
        self._library = made.library
        self._name = made.fndesc.llvm_cfunc_wrapper_name

    @property
    def assembly(self) -> str:
        """What it is in LLVM's own language."""
        return self._library.get_llvm_str()

    def object_file(self, code: bytes | None = None) -> ObjectFile:
        """It as an object file, which is `code` if it has been made of `assembly`."""
        code = code or self._library.serialize_using_object_code()[2][0]
        table = ELFFile(io.BytesIO(code)).get_section_by_name(".symtab")
        missing = [symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"]
        needed = [name for name in missing if name.startswith(("NRT_", "numba_"))]
        return ObjectFile(code, self._name, needed)
