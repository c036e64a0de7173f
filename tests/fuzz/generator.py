"""Random sequences: functions of nested statements around instructions from the table."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from . import asm, calls
from .blocks import BLOCKS
from .code import DATA_CENTRE, Item, Label, Node, Sequence, State
from .control import Labels, Scope
from .faults import fault
from .operands import INTERESTING, Context, Unsuitable, number, straight
from .table import forms

DATA_SIZE = 2 * DATA_CENTRE
STACK_SIZE = 2048
STACK_TOP = 1536
"""Offset in the stack area of rsp before the driver's call."""

MAX_COST = 260
"""Bound of the number of instructions that a sequence executes, calls included."""

_FAMILIES = {"integer": 62, "sse": 11, "avx": 9, "avx512": 10, "x87": 6, "mmx": 2}


@dataclass(frozen=True)
class Options:
    """What a program's sequences have in common: `low` addresses (below 2**31),
    `writable` code; `faults` is the share of sequences that end in a fault."""

    low: bool = True
    writable: bool = False
    faults: float = 0.15


def sequence(seed: str, options: Options) -> Sequence:
    """The sequence that `seed` stands for."""
    rng = random.Random(seed)
    for _ in range(1000):
        made = _Builder(rng, options).build(seed)
        if made is not None:
            return made
    raise AssertionError(f"no sequence of acceptable length from seed {seed}")


class _Builder:
    """One attempt at a sequence."""

    def __init__(self, rng: random.Random, options: Options) -> None:
        self.rng = rng
        self.options = options
        self.labels = Labels()
        self.anchor = rng.choice((None, *[n for n in range(16) if n != asm.RSP] * 3))
        self.functions: list[Node] = []
        self.entries: list[int] = []
        self.costs: list[int] = []
        self.pops: list[int] = []  # bytes of arguments that each function removes
        flavour = rng.randrange(4)
        if flavour == 0:  # no vectors at all
            self.families = {"integer": 1}
        elif flavour == 1:  # vectors above all
            self.families = dict.fromkeys(_FAMILIES, 10)
        else:
            self.families = dict(_FAMILIES)
        self.families = {name: weight for name, weight in self.families.items() if name in forms()}

    def build(self, seed: str) -> Sequence | None:
        rng = self.rng
        # Callees first, so that a caller knows what its calls cost.
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            self._function(rng.randrange(1, 6), leaf=not self.functions)
        self._function(rng.randrange(3, 16), leaf=False, main=True)
        if self.costs[-1] > MAX_COST:
            return None
        return Sequence(
            seed, tuple(reversed(self.functions)), tuple(reversed(self.entries)), _state(rng, self.anchor)
        )

    def _function(self, statements: int, *, leaf: bool, main: bool = False) -> None:
        context = Context(
            self.rng,
            low=self.options.low,
            writable=self.options.writable,
            anchor=self.anchor,
            reserved=frozenset({asm.RSP} | ({self.anchor} if self.anchor is not None else set())),
        )
        entry = self.labels.new()
        pops = 0 if main or self.rng.random() < 0.7 else 8 * self.rng.randrange(1, 4)
        body = self.body(context, statements, depth=0)
        if main and self.rng.random() < self.options.faults:
            body.append(fault(self.scope(context, 0)))
        node = Node(((Label(entry),), body, calls.returns(context, pops)), cost=2 + _cost(body))
        self.functions.append(node)
        self.entries.append(entry)
        self.costs.append(node.cost)
        self.pops.append(pops)

    # -- statements

    def body(self, context: Context, statements: int, depth: int) -> list[Node]:
        """So many random statements."""
        return [self.statement(context, depth) for _ in range(statements)]

    def statement(self, context: Context, depth: int) -> Node:
        """One random statement, possibly with others inside."""
        rng = self.rng
        while True:
            try:
                draw = rng.random()
                if draw < 0.62 or context.aligned:
                    return _leaf(straight(context, self._family(context)))
                if draw < 0.74:
                    blocks, weights = zip(*BLOCKS, strict=True)
                    return _leaf(rng.choices(blocks, weights)[0](context))
                scope = self.scope(context, depth)
                choices = calls.SIMPLE if depth >= 3 else calls.ALL
                makers, weights = zip(*choices, strict=True)
                return rng.choices(makers, weights)[0](scope)
            except Unsuitable:
                continue

    def scope(self, context: Context, depth: int) -> Scope:
        """What a structured statement needs of the builder."""

        def inner(changed: Context, statements: int) -> list[Node]:
            return self.body(changed, statements, depth + 1)

        callees = list(zip(self.entries, self.costs, self.pops, strict=True))
        return Scope(context, self.labels, inner, callees)

    def _family(self, context: Context) -> str:
        if context.aligned:
            return "integer"
        return self.rng.choices(list(self.families), list(self.families.values()))[0]


def _leaf(items: Iterable[Item]) -> Node:
    found = tuple(items)
    return Node((found,), cost=len(found))


def _cost(body: list[Node]) -> int:
    return sum(node.cost for node in body)


# -- the state to start from


def _state(rng: random.Random, anchor: int | None) -> State:
    return State(
        registers=tuple(number(rng, 64) for _ in range(16)),
        flags=rng.getrandbits(32) & 0x200CD5 | 2,
        mxcsr=0x1F80 | rng.getrandbits(16) & 0xE07F,
        x87=_x87(rng),
        masks=tuple(number(rng, 64) for _ in range(8)),
        vectors=b"".join(_vector(rng) for _ in range(32)),
        data=_data(rng, DATA_SIZE),
        stack=_data(rng, STACK_SIZE),
        anchor=anchor,
    )


def _x87(rng: random.Random) -> bytes:
    """An image for frstor: all exceptions masked, some registers empty."""
    control_word = 0x37F & ~0xC00 | rng.getrandbits(2) << 10
    top = rng.randrange(8)
    tags = 0
    registers = bytearray()
    for place in range(8):
        tags |= (3 if rng.random() < 0.4 else 0) << (2 * ((place + top) % 8))
        significand = rng.getrandbits(63) | 1 << 63
        exponent = rng.choice((0x3FFF, 0x4001, 0x3FFF + rng.randrange(-70, 70), 0))
        registers += significand.to_bytes(8, "little")
        registers += (exponent | rng.getrandbits(1) << 15).to_bytes(2, "little")
    words = (control_word, top << 11, tags, 0, 0, 0, 0)
    return b"".join(word.to_bytes(4, "little") for word in words) + bytes(registers)


_SINGLES = tuple(
    struct.pack("<I", bits)
    for bits in (0, 0x3F800000, 0xBF800000, 0x40490FDB, 0x7F800000, 0x7FC00000, 1, 0x4B000000)
)
_DOUBLES = tuple(struct.pack("<Q", bits) for bits in (0x3FF << 52, 0x7FF << 52, 0))
_INTEGERS = tuple(
    struct.pack("<I", value & 0xFFFFFFFF)
    for value in (*INTERESTING, *(-value for value in INTERESTING), *(range((1 << 31) - 2, (1 << 31) + 1)))
)


_DRAWN_BITS = 13


def _vector(rng: random.Random) -> bytes:
    """64 bytes: integers, or numbers that mean something as floats."""
    if rng.random() < 0.25:
        return rng.randbytes(64)
    return _drawn()[rng.getrandbits(_DRAWN_BITS)]


@functools.cache
def _drawn() -> tuple[bytes, ...]:
    """Numbers that mean something, the same for all sequences: drawing them takes longer than all else."""
    rng = random.Random("vectors")
    return tuple(_meant(rng, 1 + number % 3) for number in range(1 << _DRAWN_BITS))


def _meant(rng: random.Random, kind: int) -> bytes:
    drawn = rng.randbytes(64)
    if kind == 1:
        return b"".join(rng.choices(_SINGLES, k=16))
    if kind == 2:
        near_one = drawn[:6] + b"\xf0\x3f"
        return b"".join(rng.choices((*_DOUBLES, near_one, drawn[8:16]), k=8))
    words = (*_INTEGERS, *(drawn[at : at + 4] for at in range(0, 64, 4)))
    return b"".join(rng.choices(words, k=16))


def _data(rng: random.Random, size: int) -> bytes:
    return b"".join(_vector(rng) for _ in range(size // 64))


__all__ = ["DATA_SIZE", "STACK_SIZE", "STACK_TOP", "Options", "sequence"]
