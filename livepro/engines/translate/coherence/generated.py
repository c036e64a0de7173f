"""Code that is made while the program runs: who made it, and when it has become another's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

from livepro.jvm.labels import Labeller
from livepro.model.label import CodeLabel, Origin
from livepro.tracee import TracedProcess

if TYPE_CHECKING:
    from livepro.names.generated import GeneratedNames

_PAGE_SHIFT = 12


class GeneratedCode:
    """Labels of the blocks of one address space that are translated from generated code.

    `labels` are by counter slot. Generated code gives its place up to other code: `drop` is
    then called with the program's address of each block that belongs to what is gone. A
    compiled method's first blocks can be, byte for byte, those of an earlier method at the
    same place; what is executed of them before the first difference is reached is the only
    thing that counts as the earlier one's. The names that other JIT compilers give their code come
    from what they write down for perf.
    """

    def __init__(self, process: TracedProcess, drop: Callable[[int], None]) -> None:
        self._process = process
        self._labeller = Labeller(process, self._replaced)
        self._names: GeneratedNames | None = None
        self._looked = False
        self._drop = drop
        self._pages: dict[int, set[int]] = {}  # blocks' addresses
        self._unknown: dict[int, int] = {}
        self.labels: dict[int, CodeLabel] = {}

    def use(self, labeller: Labeller) -> None:
        """Have code labelled by a labeller that has been prepared before."""
        labeller.replaced = self._replaced
        self._labeller = labeller

    def look_again(self) -> None:
        """Have what is asked for next looked at as it is then."""
        self._labeller.look_again()
        self._looked = False

    def label(self, pc: int) -> CodeLabel | None:
        """What the code at `pc` is, since it was last told to look again."""
        label = self._labeller.label(pc)
        if label is not None:
            return label
        name = self._name(pc)
        return CodeLabel(Origin.GENERATED, 0, name) if name else None

    def note(self, pc: int, slot: int, label: CodeLabel | None) -> None:
        """A block of generated code that has this label has been translated; `slot` counts it."""
        self._pages.setdefault(pc >> _PAGE_SHIFT, set()).add(pc)
        if label is None:
            self._unknown[slot] = pc
        else:
            self.labels[slot] = label

    def begin_anew(self) -> None:
        """All blocks have been dropped."""
        self._pages.clear()

    def repair(self) -> None:
        """Label what could not be labelled when it was translated, as far as it is still there."""
        if self._unknown:
            self._looked = False
        for slot, pc in list(self._unknown.items()):
            label = self.label(pc)
            if label is not None:
                self.labels[slot] = label
                del self._unknown[slot]

    def fork_into(self, child: GeneratedCode) -> None:
        """Let a forked child know the same."""
        child.labels = self.labels.copy()
        child._pages = {page: addresses.copy() for page, addresses in self._pages.items()}
        child._unknown = self._unknown.copy()
        child._names = None if self._names is None else self._names.fork(child._process)

    def _name(self, pc: int) -> str:
        """What a JIT compiler calls the code at `pc`, empty where it does not say."""
        if self._names is None:
            from livepro.names.generated import GeneratedNames

            self._names = GeneratedNames(self._process)
        if not self._looked:
            self._looked = True
            for start, end in self._names.look():
                self._replaced(start, end)
        return self._names.find(pc)

    def _replaced(self, start: int, end: int) -> None:
        first, last = start >> _PAGE_SHIFT, end - 1 >> _PAGE_SHIFT
        if last - first < len(self._pages):
            there = [self._pages[page] for page in range(first, last + 1) if page in self._pages]
        else:
            there = [found for page, found in self._pages.items() if first <= page <= last]
        for pc in sorted(pc for pc in chain.from_iterable(there) if start <= pc < end):
            self._pages[pc >> _PAGE_SHIFT].discard(pc)
            self._drop(pc)
