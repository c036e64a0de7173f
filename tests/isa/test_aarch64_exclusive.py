"""Exclusive sequences: where they end, where they can be left, which tell their own way."""

from __future__ import annotations

from pathlib import Path

import pytest
from isa.aarch64_tools import assemble

from livepro.isa.aarch64.decoder import quirk_of
from livepro.isa.aarch64.exclusive import LONGEST, exclusive_sequence, stores_exclusive
from livepro.isa.base import ExclusiveSequence, Quirk

BASE = 0x10000


def sequence(lines: list[str], directory: Path) -> ExclusiveSequence | None:
    words = assemble([f"{line}" for line in lines], directory)
    return exclusive_sequence(b"".join(word.to_bytes(4, "little") for word in words), BASE)


def test_a_straight_sequence(tmp_path: Path) -> None:
    found = sequence(["ldaxr x0, [x1]", "add x0, x0, 1", "stlxr w2, x0, [x1]", "cbnz w2, .-12"], tmp_path)
    assert found == ExclusiveSequence((BASE, BASE + 4, BASE + 8), BASE + 12, ())
    assert found.exits == {BASE + 12}
    assert found.plain


def test_a_branch_out(tmp_path: Path) -> None:
    lines = ["ldxr w0, [x1]", "cmp w0, w3", "b.ne .+16", "stxr w2, w4, [x1]", "cbnz w2, .-16", "ret"]
    found = sequence(lines, tmp_path)
    assert found is not None
    assert found.branches == ((BASE + 8, BASE + 24),)
    assert found.exits == {BASE + 16, BASE + 24}
    assert found.plain


@pytest.mark.parametrize(
    "lines",
    [
        ["ldxp x0, x1, [x2]", "cbz x0, .+16", "cbz x1, .+12", "stxp w3, x4, x5, [x2]", "nop"],  # to one place
        ["ldxr x0, [x1]", "cbz x0, .+8", "stxr w2, x0, [x1]"],  # to where the store leads, too
        ["ldaxr w0, [x1]", "cbnz w0, .-4", "stxr w2, w3, [x1]"],  # back: a lock waited for
        ["ldxr x0, [x1]", "tbz x0, 3, .+8", "add x0, x0, 8", "stxr w2, x0, [x1]"],  # within
    ],
)
def test_ways_that_meet_are_not_plain(lines: list[str], tmp_path: Path) -> None:
    found = sequence(lines, tmp_path)
    assert found is not None
    assert not found.plain


@pytest.mark.parametrize(
    "lines",
    [
        ["ldxr x0, [x1]", "bl .+64", "stxr w2, x0, [x1]"],
        ["ldxr x0, [x1]", "b .+8", "nop", "stxr w2, x0, [x1]"],
        ["ldxr x0, [x1]", "ret"],
        ["ldxr x0, [x1]", "svc 0", "stxr w2, x0, [x1]"],
        ["ldxr x0, [x1]", *["nop"] * LONGEST, "stxr w2, x0, [x1]"],
        ["ldxr x0, [x1]", "nop"],
    ],
)
def test_no_sequence(lines: list[str], tmp_path: Path) -> None:
    assert sequence(lines, tmp_path) is None


def test_every_store_exclusive_and_nothing_else_ends_one(tmp_path: Path) -> None:
    stores = ["stxr w2, w0, [x1]", "stxr w2, x0, [x1]", "stlxr w2, x0, [x1]", "stxrb w2, w0, [x1]"]
    stores += ["stxrh w2, w0, [x1]", "stlxrb w2, w0, [x1]", "stlxrh w2, w0, [x1]"]
    stores += ["stxp w2, w0, w3, [x1]", "stxp w2, x0, x3, [x1]", "stlxp w2, x0, x3, [x1]"]
    others = ["stlr x0, [x1]", "stlrb w0, [x1]", "casp x0, x1, x2, x3, [x4]", "cas x0, x1, [x2]"]
    others += ["ldxr x0, [x1]", "ldaxp x0, x1, [x2]", "ldar x0, [x1]", "str x0, [x1]", "stllr x0, [x1]"]
    assert all(map(stores_exclusive, assemble(stores, tmp_path)))
    words = assemble(others, tmp_path)
    assert not any(map(stores_exclusive, words))
    assert [quirk_of(word) is Quirk.EXCLUSIVE for word in words].count(True) == 2
