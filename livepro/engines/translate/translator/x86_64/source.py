"""The program's basic blocks as the translator reads them: lengths, facts, targets."""

from __future__ import annotations

from collections.abc import Callable

from iced_x86 import Decoder, DecoderError

from livepro.engines.translate.translator.source import MOST_KNOWN, SourceBlock
from livepro.engines.translate.translator.x86_64.facts import ALL, Facts, FactTable, Kind
from livepro.isa.access import ALL_64

_SIGRETURN = 15  # rt_sigreturn: arch/x86/entry/syscalls/syscall_64.tbl
_DIRECT = frozenset((Kind.JUMP, Kind.BRANCH, Kind.CALL, Kind.COUNTED))

# Direct branches without prefixes by their first byte: (opcode bytes, displacement
# bytes); 0F is a jcc if 80 to 8F follows (SDM vol. 2, appendix A).
_BRANCHES = {0xE8: (1, 4), 0xE9: (1, 4), 0xEB: (1, 1), 0x0F: (2, 4)} | dict.fromkeys(range(112, 128), (1, 1))


def _up_to_return(block: SourceBlock) -> SourceBlock:
    """The part of a block up to a return from a signal handler, if it has one."""
    number = -1
    for index in block.special:
        facts = block.facts[index]
        if facts.kind is Kind.SYSCALL and number == _SIGRETURN:
            count = index + 1
            offsets = block.offsets[: count + 1]
            special = [i for i in block.special if i < count]
            code = block.code[: offsets[-1]]
            return SourceBlock(block.pc, code, offsets, block.facts[:count], special, 0, False, leaves=True)
        if facts.number != -2:
            number = facts.number
    return block


class Text:
    """A piece of a program's code: its bytes from address `base` on, with a decoder over them."""

    def __init__(self, base: int, code: bytes) -> None:
        self.base = base
        self.code = code
        self.end = base + len(code)
        self.decoder = Decoder(64, code, ip=base)


class Reader:
    """Decodes basic blocks, with facts shared by all code that a run meets."""

    def __init__(self) -> None:
        self._facts = FactTable()

    def trim(self) -> None:
        """Forget what encodings mean where there are very many: generated code has ever new ones."""
        if len(self._facts.known) > MOST_KNOWN:
            self._facts = FactTable()

    def decode(self, text: Text, pc: int) -> SourceBlock:
        """The basic block at `pc`, which lies in `text`. Empty when its first instruction
        cannot be read or decoded; `cut` when the text ends before the block does."""
        code, decoder = text.code, text.decoder
        begin = at = pc - text.base
        decoder.position = at
        decoder.ip = pc
        decode = decoder.decode
        known = self._facts.known
        offsets = [0]
        facts_of: list[Facts] = []
        special: list[int] = []
        size = len(code)
        returns = False
        while at < size:
            # Direct branches, the ends of most blocks, need no decoder.
            branch = _BRANCHES.get(code[at])
            if branch is not None:
                block = self._branch(code, pc, begin, at, offsets, facts_of, special, branch)
                if block is not None:
                    return _up_to_return(block) if returns else block
            instruction = decode()
            end = decoder.position
            facts = known.get(code[at:end])
            if facts is None:
                if decoder.last_error == DecoderError.NO_MORE_BYTES:
                    break
                facts = self._facts.learn(
                    code[at:end], instruction, decoder.get_constant_offsets(instruction)
                )
            if not facts.simple:
                if facts.kind is Kind.INVALID:
                    return SourceBlock(pc, code[begin:at], offsets, facts_of, special, 0, True, True)
                special.append(len(facts_of))
                if facts.number == _SIGRETURN:
                    returns = True
            offsets.append(end - begin)
            facts_of.append(facts)
            at = end
            if facts.ends:
                target = instruction.near_branch_target if facts.kind in _DIRECT else 0
                block = SourceBlock(pc, code[begin:at], offsets, facts_of, special, target, False)
                return _up_to_return(block) if returns else block
        block = SourceBlock(pc, code[begin:at], offsets, facts_of, special, 0, True)
        return _up_to_return(block) if returns else block

    def _branch(
        self,
        code: bytes,
        pc: int,
        begin: int,
        at: int,
        offsets: list[int],
        facts_of: list[Facts],
        special: list[int],
        branch: tuple[int, int],
    ) -> SourceBlock | None:
        """End a block with the direct branch at `at`, given its (opcode bytes, displacement bytes)."""
        opcode, width = branch
        if opcode == 2 and (at + 1 >= len(code) or code[at + 1] & 0xF0 != 0x80):
            return None  # 0F: not a jcc
        end = at + opcode + width
        if end > len(code):
            return None
        key = code[at : at + opcode]
        facts = self._facts.branches.get(key)
        if facts is None:
            instruction = Decoder(64, code[at:end], ip=pc).decode()
            facts = self._facts.branches[key] = self._facts.learn(code[at:end], instruction, None)
        target = pc + end - begin + int.from_bytes(code[at + opcode : end], "little", signed=True)
        special.append(len(facts_of))
        offsets.append(end - begin)
        facts_of.append(facts)
        return SourceBlock(pc, code[begin:end], offsets, facts_of, special, target & ALL_64, False)

    @staticmethod
    def rest_of_sequence(decode: Callable[[int], SourceBlock | None], pc: int) -> list[SourceBlock]:
        """None: there are no exclusive sequences."""
        return []

    @staticmethod
    def live_in(block: SourceBlock | None) -> int:
        """Flags that a block may read before it has overwritten them (all, if it leaves some
        alone or is not known)."""
        live = ALL
        if block is None:
            return live
        for facts in reversed(block.facts):
            live = live & ~facts.kills | facts.reads
        return live
