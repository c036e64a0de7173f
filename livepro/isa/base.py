"""What an instruction set gives to the rest of livepro."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from livepro.model import Flow, Instruction


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """The straight line from `address` to the next control-flow instruction.

    `addresses` has one entry per instruction and, last, the address behind the
    block. `flows` and `reps` have one entry per instruction. `target` is where
    a direct terminator leads (None otherwise). `truncated` says that the bytes
    given ended before a terminator: what was decoded is whole, and the rest
    must be read and decoded as part of the same block.
    """

    address: int
    code: bytes
    addresses: tuple[int, ...]
    flows: tuple[Flow, ...]
    reps: tuple[bool, ...]
    target: int | None
    truncated: bool

    def __len__(self) -> int:
        return len(self.flows)


class Isa(Protocol):
    """One instruction set. Implementations are stateless but for memo tables."""

    name: str
    """As `uname -m` names it."""

    max_instruction: int
    """Longest encoding in bytes."""

    def decode_block(self, code: bytes, address: int) -> CodeBlock:
        """Decode from `address` to the first terminator or the end of `code`.

        Undecodable bytes end the block: as an INVALID instruction of its own
        (length 1 on x86-64, 4 on AArch64).
        """

    def describe(self, code: bytes) -> Instruction:
        """Facts about the one instruction encoded in `code` (memoised)."""

    def disassemble(self, code: bytes, address: int) -> str:
        """`code`'s one instruction as text, its targets as seen from `address`."""
