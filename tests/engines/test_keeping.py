"""Translations of modules, lifted out of one process and put into another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from model_builders import NOP, RET

from livepro.engines.translate.persist import keeping
from livepro.engines.translate.persist.keeping import PersistedCache
from livepro.engines.translate.persist.module import FIELD_ARRAYS, Origin, PersistedModule, order_by_heat
from livepro.engines.translate.translator.emitted import Field
from livepro.isa import for_machine
from livepro.isa.kinds import dump, restore


def persisted(blocks: int = 3, **replaced: np.ndarray) -> PersistedModule:
    """A module of so many blocks of two bytes, whose one-field image counts in row 1."""
    none = np.zeros(0, np.int32)
    numbers = np.arange(blocks, dtype=np.int32)
    arrays = dict.fromkeys(PersistedModule.__dataclass_fields__, none) | {
        "hot": np.array([8], np.int64),
        "ranks": numbers[::-1],
        "image": np.frombuffer(
            (0x1008).to_bytes(4, "little") + (100).to_bytes(4, "little") + b"cold", np.uint8
        ),
        "cell_fields": np.array([0], np.int32),
        "out_fields": np.array([4], np.int32),
        "pcs": numbers * 2,
        "starts": numbers * 4,
        "lengths": numbers * 0 + 2,
        "code_sizes": numbers * 0 + 2,
        "steps": np.ones(blocks * 2, np.uint8),
        "code": np.arange(blocks * 2, dtype=np.uint8),
        "kinds": np.array([0, 1] * blocks, np.uint16),
        "kind_facts": np.frombuffer(dump([RET, NOP]), np.uint8),
        "origin": np.array([0x1000, 0x9000, 0x7000], np.int64),
    }
    return PersistedModule(**(arrays | replaced))


def test_a_module_comes_back_as_it_was(tmp_path: Path) -> None:
    cache = PersistedCache(tmp_path, "kind")
    cache.write(cache.key("a file"), persisted())
    back = PersistedCache(tmp_path, "kind").read(cache.key("a file"))
    assert back is not None
    assert {n: a.tolist() for n, a in back.arrays().items()} == {
        n: a.tolist() for n, a in persisted().arrays().items()
    }
    assert back.source(1) == (2, b"\2\3", b"\1\1")
    pcs, codes, steps, kinds = back.rows(np.array([0, 2]))
    assert (pcs, codes, steps) == ([0, 4], [b"\0\1", b"\4\5"], [b"\1\1", b"\1\1"])
    assert kinds.tolist() == [0, 1, 0, 1]
    assert [restore(row) for row in back.instructions] == [RET, NOP]
    assert back.overlapping(3, 5) == [2, 4]


def test_only_growth_is_worth_writing(tmp_path: Path) -> None:
    store = PersistedCache(tmp_path, "kind")
    assert store.wants("k", 1)
    store.write("k", persisted(1024))
    assert not store.wants("k", 1026)
    assert store.wants("k", 1027)
    store.write("k", persisted(1 << 18))
    assert not store.wants("k", (1 << 18) + (1 << 12))
    assert store.wants("k", (1 << 18) + (1 << 12) + 1)


def test_a_module_goes_to_another_place() -> None:
    """The module moved up by 0x100, its cache by 0x30: what leads out of the cache by 0xD0."""
    parts = persisted().placed(Origin(0x1100, 0x9030, 0x7000), first_cell=5, numbers=None)
    assert parts is not None
    hot, cold = parts
    assert hot.view("<i4").tolist() == [0x1008 + 5 * 8, 100 + 0xD0]
    assert cold.tobytes() == b"cold"


def test_a_module_stays_where_it_cannot_go() -> None:
    there = Origin(0x1000 + (1 << 33), 0x9000, 0x7000)
    assert persisted().placed(there, 0, None) is None  # out of reach
    fixed = persisted(out_fields=np.zeros(0, np.int32), fixed_fields=np.array([0], np.int32))
    assert fixed.placed(there, 0, None) is None  # an address in 32 bits
    assert fixed.placed(Origin(0x1000, 0x5000, 0x7000), 0, None) is not None


def test_every_kind_of_field_has_its_array() -> None:
    assert set(FIELD_ARRAYS) == set(Field)
    assert set(FIELD_ARRAYS.values()) <= set(PersistedModule.__dataclass_fields__)


def test_counters_of_hot_blocks_lie_together() -> None:
    """Those within the same power of four in their blocks' order, all others behind."""
    assert order_by_heat(np.array([0, 5, 100_000, 90_000, 0])).tolist() == [3, 2, 0, 1, 4]


def test_ranks_lead_back_to_rows() -> None:
    assert persisted().row_of.tolist() == [2, 1, 0]


def test_a_child_leaves_to_its_parent_what_both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has made beyond that is kept from one block in eight on, and what the parent has not at all."""

    def space(**blocks: int) -> Any:
        caches = [SimpleNamespace(key=key, blocks=[None] * count, used=[]) for key, count in blocks.items()]
        flusher = SimpleNamespace(could_hold=lambda blocks, size: True)
        return SimpleNamespace(memory=SimpleNamespace(caches=SimpleNamespace(all=caches)), flusher=flusher)

    written: list[str] = []
    store: Any = SimpleNamespace(
        wants=lambda key, blocks: True, write=lambda key, persisted: written.append(key)
    )
    monkeypatch.setattr(keeping, "_alone", lambda space, cache: True)
    monkeypatch.setattr(keeping, "capture", lambda space, cache, describe: None)
    child, parent = space(same=80, little=88, more=92, own=1), space(same=80, little=78, more=80)
    keeping.keep(child, store, for_machine("x86_64").describe, parent)
    assert written == ["more", "own"]
    keeping.keep(child, store, for_machine("x86_64").describe)
    assert written[2:] == ["same", "little", "more", "own"]
