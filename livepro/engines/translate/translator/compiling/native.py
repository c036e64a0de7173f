"""The kernels as machine code that was compiled before, called without numba: to import that takes longer
than to translate all that a small program needs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

_KINDS = {"u8": np.uint8, "u32": np.uint32, "i32": np.int32, "i64": np.int64, "u64": np.uint64}


class Kernel:
    """One of them. What it is given is written down in `table`: an array's address and lengths."""

    def __init__(self, native: Native, number: int, specification: str) -> None:
        self._native = native  # whose machine code goes with it
        self._number = number
        self._arguments = []
        at = 0
        for word in specification.split():
            kind, _, dimensions = word.partition(".")
            self._arguments.append((at, _KINDS.get(kind), int(dimensions or 1)))
            at += 1 + int(dimensions or 1) if kind in _KINDS else 1
        self._table = np.zeros(at, np.int64)
        self._at = self._table.ctypes.data
        self._last: list[Any] = [None] * len(self._arguments)

    def __call__(self, *given: Any) -> int:
        """What it returns. Raises TypeError for what it cannot be given."""
        return int(self._native.entry(self._number, self.give(*given)))

    def give(self, *given: Any) -> int:
        """Write down what it is to be given; returns where (an address). Raises TypeError as a call does."""
        last, table = self._last, self._table
        for n, (value, (at, kind, dimensions)) in enumerate(zip(given, self._arguments, strict=True)):
            if kind is None:
                table[at] = value
            elif value is not last[n]:
                if value.dtype != kind or value.ndim != dimensions or not value.flags.c_contiguous:
                    raise TypeError(f"argument {n} is {value.dtype}, {value.shape}, not {kind}")
                table[at] = value.__array_interface__["data"][0]
                table[at + 1 : at + 1 + dimensions] = value.shape
                last[n] = value
        return self._at


class ObjectFile(NamedTuple):
    """Machine code: what an object file holds, its function, and what it needs of numba."""

    code: bytes
    name: str
    symbols: Sequence[str]


class Native:
    """An object file, loaded: `entry` is its function. By name `specifications` say what a kernel is given,
    in order: arrays by type (and dimensions, if they are two), `n` for numbers, `b` for truth values."""

    def __init__(self, made: ObjectFile, specifications: Mapping[str, str]) -> None:
        from llvmlite import binding

        self.made = made
        self._specifications = specifications
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        abort = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
        for symbol in made.symbols:
            # They are for exceptions and for arrays that own their memory, and never called. numba gives them
            # what they are in numba once it is imported.
            if binding.address_of_symbol(symbol) is None:
                binding.add_symbol(symbol, abort)
        machine = binding.Target.from_default_triple().create_target_machine()
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
        self._engine.add_object_file(binding.ObjectFileRef.from_data(made.code))
        self._engine.finalize_object()
        signature = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
        self.entry = signature(self._engine.get_function_address(made.name))

    def kernels(self) -> Any:
        """All kernels by name. They keep what they were given last: who has arrays of its own asks for them
        once."""
        return SimpleNamespace(
            **{
                name: Kernel(self, number, specification)
                for number, (name, specification) in enumerate(self._specifications.items())
            }
        )
