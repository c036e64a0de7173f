"""Basic blocks as a live view knows them: each described once for all processes that run it.

Blocks are numbered in the order in which they were first seen to run. What they
consist of is a matrix of features (instruction-type groups, SIMD sets and
widths, SIMD types), so that what a run executed is a sum over its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.engines.live import RawBlock
from livepro.isa.base import Isa
from livepro.linux.symbols import Symbolizer
from livepro.model import Instruction, SimdFacts
from livepro.names.demangle import Demangler

NO_WIDTH = "other"
"""Width of SIMD instructions that have no vector, such as those that save the registers' state."""

SCALAR = "scalar"

Ints = npt.NDArray[np.int64]


class Feature(NamedTuple):
    """What an instruction can count as: `kind` is length, simd, itype, set or type."""

    kind: str
    name: str = ""
    width: str = ""


LENGTH = Feature("length")
SIMD = Feature("simd")
FIRST = (LENGTH, SIMD)
"""What is in the first columns of the matrix: instructions, SIMD instructions."""


class Function(NamedTuple):
    """A function by module and name; all code of a module that no symbol holds has an empty name.
    Code that was made while the program ran has who made it (C2, interpreter ...) for a module,
    where that is known."""

    module: str
    name: str


def features(instruction: Instruction) -> tuple[Feature, ...]:
    """Everything that one instruction counts as."""
    out = [LENGTH, *(Feature("itype", group) for group in instruction.itypes)]
    facts = instruction.simd
    if facts is not None:
        width = SCALAR if facts.scalar else str(facts.width) if facts.width else NO_WIDTH
        out += [SIMD, Feature("set", facts.set, width), Feature("type", facts.type.value)]
    return tuple(out)


class Catalogue:
    """The blocks that were seen to run.

    By block number: `raw`, `length` (int64, instructions), `parent` (int64: of the
    beginning of a block that was left early the whole block, else itself),
    `function` (int64, a number in `functions`) and `place` (int64: the address that
    the module's own headers give it, once `name` has found it out).
    """

    def __init__(self, isa: Isa, symbolizer: Symbolizer | None = None, *, demangle: bool = True) -> None:
        self.isa = isa
        self.raw: list[RawBlock] = []
        self.features: list[Feature] = list(FIRST)
        self.functions: list[Function] = []
        self._symbolizer = symbolizer or Symbolizer(spelled=Demangler() if demangle else None)
        self._columns = {feature: at for at, feature in enumerate(FIRST)}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._prefixes: dict[tuple[int, int], int] = {}
        self.prefixes: dict[int, list[tuple[int, int]]] = {}
        """By block: the beginnings of it that were executed alone, as (length, number)."""
        self._instruction_columns: dict[bytes, tuple[int, ...]] = {}
        # By (itypes, identity of the SIMD facts, which are kept here so that it stays theirs).
        self._shapes: dict[tuple[tuple[str, ...], int], tuple[tuple[int, ...], SimdFacts | None]] = {}
        self._function_numbers: dict[tuple[str, str], int] = {}
        # Of blocks that arrays do not hold yet: rows of `_ints`, and places in the matrix to add 1 at.
        self._new: list[tuple[int, int, int, int]] = []
        self._new_numbers: list[int] = []
        self._new_columns: list[int] = []
        self._matrix = np.zeros((1024, 48), np.int64)
        self._ints = np.zeros((4, 1024), np.int64)
        self._unnamed: dict[str, list[int]] = {}
        self._loaded: set[str] = set()

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def length(self) -> Ints:
        return self._ints[0, : len(self.raw)]

    @property
    def parent(self) -> Ints:
        return self._ints[1, : len(self.raw)]

    @property
    def function(self) -> Ints:
        return self._ints[2, : len(self.raw)]

    @property
    def place(self) -> Ints:
        return self._ints[3, : len(self.raw)]

    @property
    def simd(self) -> Ints:
        """SIMD instructions of each block (int64)."""
        return self._matrix[: len(self.raw), 1]

    def of(self, numbers: Ints) -> Ints:
        """Features of blocks (int64, a row for each, columns as `features`)."""
        out: Ints = self._matrix[numbers, : len(self.features)]
        return out

    # -- learning

    def add(self, pid: int, raw: RawBlock) -> int:
        """The number of a block; a new one is described. `pid` keeps code apart that no file holds.
        To be followed by `flush`."""
        own = raw.module.startswith("/") or raw.module == "[vdso]"
        key = (raw.module, raw.offset, raw.code) if own else (pid, raw.address, raw.code, raw.label)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._append(raw)
        return number

    def prefix(self, number: int, count: int) -> int:
        """The number of a block's first `count` instructions, as a block of their own. To be
        followed by `flush`."""
        known = self._prefixes.get((number, count))
        if known is None:
            whole = self.raw[number]
            sizes = whole.sizes[:count]
            part = whole._replace(code=whole.code[: sum(sizes)], sizes=sizes)
            known = self._prefixes[number, count] = self._append(part, number)
            self.prefixes.setdefault(number, []).append((count, known))
        return known

    def _append(self, raw: RawBlock, parent: int | None = None) -> int:
        number = len(self.raw)
        at, code, known, columns = 0, raw.code, self._instruction_columns, self._new_columns
        before = len(columns)
        for size in raw.sizes:
            own = known.get(code[at : at + size])
            if own is None:
                own = self._learn(code[at : at + size])
            columns += own
            at += size
        self._new_numbers += [number] * (len(columns) - before)
        whole = number if parent is None else parent
        if raw.label is None:
            function = self._function(raw.module, "")
            self._unnamed.setdefault(raw.module, []).append(number)
        else:
            function = self._function(str(raw.label.origin), raw.label.name)
        self._new.append((len(raw.sizes), whole, function, raw.offset))
        self.raw.append(raw)
        return number

    def flush(self) -> None:
        """Take up what was added: before that, arrays do not hold it."""
        if not self._new:
            return
        size = len(self.raw)
        while size > self._ints.shape[1]:
            self._ints = np.concatenate((self._ints, np.zeros_like(self._ints)), axis=1)
            self._matrix = np.concatenate((self._matrix, np.zeros_like(self._matrix)))
        while len(self.features) > self._matrix.shape[1]:
            self._matrix = np.concatenate((self._matrix, np.zeros_like(self._matrix)), axis=1)
        self._ints[:, size - len(self._new) : size] = np.array(self._new, np.int64).T
        np.add.at(self._matrix, (self._new_numbers, self._new_columns), 1)
        self._new.clear()
        self._new_numbers.clear()
        self._new_columns.clear()

    def _learn(self, code: bytes) -> tuple[int, ...]:
        instruction = self.isa.describe(code)
        key = instruction.itypes, id(instruction.simd)
        shape = self._shapes.get(key)
        if shape is None:
            columns = tuple(self._column(feature) for feature in features(instruction))
            shape = self._shapes[key] = columns, instruction.simd
        self._instruction_columns[code] = shape[0]
        return shape[0]

    def _column(self, feature: Feature) -> int:
        at = self._columns.get(feature)
        if at is None:
            at = self._columns[feature] = len(self.features)
            self.features.append(feature)
        return at

    def _function(self, module: str, name: str) -> int:
        function = module, name
        number = self._function_numbers.get(function)
        if number is None:
            number = self._function_numbers[function] = len(self.functions)
            self.functions.append(Function(module, name))
        return number

    def name(self) -> None:
        """Find the functions of blocks added since. A module whose symbols are yet to be
        read can take a while: at most one such a call."""
        self.flush()
        fresh = True
        for module in list(self._unnamed):
            if module not in self._loaded:
                if not fresh:
                    continue
                fresh = False
                self._loaded.add(module)
            numbers = self._unnamed.pop(module)
            offsets = np.array([self.raw[number].offset for number in numbers], np.uint64)
            names, places = self._symbolizer.lookup(module, offsets)
            self._ints[2, numbers] = [self._function(module, name) for name in names]
            self._ints[3, numbers] = places.astype(np.int64)

    def texts(self, number: int) -> Sequence[tuple[int, bytes, str]]:
        """(address, code, disassembly) of each instruction of a block. Addresses, those of branch
        targets too, are the module's own; for code that no file holds, the process's."""
        raw = self.raw[number]
        at, out = 0, []
        base = int(self.place[number]) if raw.module.startswith(("/", "[vdso]")) else raw.address
        for size in raw.sizes:
            code = raw.code[at : at + size]
            out.append((base + at, code, self.isa.disassemble(code, base + at)))
            at += size
        return out
