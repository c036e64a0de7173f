"""Kinds of instruction: what is said of an encoding, apart from the encoding itself."""

from __future__ import annotations

from collections.abc import Callable

from livepro.model import Instruction


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
            instruction = self._describe(code)
            number = self._by_kind.setdefault(instruction.kind, len(self.instructions))
            if number == len(self.instructions):
                self.instructions.append(instruction)
            self._by_code[code] = number
        return number

    def split(self, code: bytes, sizes: bytes) -> list[int]:
        """The kinds of consecutive instructions of the given sizes."""
        out = []
        at = 0
        for size in sizes:
            out.append(self(code[at : at + size]))
            at += size
        return out
