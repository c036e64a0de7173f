"""The table of basic blocks: struct of arrays, so that counting is NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.model.instruction import Instruction
from livepro.model.label import CodeLabel


class BasicBlock(NamedTuple):
    """One row of the table. `id` starts at 1, in order of first execution."""

    id: int
    address: int
    size: int
    function: str
    module: str
    offset: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class BlockTable:
    """All basic blocks that one process image ran, in order of first execution.

    Row `i` is the block with id `i + 1`. `address` (uint64, B) is where it
    starts, `size` (uint32, B) its bytes, `length` (uint32, B) its instructions.
    `code` are its bytes, `step` (uint8, sum of `length`) the bytes of each
    instruction of each block, block after block, and `form` (uint32, sum of `length`)
    its row in `instructions`: one for all that differ in nothing but their
    code (registers, displacements, immediates), with the code of one of them.
    `function` is the symbol that holds the block's first byte (empty if none),
    `module` the file that its code is mapped from (or ``[vdso]``, ``[anon]``),
    `offset` (uint64, B) its offset from the module's load address (from 0 for
    code that is not file-backed).
    `label` says of each block who made its code, in a process that runs a virtual machine
    that livepro knows (None in others); `function` is then the Java method of compiled code.
    """

    address: npt.NDArray[np.uint64]
    size: npt.NDArray[np.uint32]
    length: npt.NDArray[np.uint32]
    code: tuple[bytes, ...]
    step: npt.NDArray[np.uint8]
    form: npt.NDArray[np.uint32]
    instructions: tuple[Instruction, ...]
    function: tuple[str, ...]
    module: tuple[str, ...]
    offset: npt.NDArray[np.uint64]
    label: tuple[CodeLabel, ...] | None = None

    def __len__(self) -> int:
        return len(self.code)

    @cached_property
    def start(self) -> npt.NDArray[np.int64]:
        """Index into `form` of each block's first instruction (int64, B + 1)."""
        out = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.length, out=out[1:])
        return out

    def moved(self, address: Sequence[int]) -> BlockTable:
        """The same blocks at other addresses (B), all else in common with this table."""
        other = replace(self, address=address)  # type: ignore[arg-type]
        vars(other)["start"] = self.start  # the cached property
        return other

    def block(self, row: int) -> BasicBlock:
        """Row `row` (from 0) as an object; `id` is `row + 1`."""
        within = slice(int(self.start[row]), int(self.start[row + 1]))
        ends = np.cumsum(self.step[within]).tolist()
        instructions = tuple(
            replace(self.instructions[form], code=self.code[row][begin:end])
            for form, begin, end in zip(self.form[within].tolist(), [0, *ends], ends, strict=False)
        )
        return BasicBlock(
            id=row + 1,
            address=int(self.address[row]),
            size=int(self.size[row]),
            function=self.function[row],
            module=self.module[row],
            offset=int(self.offset[row]),
            instructions=instructions,
        )


class _Addresses:
    """A table's addresses: what has been given becomes an array once it is asked for."""

    def __get__(self, table: object, owner: object) -> Any:
        if table is None:
            return self
        given = vars(table)["address"]
        if not isinstance(given, np.ndarray):
            given = vars(table)["address"] = np.array(given, np.uint64)
        return given

    def __set__(self, table: object, value: npt.NDArray[np.uint64] | Sequence[int]) -> None:
        vars(table)["address"] = value


BlockTable.address = _Addresses()  # type: ignore[assignment]
