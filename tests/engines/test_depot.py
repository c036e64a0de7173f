"""Kept translations: what is not trustworthy is not used, and nothing fails for it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from livepro.engines.translate import depot as depot_module
from livepro.engines.translate.depot import Depot
from livepro.engines.translate.emitted import Field
from livepro.engines.translate.unit import FIELD_ARRAYS, Origin, Unit


def unit(blocks: int = 3, **replaced: np.ndarray) -> Unit:
    """A unit of so many blocks of two bytes, whose one-field image counts in row 1."""
    none = np.zeros(0, np.int32)
    numbers = np.arange(blocks, dtype=np.int32)
    arrays = dict.fromkeys(Unit.__dataclass_fields__, none) | {
        "hot": np.array([8], np.int64),
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
        "origin": np.array([0x1000, 0x9000, 0x7000], np.int64),
    }
    return Unit(**(arrays | replaced))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store = Depot(tmp_path / "new", "kind")
    key = store.key("a file", 1)
    store.write(key, unit())
    back = Depot(tmp_path / "new", "kind").read(key)
    assert back is not None
    assert {n: a.tolist() for n, a in back.arrays().items()} == {
        n: a.tolist() for n, a in unit().arrays().items()
    }
    assert back.source(1) == (2, b"\2\3", b"\1\1")
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "new" / key).st_mode & 0o777 == 0o600


def test_keys_tell_apart_files_and_kinds(tmp_path: Path) -> None:
    one, other = Depot(tmp_path, "one"), Depot(tmp_path, "other")
    assert len({one.key("a"), one.key("b"), other.key("a"), one.key("a", 1)}) == 4
    assert one.key("a") == Depot(tmp_path, "one").key("a")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "writable", "link", "gone"])
def test_damaged_and_foreign_files_are_not_used(damage: str, tmp_path: Path) -> None:
    store = Depot(tmp_path, "kind")
    key = store.key("a file")
    store.write(key, unit())
    path = tmp_path / key
    data = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "changed":
        data[-20] ^= 1
        path.write_bytes(data)
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "writable":
        path.chmod(0o620)
    elif damage == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.unlink()
    assert Depot(tmp_path, "kind").read(key) is None


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Depot(tmp_path / "file" / "below", "kind")
    store.write(store.key("a"), unit())
    assert store.read(store.key("a")) is None


def test_only_growth_is_worth_writing(tmp_path: Path) -> None:
    store = Depot(tmp_path, "kind")
    assert store.wants("k", 17)
    assert not store.wants("k", 16)
    store.write("k", unit(3))
    assert not store.wants("k", 19)
    assert store.wants("k", 20)


def test_the_longest_unused_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Depot(tmp_path, "kind")
    for age, name in enumerate(("new", "middle", "old")):
        store.write(name, unit())
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    size = os.stat(tmp_path / "new").st_size
    monkeypatch.setattr(depot_module, "SIZE_LIMIT", 2 * size)
    store.write("newest", unit())
    assert sorted(os.listdir(tmp_path)) == ["middle", "new", "newest"]


def test_a_unit_goes_to_another_place() -> None:
    """The module moved up by 0x100, its cache by 0x30: what leads out of the cache by 0xD0."""
    parts = unit().placed(Origin(0x1100, 0x9030, 0x7000), first_slot=5)
    assert parts is not None
    hot, cold = parts
    assert hot.view("<i4").tolist() == [0x1008 + 5 * 8, 100 + 0xD0]
    assert cold.tobytes() == b"cold"


def test_a_unit_stays_where_it_cannot_go() -> None:
    there = Origin(0x1000 + (1 << 33), 0x9000, 0x7000)
    assert unit().placed(there, 0) is None  # out of reach
    fixed = unit(out_fields=np.zeros(0, np.int32), fixed_fields=np.array([0], np.int32))
    assert fixed.placed(there, 0) is None  # an address in 32 bits
    assert fixed.placed(Origin(0x1000, 0x5000, 0x7000), 0) is not None


def test_every_kind_of_field_has_its_array() -> None:
    assert set(FIELD_ARRAYS) == set(Field)
    assert set(FIELD_ARRAYS.values()) <= set(Unit.__dataclass_fields__)
