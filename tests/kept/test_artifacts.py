"""What is kept from run to run: what is not trustworthy is not used, and nothing fails for it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from livepro.kept import artifacts as artifacts_module
from livepro.kept.artifacts import ArtifactStore

ARRAYS = {
    "numbers": np.arange(7, dtype=np.int64),
    "none": np.zeros(0, np.int32),
    "bytes": np.frombuffer(b"some bytes", np.uint8),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "new", "kind")
    key = store.key("a file", 1)
    store.write(key, ARRAYS)
    back = ArtifactStore(tmp_path / "new", "kind").read(key)
    assert back is not None
    assert {name: (a.dtype, a.tolist()) for name, a in back.items()} == {
        name: (a.dtype, a.tolist()) for name, a in ARRAYS.items()
    }
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "new" / key).st_mode & 0o777 == 0o600


def test_keys_tell_apart_files_and_kinds(tmp_path: Path) -> None:
    one, other = ArtifactStore(tmp_path, "one"), ArtifactStore(tmp_path, "other")
    assert len({one.key("a"), one.key("b"), other.key("a"), one.key("a", 1)}) == 4
    assert one.key("a") == ArtifactStore(tmp_path, "one").key("a")


def test_what_another_version_made_is_not_used(tmp_path: Path) -> None:
    maker = tmp_path / "maker.py"
    keys = set()
    for version in ("1", "2"):
        maker.write_text(version)
        artifacts_module._digest.cache_clear()
        keys.add(ArtifactStore(tmp_path, "kind", tmp_path).key("a"))
    assert len(keys) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "writable", "link", "gone"])
def test_damaged_and_foreign_files_are_not_used(damage: str, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, "kind")
    key = store.key("a file")
    store.write(key, ARRAYS)
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
    assert ArtifactStore(tmp_path, "kind").read(key) is None


def test_a_hundred_thousand_corrupted_files(tmp_path: Path) -> None:
    """Bytes changed, cut off, put in, doubled: never used, and never an error."""
    store = ArtifactStore(tmp_path, "kind")
    key = store.key("a file")
    store.write(key, ARRAYS)
    whole = (tmp_path / key).read_bytes()
    assert artifacts_module._parse(whole, key) is not None
    rng = random.Random(1)
    for _ in range(100_000):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            how = rng.randrange(4)
            if how == 0:
                data[at : at + 1] = bytes((rng.randrange(256),))
            elif how == 1:
                del data[at:]
            elif how == 2:
                data[at:at] = rng.randbytes(rng.randrange(1, 9))
            else:
                data[at:at] = data[at : at + 16]
            if not data:
                break
        if bytes(data) != whole:
            assert artifacts_module._parse(bytes(data), key) is None


def test_a_file_under_another_name_is_not_used(tmp_path: Path) -> None:
    """What is kept of one module must not run in the place of another."""
    store = ArtifactStore(tmp_path, "kind")
    one, other = store.key("one"), store.key("other")
    store.write(one, ARRAYS)
    (tmp_path / one).rename(tmp_path / other)
    assert store.read(other) is None


def test_a_directory_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    directory = tmp_path / "shared"
    store = ArtifactStore(directory, "kind")
    key = store.key("a file")
    store.write(key, ARRAYS)
    assert store.read(key) is not None
    directory.chmod(0o777)
    assert store.read(key) is None


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ArtifactStore(tmp_path / "file" / "below", "kind")
    store.write(store.key("a"), ARRAYS)
    assert store.read(store.key("a")) is None


def test_the_longest_unused_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtifactStore(tmp_path, "kind")
    for age, name in enumerate(("new", "middle", "old")):
        store.write(name, ARRAYS)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    size = os.stat(tmp_path / "new").st_size
    monkeypatch.setattr(artifacts_module, "SIZE_LIMIT", 2 * size)
    store.write("newest", ARRAYS)
    assert sorted(os.listdir(tmp_path)) == ["middle", "new", "newest"]
