"""Addresses of one code in several images: what is kept of them stands for the same numbers."""

from __future__ import annotations

from array import array

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from livepro.engines.alike import Alike
from livepro.engines.recording import BlockStore
from livepro.linux.proc import Mapping
from livepro.model.shifted import Shifted

MODULES = st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=4)
BLOCKS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, (1 << 48) - 1)), min_size=64, max_size=90)


@given(MODULES, BLOCKS)
def test_the_same_numbers(bases: list[int], blocks: list[tuple[int, int]]) -> None:
    offsets = array("Q", [offset for _, offset in blocks])
    addresses = array("Q", [(bases[n % len(bases)] + offset) % (1 << 64) for n, offset in blocks])
    found = Shifted.of(addresses, offsets, Alike().of_array)
    assert isinstance(found, Shifted)
    assert len(found) == len(addresses)
    assert list(found) == [found[row] for row in range(len(found))] == addresses.tolist()
    assert found[3:9] == addresses.tolist()[3:9]
    assert np.array(found, np.uint64).tolist() == addresses.tolist()


def test_addresses_that_have_nothing_in_common_stay_as_they_are() -> None:
    addresses = array("Q", [1 << 40, 3, 1 << 50])
    assert Shifted.of(addresses, array("Q", [0, 0, 0]), Alike().of_array) is addresses
    assert list(Shifted.of(array("Q"), array("Q"), Alike().of_array)) == []


def _store(low: int, high: int) -> BlockStore:
    store = BlockStore()
    for number in range(100):
        base = (low, high)[number % 2]
        path = f"/lib/{number % 2}"
        mapping = Mapping(base, base + 0x10000, True, False, True, False, 0x1000, 5, path)
        store.append(base + 16 * number, b"\x90\xc3", b"\x01\x01", mapping)
    return store


def test_stores_of_one_program_differ_in_a_few_numbers() -> None:
    """Modules that are mapped the other way round, too, are numbered as they are met."""
    alike = Alike()
    stores = [_store(0x10000, 0x7F0000), _store(0x7F0000, 0x10000), _store(0x30000, 0x90000)]
    expected = [list(store.addresses) for store in stores]
    for store in [*stores, *stores]:  # the second time nothing happens
        store.share(alike)
    assert [list(store.addresses) for store in stores] == expected
    first, *others = (store.addresses for store in stores)
    assert isinstance(first, Shifted)
    for other in others:
        assert isinstance(other, Shifted)
        assert other.which is first.which
        assert other.offsets is first.offsets
        assert len(other.distances) == 2
