"""Machine code written instruction by instruction, with labels: for routines that are made once."""

from __future__ import annotations

from typing import Any

from iced_x86 import BlockEncoder, Code, Decoder, Instruction, MemoryOperand, Register

Number = Any
"""Of a `Code` or a `Register` (numbers, which the annotations of iced-x86 do not take)."""
_FIRST_LABEL = 1 << 40  # an address that no instruction has


class Assembly:
    """Instructions behind one another. Operands in memory are in the thread's area: an offset there, or a
    register's value farther. A label is a number, of `label`."""

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._labels = 0
        self._at: dict[int, int] = {}

    # -- labels

    def label(self) -> int:
        """A label, to be put somewhere with `put`."""
        self._labels += 1
        return _FIRST_LABEL + self._labels

    def put(self, label: int) -> None:
        """Let a label be where the next instruction begins."""
        self._at[label] = len(self._instructions)

    def here(self) -> int:
        """A label of where the next instruction begins."""
        label = self.label()
        self.put(label)
        return label

    # -- instructions

    def simple(self, code: Number) -> None:
        """An instruction without operands."""
        self._instructions.append(Instruction.create(code))

    def register(self, code: Number, register: Number, immediate: int | None = None) -> None:
        """An instruction on a register, maybe with an immediate."""
        if immediate is None:
            self._instructions.append(Instruction.create_reg(code, register))
        else:
            self._instructions.append(Instruction.create_reg_i64(code, register, immediate))

    def registers(self, code: Number, first: Number, second: Number, immediate: int | None = None) -> None:
        """An instruction on two registers, maybe with an immediate."""
        if immediate is None:
            self._instructions.append(Instruction.create_reg_reg(code, first, second))
        else:
            self._instructions.append(Instruction.create_reg_reg_i32(code, first, second, immediate))

    def load(
        self, register: Number, offset: int, base: Number = Register.NONE, code: Number = Code.MOV_R64_RM64
    ) -> None:
        """Load from the area, or another instruction that reads there."""
        self._instructions.append(Instruction.create_reg_mem(code, register, _area(offset, base)))

    def store(
        self, register: Number, offset: int, base: Number = Register.NONE, code: Number = Code.MOV_RM64_R64
    ) -> None:
        """Store in the area, or another instruction that writes there."""
        self._instructions.append(Instruction.create_mem_reg(code, _area(offset, base), register))

    def immediate(
        self, value: int, offset: int, base: Number = Register.NONE, code: Number = Code.MOV_RM64_IMM32
    ) -> None:
        """Store a number, or another instruction on memory and a number."""
        self._instructions.append(Instruction.create_mem_i32(code, _area(offset, base), value))

    def branch(self, code: Number, label: int) -> None:
        """A branch to a label."""
        self._instructions.append(Instruction.create_branch(code, label))

    # -- what came of it

    def encoded(self) -> tuple[bytes, dict[int, int]]:
        """The code, and the offsets (bytes) of labels in it."""
        names: dict[int, int] = {}
        for label, index in self._at.items():
            names.setdefault(index, label)
            if index < len(self._instructions):
                self._instructions[index].ip = names[index]
        for instruction in self._instructions:
            if instruction.near_branch_target >= _FIRST_LABEL:
                instruction.near_branch64 = names[self._at[instruction.near_branch_target]]
        encoder = BlockEncoder(64)
        encoder.add_many(self._instructions)
        code = encoder.encode(0)
        offsets = [instruction.ip for instruction in Decoder(64, code, ip=0)]
        return code, {label: (*offsets, len(code))[index] for label, index in self._at.items()}


def _area(offset: int, base: Number) -> MemoryOperand:
    return MemoryOperand(base, displ=offset, displ_size=8, seg=Register.GS)
