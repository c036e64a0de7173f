"""Instruction types: how many instructions a thread executed of each group.

A rep-prefixed instruction is one instruction however often it iterates, as in
every count of livepro. (MICA counts its iterations.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from livepro.model import BlockTable, Instruction, ThreadCounts
from livepro.model.itypes import DEFAULT_GROUPS, OTHER, Identifier, IdentifierType, ItypesSpec


def itypes(table: BlockTable, thread: ThreadCounts, spec: ItypesSpec | None = None) -> dict[str, int]:
    """Instructions executed by `thread` in each group, in output order, zeros included.

    The groups are DEFAULT_GROUPS, or those of `spec` and last OTHER. An
    instruction counts in every group that it is in, once in each: the counts
    sum to more than the thread's instructions.
    """
    grouping = Grouping(spec)
    counts = dict.fromkeys(grouping.names, 0)
    for instruction, count in _executed(table, thread):
        for group in grouping.groups(instruction):
            counts[group] += count
    return counts


def other_items(
    table: BlockTable, thread: ThreadCounts, spec: ItypesSpec | None = None
) -> list[tuple[str, int]]:
    """What `other` consists of: (category, instructions executed), most first, then by name.

    The counts sum to `itypes(table, thread, spec)["other"]`.
    """
    grouping = Grouping(spec)
    counts: Counter[str] = Counter()
    for instruction, count in _executed(table, thread):
        if OTHER in grouping.groups(instruction):
            counts[instruction.category] += count
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _executed(table: BlockTable, thread: ThreadCounts) -> Iterator[tuple[Instruction, int]]:
    """The distinct encodings that the thread executed, and how often."""
    counts = thread.form_counts(table).tolist()
    return ((form, count) for form, count in zip(table.instructions, counts, strict=True) if count)


class Grouping:
    """Which groups an instruction is in, by the default rules or by a specification."""

    def __init__(self, spec: ItypesSpec | None) -> None:
        self._default = spec is None
        self.names = DEFAULT_GROUPS if spec is None else spec.names
        self._by_identifier: dict[Identifier, set[str]] = {}
        if spec is not None:
            for name, group in zip(spec.names, spec.groups, strict=False):  # OTHER has no identifiers
                for identifier in group:
                    self._by_identifier.setdefault(identifier, set()).add(name)

    def groups(self, instruction: Instruction) -> frozenset[str]:
        """Names of the groups that hold `instruction`, at least one.

        `other` holds what no CATEGORY or OPCODE identifier picks. MICA's README
        excepts memory reads and writes from deciding that; register transfers
        do not decide it in MICA either (mica_itypes.cpp, instrument_itypes).
        """
        if self._default:
            return frozenset(instruction.itypes)
        found = self._picked(IdentifierType.CATEGORY, instruction.category) | self._picked(
            IdentifierType.OPCODE, instruction.opcode
        )
        if not found:
            found = frozenset((OTHER,))
        for special, applies in (
            ("mem_read", instruction.reads_memory),
            ("mem_write", instruction.writes_memory),
            ("reg_transfer", instruction.register_move),
        ):
            if applies:
                found |= self._picked(IdentifierType.SPECIAL, special)
        return found

    def _picked(self, kind: IdentifierType, name: str) -> frozenset[str]:
        return frozenset(self._by_identifier.get(Identifier(kind, name), ()))
