"""Kinds of instruction: what is said of an encoding, apart from the encoding itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from livepro.model import Flow, Instruction, SimdFacts, SimdType


class Kinds:
    """Numbers kinds of instruction, the same for encodings that differ in nothing but themselves."""

    def __init__(self, describe: Callable[[bytes], Instruction]) -> None:
        self._describe = describe
        self._by_code: dict[bytes, int] = {}
        self._by_kind: dict[tuple[object, ...], int] = {}
        self.instructions: list[Instruction] = []
        """One of each kind, by number."""

    def __call__(self, code: bytes) -> int:
        number = self._by_code.get(code)
        if number is None:
            number = self._by_code[code] = self.number(self._describe(code))
        return number

    def number(self, instruction: Instruction) -> int:
        """The number of an instruction's kind."""
        number = self._by_kind.setdefault(instruction.kind, len(self.instructions))
        if number == len(self.instructions):
            self.instructions.append(instruction)
        return number

    def split(self, code: bytes, sizes: bytes) -> list[int]:
        """The kinds of consecutive instructions of the given sizes."""
        out = []
        at = 0
        for size in sizes:
            out.append(self(code[at : at + size]))
            at += size
        return out


def dump(instructions: Iterable[Instruction]) -> bytes:
    """Instructions as JSON: a row for each, its fields in order."""
    rows = []
    for i in instructions:
        simd = i.simd
        facts = simd and (
            *(simd.set, simd.type, simd.width, simd.scalar, simd.element),
            *(simd.masked, simd.extension, simd.description),
        )
        rows.append(
            (
                *(i.code.hex(), i.mnemonic, i.opcode, i.form, i.category, i.flow, i.rep),
                *(i.reads_memory, i.writes_memory, i.itypes, facts, i.register_move),
            )
        )
    return json.dumps(rows).encode()


def parse(text: bytes) -> list[Any]:
    """The rows of what `dump` gave, for `restore`."""
    rows: list[Any] = json.loads(text)
    return rows


def restore(row: Any) -> Instruction:
    """The instruction of a row."""
    code, mnemonic, opcode, form, category, flow, rep, reads, writes, itypes, simd, move = row
    facts = None
    if simd is not None:
        name, kind, *rest = simd
        facts = SimdFacts(name, SimdType(kind), *rest)
    return Instruction(
        *(bytes.fromhex(code), mnemonic, opcode, form, category, Flow(flow)),
        *(rep, reads, writes, tuple(itypes), facts, move),
    )
