"""Random code as a tree, and its layout as bytes.

A sequence is a few functions; a function is a tree of nodes; a node's parts are
machine instructions and lists of further nodes. The tree is what the shrinker
takes apart; `assemble` turns what is left of it into bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from iced_x86 import Code, Encoder, Instruction, Register


def words(text: str) -> tuple[str, ...]:
    """The words of a list that is easier to read without quotes."""
    return tuple(text.split())


DATA_CENTRE = 1024
"""Offset in a sequence's data area to which displacements relate."""


@dataclass(frozen=True)
class Label:
    """A place in the code."""

    id: int


@dataclass(frozen=True)
class Raw:
    """Bytes as they are: an encoding that iced's encoder would not choose."""

    code: bytes


@dataclass(frozen=True)
class Ins:
    """An instruction. `data` is the offset from the centre of the sequence's
    data area that its memory operand addresses absolutely or relative to the
    program counter; `label` the place that it addresses (or whose address its
    immediate operand is, when `immediate`); `after` is added to the place."""

    instruction: Instruction
    data: int | None = None
    label: int | None = None
    immediate: bool = False
    after: int = 0


@dataclass(frozen=True)
class Branch:
    """A direct branch. `short` and `near` are its codes (`near` None: it has only
    the short one). `prefix` is put before it."""

    short: int | None
    near: int | None
    target: int
    want_short: bool = False
    prefix: bytes = b""


@dataclass(frozen=True)
class Word:
    """An entry of a jump table: the address of `label` (8 bytes), or its distance
    from `base` (4 bytes)."""

    label: int
    base: int | None = None


Item = Label | Raw | Ins | Branch | Word


@dataclass(frozen=True)
class Node:
    """Part of a function: items and bodies (lists of nodes) in order. `pool` is
    read-only data that it needs, placed behind the code. `cost` bounds the
    number of instructions executed."""

    parts: tuple[tuple[Item, ...] | list[Node], ...]
    pool: tuple[Item, ...] = ()
    cost: int = 1

    def bodies(self) -> Iterator[list[Node]]:
        """The lists of nodes among the parts."""
        for part in self.parts:
            if isinstance(part, list):
                yield part


@dataclass(frozen=True)
class State:
    """The machine state that a sequence starts from. `registers` are rax to r15
    in the order of their encoding; `anchor` (None: none) is the one that holds
    the address of the data area's centre, and rsp is always the stack's."""

    registers: tuple[int, ...]
    flags: int
    mxcsr: int
    x87: bytes
    masks: tuple[int, ...]
    vectors: bytes
    data: bytes
    stack: bytes
    anchor: int | None


@dataclass(frozen=True)
class Sequence:
    """One test case: functions (the first one is called by the driver) and a state.

    `seed` reproduces it. A function's first item is the label `entries` gives.
    """

    seed: str
    functions: tuple[Node, ...]
    entries: tuple[int, ...]
    state: State = field(repr=False)

    def items(self) -> list[Item]:
        """Everything in the order of layout, without the functions that nothing refers to."""
        kept: list[int] = []
        wanted = [0]
        texts = [list(_flatten([function])) for function in self.functions]
        pools = [list(_pools([function])) for function in self.functions]
        owner = {entry: index for index, entry in enumerate(self.entries)}
        while wanted:
            index = wanted.pop()
            if index in kept:
                continue
            kept.append(index)
            wanted.extend(owner[ref] for ref in _references(texts[index] + pools[index]) if ref in owner)
        kept.sort()
        return [item for part in (texts, pools) for index in kept for item in part[index]]

    def with_functions(self, functions: Iterable[Node]) -> Sequence:
        """The same test with other code."""
        return replace(self, functions=tuple(functions))


def _flatten(nodes: Iterable[Node]) -> Iterator[Item]:
    for node in nodes:
        for part in node.parts:
            if isinstance(part, list):
                yield from _flatten(part)
            else:
                yield from part


def _pools(nodes: Iterable[Node]) -> Iterator[Item]:
    for node in nodes:
        yield from node.pool
        for body in node.bodies():
            yield from _pools(body)


def _references(items: Iterable[Item]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Ins) and item.label is not None:
            yield item.label
        elif isinstance(item, Branch):
            yield item.target
        elif isinstance(item, Word):
            yield item.label


def upper_size(nodes: Iterable[Node]) -> int:
    """No fewer bytes than the nodes will take."""
    return sum(_bound(item) for item in _flatten(nodes))


def _bound(item: Item) -> int:
    if isinstance(item, Label):
        return 0
    if isinstance(item, Raw):
        return len(item.code)
    return 15 if isinstance(item, Ins) else 9


@dataclass(frozen=True)
class Assembled:
    """Bytes at `address`, and where its instructions are: (address, size) in order."""

    address: int
    code: bytes
    instructions: tuple[tuple[int, int], ...]


def assemble(items: list[Item], address: int, data: int) -> Assembled:
    """Lay `items` out from `address`; `data` is the address of the data area's centre.

    A branch that should be short and does not reach becomes near. Raises
    ValueError when one that has no near form does not reach.
    """
    encoder = Encoder(64)
    short = [isinstance(item, Branch) and (item.want_short or item.near is None) for item in items]
    sizes = [_size(encoder, item, address, data) for item in items]
    while True:
        places, labels = _places(items, sizes, short, address)
        grown = False
        for index, item in enumerate(items):
            if short[index] and isinstance(item, Branch) and item.target in labels:
                distance = labels[item.target] - places[index] - len(item.prefix) - 2
                if not -128 <= distance <= 127 and item.near is not None:
                    short[index] = False
                    grown = True
        if not grown:
            break
    out = bytearray()
    instructions: list[tuple[int, int]] = []
    for index, item in enumerate(items):
        code = _encode(encoder, item, places[index], labels, data, short[index])
        if code and not isinstance(item, Word):
            instructions.append((places[index], len(code)))
        out += code
        if places[index] + len(code) != places[index + 1]:
            raise ValueError(f"length changed in layout: {item}")
    return Assembled(address, bytes(out), tuple(instructions))


def _places(
    items: list[Item], sizes: list[int], short: list[bool], address: int
) -> tuple[list[int], dict[int, int]]:
    places = [address]
    labels: dict[int, int] = {}
    for item, size, brief in zip(items, sizes, short, strict=True):
        if isinstance(item, Label):
            labels[item.id] = address
        elif isinstance(item, Branch):
            size = len(item.prefix) + (_short_size(item) if brief else _near_size(item))
        address += size
        places.append(address)
    return places, labels


def _near_size(item: Branch) -> int:
    return 5 if item.near in (Code.JMP_REL32_64, Code.CALL_REL32_64) else 6


def _short_size(item: Branch) -> int:
    # With a 32-bit counter, loop and jrcxz carry an address-size prefix.
    return 3 if item.short in _ADDRESS_PREFIXED else 2


_ADDRESS_PREFIXED = frozenset(
    (Code.JECXZ_REL8_64, Code.LOOP_REL8_64_ECX, Code.LOOPE_REL8_64_ECX, Code.LOOPNE_REL8_64_ECX)
)


def _size(encoder: Encoder, item: Item, address: int, data: int) -> int:
    """The item's size (0 for branches: it depends on the layout)."""
    if isinstance(item, Branch):
        return 0
    return len(_encode(encoder, item, address, _Anywhere(address), data, False))


class _Anywhere(dict[int, int]):
    """Labels before the layout: all at one address."""

    def __init__(self, address: int) -> None:
        self.address = address

    def __missing__(self, key: int) -> int:
        return self.address


def _encode(
    encoder: Encoder, item: Item, address: int, labels: dict[int, int], data: int, short: bool
) -> bytes:
    if isinstance(item, Label):
        return b""
    if isinstance(item, Raw):
        return item.code
    if isinstance(item, Word):
        if item.base is None:
            return _label(labels, item.label).to_bytes(8, "little")
        return (_label(labels, item.label) - labels[item.base]).to_bytes(4, "little", signed=True)
    if isinstance(item, Branch):
        code = item.short if short else item.near
        target = _label(labels, item.target)
        encoder.encode(Instruction.create_branch(code, target), address + len(item.prefix))
        return item.prefix + encoder.take_buffer()
    instruction = item.instruction
    target = 0
    if item.data is not None:
        target = data + item.data
    elif item.label is not None:
        target = _label(labels, item.label) + item.after
    if item.immediate:
        instruction.set_immediate_u64(1, target)
    elif item.data is not None or item.label is not None:
        if instruction.memory_base == Register.EIP:
            target &= 0xFFFFFFFF
        instruction.memory_displacement = target
    encoder.encode(instruction, address)
    return encoder.take_buffer()


def _label(labels: dict[int, int], label: int) -> int:
    """Where `label` is. Raises ValueError when it is not among the items (the shrinker took it)."""
    if isinstance(labels, _Anywhere):
        return labels.address
    if label not in labels:
        raise ValueError(f"no label {label}")
    return labels[label]
