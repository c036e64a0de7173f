"""From a failing sequence to the smallest one that still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Many
from dataclasses import replace

from .code import Ins, Item, Label, Node, Raw, Sequence, Word

Check = Callable[[Many[Sequence]], list[bool]]
"""Which of these sequences fail."""

_BATCH = 150


def shrink(sequence: Sequence, fails: Check, seconds: float = 60.0) -> Sequence:
    """The smallest failing sequence found by taking away from `sequence`, which fails.

    All candidates of a round run in one program; the smallest that fails is
    where the next round starts.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        candidates = sorted(_reductions(sequence), key=size)
        for start in range(0, len(candidates), _BATCH):
            batch = candidates[start : start + _BATCH]
            failing = next((c for c, bad in zip(batch, fails(batch), strict=True) if bad), None)
            if failing is not None:
                sequence = failing
                break
            if time.monotonic() > deadline:
                return sequence
        else:
            return sequence
    return sequence


def shrink_company(
    sequences: list[Sequence], fails: Callable[[list[Sequence]], bool], seconds: float
) -> list[Sequence]:
    """A short program that still fails, from one whose failing sequence does not fail alone.

    First sequences are taken away, then parts of those that are left. The
    result is `sequences` if the program does not fail again.
    """
    deadline = time.monotonic() + seconds
    chunk = len(sequences) // 2
    while chunk and time.monotonic() < deadline:
        start = 0
        while start < len(sequences) and time.monotonic() < deadline:
            fewer = sequences[:start] + sequences[start + chunk :]
            if fewer and fails(fewer):
                sequences = fewer
            else:
                start += chunk
        chunk //= 2
    for index in range(len(sequences)):
        again = True
        while again and time.monotonic() < deadline:
            again = False
            for smaller in _reductions(sequences[index]):
                candidate = [*sequences[:index], smaller, *sequences[index + 1 :]]
                if time.monotonic() > deadline:
                    break
                if fails(candidate):
                    sequences, again = candidate, True
                    break
    return sequences


def size(sequence: Sequence) -> int:
    """The number of instructions in it."""
    return sum(not isinstance(item, Label | Word) for item in sequence.items())


def _reductions(sequence: Sequence) -> Iterator[Sequence]:
    for index, function in enumerate(sequence.functions):
        for smaller in _reduce_node(function):
            functions = list(sequence.functions)
            functions[index] = smaller
            yield sequence.with_functions(functions)


def _reduce_node(node: Node) -> Iterator[Node]:
    for index, part in enumerate(node.parts):
        smaller: Iterator[list[Node]] | Iterator[tuple[Item, ...]]
        if isinstance(part, list):
            smaller = _reduce_body(part)
        elif len(node.parts) == 1 and all(isinstance(item, Ins | Raw) for item in part):
            # Of a statement's instructions any may go; those that hold structure together may not.
            smaller = (part[:i] + part[i + 1 :] for i in range(len(part)) if len(part) > 1)
        else:
            continue
        for new in smaller:
            yield replace(node, parts=(*node.parts[:index], new, *node.parts[index + 1 :]))


def _reduce_body(body: list[Node]) -> Iterator[list[Node]]:
    chunk = len(body)
    while chunk:
        for start in range(0, len(body), chunk):
            yield body[:start] + body[start + chunk :]
        chunk //= 2
    for index, node in enumerate(body):
        inner = [child for part in node.bodies() for child in part]
        if inner:
            yield body[:index] + inner + body[index + 1 :]
        for smaller in _reduce_node(node):
            yield [*body[:index], smaller, *body[index + 1 :]]
