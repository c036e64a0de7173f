"""What events name by number: the instructions of a process, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from livepro.engines.stream.recorder import StreamImage
from livepro.linux.lines import LineTables
from livepro.model import ProcessResult
from livepro.model.arrays import numbered
from livepro.model.label import Origin

_MAKERS = (Origin.C1, Origin.C2, Origin.INTERPRETER, Origin.STUB, Origin.WRAPPER)


class Program:
    """The code that one process image executed, as results need it.

    `address` and `size` (int64) are those of each instruction by its index; `block` (int64) the
    number of its block. An instruction that is in several blocks has an index in each.
    """

    def __init__(self, image: StreamImage, process: ProcessResult) -> None:
        tables, count = image.blocks.tables(), image.blocks.instructions
        self.pid = image.process.pid
        self.command = tuple(image.process.command)
        self.address: npt.NDArray[np.int64] = tables.address[:count].view(np.int64)
        self.size = tables.bytes[:count]
        self.block = np.repeat(np.arange(len(image.blocks)), np.diff(tables.first[: len(image.blocks) + 1]))
        self._image = image
        self._machine = process.machine
        self._table = process.table
        self._order = np.argsort(process.table.address, kind="stable")
        self._starts = process.table.address[self._order].astype(np.int64)
        self._reach = int(process.table.size.max(initial=0))

    def code(self, instruction: int) -> bytes:
        """The bytes of an instruction."""
        block = int(self.block[instruction])
        at = int(self.address[instruction]) - self._image.blocks.addresses[block]
        return self._image.blocks.codes[block][at : at + int(self.size[instruction])]

    def disassembly(self, instruction: int) -> str:
        """An instruction as text."""
        from livepro import isa

        return isa.for_machine(self._machine).disassemble(
            self.code(instruction), int(self.address[instruction])
        )

    def row(self, address: int) -> int:
        """The row in the process's block table of a block that holds a code address, -1 if none does."""
        at = int(np.searchsorted(self._starts, address, "right")) - 1
        while at >= 0 and self._starts[at] + self._reach > address:
            row = int(self._order[at])
            if address < int(self._starts[at]) + int(self._table.size[row]):
                return row
            at -= 1
        return -1

    def rows(self, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """`row` of many addresses."""
        if not len(self._starts):
            return np.full(len(addresses), -1)
        at = np.searchsorted(self._starts, addresses, "right") - 1
        out = self._order[at]
        sizes = self._table.size.astype(np.int64)
        beyond = (at < 0) | (addresses >= self._starts[at] + sizes[out])
        out[beyond] = [self.row(address) for address in addresses[beyond].tolist()]
        return out

    def place(self, address: int) -> tuple[str, str, int]:
        """The function, the module, and the address in the module's file that a code address is in;
        the address itself behind two empty names where nothing is known of it. For the module of code that a
        virtual machine has made stands who made it: ``C2``, ``interpreter``."""
        row = self.row(address)
        if row < 0:
            return "", "", address
        within = address - int(self._table.address[row])
        return *self.origin(row), int(self._table.offset[row]) + within

    def origin(self, row: int) -> tuple[str, str]:
        """The function and the module of a row of the process's block table, empty for row -1; for the module
        see `place`."""
        if row < 0:
            return "", ""
        table = self._table
        label = None if table.label is None else table.label[row]
        module = table.module[row] if label is None or label.origin not in _MAKERS else label.maker
        return table.function[row], module

    def label(self, address: int) -> str:
        """A code address for people: its function, or its module, and how far into it."""
        function, module, offset = self.place(address)
        if function:
            return function
        return f"{PurePath(module).name}+{offset:#x}" if module else f"{address:#x}"

    def lines(self, instructions: npt.NDArray[np.int64]) -> list[tuple[str, str, str, int]]:
        """The function, module, source file and line of instructions, by their indices; ``???`` and 0 where
        there is no debug information."""
        sources, which = self.sources(instructions)
        return [sources[n] for n in which.tolist()]

    def sources(
        self, instructions: npt.NDArray[np.int64]
    ) -> tuple[list[tuple[str, str, str, int]], npt.NDArray[np.int64]]:
        """The distinct ones of `lines`, and for each instruction (int64) which of these is its own."""
        addresses = self.address[instructions]
        distinct, row_of = numbered(self.rows(addresses) + 1, len(self._order) + 1)
        distinct -= 1
        origins = _Numbers([self.origin(row) for row in distinct.tolist()])
        known = distinct >= 0  # what nothing is known of has its own address
        moved = np.zeros(len(distinct), np.int64)
        found = distinct[known]
        moved[known] = (self._table.offset[found] - self._table.address[found]).view(np.int64)
        offsets, origin = addresses + moved[row_of], origins.of[row_of]
        lines = _Numbers([("???", 0)])
        line = np.zeros(len(addresses), np.int64)
        tables = LineTables()
        modules = _Numbers([module for _, module in origins.all])
        for number, module in enumerate(modules.all):
            if module.startswith("/"):
                mine = np.flatnonzero(modules.of[origin] == number)
                for n, source in zip(mine, tables.lookup(module, offsets[mine].view(np.uint64)), strict=True):
                    if source is not None:
                        line[n] = lines.number(source)
        distinct, out = numbered(origin * len(lines.all) + line, len(origins.all) * len(lines.all))
        pairs = (divmod(key, len(lines.all)) for key in distinct.tolist())
        return [(*origins.all[of], *lines.all[at]) for of, at in pairs], out


class _Numbers:
    """Numbers for distinct things, from 0 on; `of` those (int64) that it begins with."""

    def __init__(self, things: Sequence[Any]) -> None:
        self._number: dict[Any, int] = {}
        self.all: list[Any] = []
        self.of = np.array([self.number(thing) for thing in things], np.int64)

    def number(self, thing: Any) -> int:
        """The number of a thing."""
        found = self._number.setdefault(thing, len(self.all))
        if found == len(self.all):
            self.all.append(thing)
        return found
