"""What images have in common is one."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from livepro.engines.alike import Alike
from livepro.engines.recording import BlockStore
from livepro.linux.proc import Mapping


def test_the_first_of_equal_values() -> None:
    alike = Alike()
    names, numbers, values = ["a", "b"], array("I", [1, 2]), np.array([1, 2])
    assert alike.of_list(names) is names
    assert alike.of_list(["a", "b"]) is names
    assert alike.of_list(["a"]) == ["a"]
    assert alike.of_machine_values(numbers) is numbers
    assert alike.of_machine_values(array("I", [1, 2])) is numbers
    assert alike.of_machine_values(array("Q", [1, 2])) == array("Q", [1, 2])
    first = alike.of_array(values)
    assert alike.of_array(np.array([1, 2])) is first
    assert alike.of_array(np.array([1, 2], np.uint64)).dtype == np.uint64
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 3


def store(start: int, code: bytes) -> BlockStore:
    out = BlockStore()
    mapping = Mapping(start, start + 0x2000, True, False, True, False, 0, 7, "/bin/true")
    out.append(start + 0x10, code, b"\1\2", mapping)
    out.extend([start + 0x20], [b"\x90"], [b"\1"], mapping, np.array([3], np.uint16), ["row"])
    return out


def test_stores_share_all_but_addresses() -> None:
    alike = Alike()
    one, same, other = store(0x1000, b"abc"), store(0x5000, b"abc"), store(0x1000, b"abd")
    for each in (one, same, other):
        each.share(alike)
    assert (one.addresses.tolist(), same.addresses.tolist()) == ([0x1010, 0x1020], [0x5010, 0x5020])
    assert same.codes is one.codes
    assert same.sizes is one.sizes
    assert same.modules is one.modules
    assert same.lengths is one.lengths
    assert same.offsets is one.offsets
    assert same.known[0].kinds is one.known[0].kinds
    assert other.codes == [b"abd", b"\x90"]
    assert other.sizes is one.sizes
