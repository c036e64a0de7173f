"""Reads the program's code block by block, with facts about each instruction."""

from __future__ import annotations

from collections.abc import Callable

from livepro.engines.translate.translator.aarch64.facts import Exclusive, Facts, Kind, learn
from livepro.engines.translate.translator.source import MOST_KNOWN, SourceBlock
from livepro.isa.access import ALL_64

_LONGEST = 16  # blocks that a sequence may go through


class Text:
    """A piece of a program's code: its bytes from address `base` on, and the words in them."""

    def __init__(self, base: int, code: bytes) -> None:
        self.base = base
        self.code = code
        self.end = base + len(code)
        self.words = memoryview(code)[: len(code) & -4].cast("I")


class Reader:
    """Decodes basic blocks, with facts shared by all code that a run meets."""

    def __init__(self) -> None:
        self._known: dict[int, Facts] = {}

    def trim(self) -> None:
        """Forget what encodings mean where there are very many: generated code has ever new ones."""
        if len(self._known) > MOST_KNOWN:
            self._known = {}

    def decode(self, text: Text, pc: int) -> SourceBlock:
        """The basic block at `pc`, which lies in `text`. Empty when its first instruction
        cannot be read or decoded; `cut` when the text ends before the block does."""
        begin = pc - text.base
        known, words = self._known, text.words
        facts_of: list[Facts] = []
        special: list[int] = []
        if begin & 3 or text.base & 3:
            return SourceBlock(pc, b"", [0], facts_of, special, 0, True, True)
        for index in range(begin >> 2, len(words)):
            word = words[index]
            facts = known.get(word)
            if facts is None:
                facts = known[word] = learn(word)
            if facts.simple:
                facts_of.append(facts)
                continue
            if facts.kind is Kind.INVALID:
                return self._block(text, pc, facts_of, special, 0, cut=True, invalid=True)
            special.append(len(facts_of))
            facts_of.append(facts)
            if facts.ends:
                distance = facts.distance
                target = (text.base + 4 * index + distance) & ALL_64 if distance else 0
                if not distance and facts.kind in (Kind.JUMP, Kind.BRANCH, Kind.CALL):
                    target = text.base + 4 * index
                return self._block(text, pc, facts_of, special, target)
        return self._block(text, pc, facts_of, special, 0, cut=True)

    @staticmethod
    def _block(
        text: Text,
        pc: int,
        facts: list[Facts],
        special: list[int],
        target: int,
        *,
        cut: bool = False,
        invalid: bool = False,
    ) -> SourceBlock:
        size = 4 * len(facts)
        begin = pc - text.base
        offsets = list(range(0, size + 1, 4))
        return SourceBlock(pc, text.code[begin : begin + size], offsets, facts, special, target, cut, invalid)

    @staticmethod
    def rest_of_sequence(decode: Callable[[int], SourceBlock | None], pc: int) -> list[SourceBlock]:
        """The blocks from `pc` on up to the one with a store-exclusive, as straight code (with
        branches out of it) leads there; none if it does not."""
        blocks: list[SourceBlock] = []
        while len(blocks) < _LONGEST:
            block = decode(pc)
            if block is None:
                return []
            blocks.append(block)
            exclusive = next((facts.exclusive for facts in block.facts if facts.exclusive), None)
            if exclusive is not None:
                return blocks if exclusive is Exclusive.CLOSES else []
            if block.facts[-1].kind is not Kind.BRANCH:
                return []
            pc = block.end
        return []

    @staticmethod
    def live_in(block: SourceBlock | None) -> int:
        """Nothing: what is emitted leaves flags alone."""
        return 0
