"""Regions as people write them."""

from __future__ import annotations

import pytest

from livepro.engines.region import Region
from livepro.engines.region_text import parse_region
from livepro.errors import LiveproError
from livepro.linux.places import CodePlace


def test_places_counts_and_threads() -> None:
    assert parse_region("work", "", 0, 0) == Region(CodePlace("", "work"))
    assert parse_region("prog+0x10:1_000", "prog!end:7@2", 5, 0) == Region(
        CodePlace("prog", "", 16),
        CodePlace("prog", "end"),
        skip=5,
        start_count=1000,
        stop_count=7,
        stop_thread=2,
    )
    region = parse_region("work:1@3", "work", 0, 0)
    assert (region.start_thread, region.stop_count, region.counted) == (3, None, True)
    assert str(region) == "from work:1@3, up to work"


def test_names_may_have_colons_and_signs() -> None:
    assert parse_region("a::b", "memcpy@GLIBC_2.14", 0, 0) == Region(
        CodePlace("", "a::b"), CodePlace("", "memcpy@GLIBC_2.14")
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("work:0", "", 0, 0), "arrivals are numbered from 1"),
        (("", "work:1@0", 0, 0), "threads are numbered from 1"),
        (("", "", -1, 0), "-1 instructions cannot be skipped or counted"),
        (("", "", 0, 1, 1), "are not possible together"),
        (("!", "", 0, 0), "names no place"),
    ],
)
def test_what_is_wrong_is_said(given: tuple[str, str, int, int], says: str) -> None:
    with pytest.raises(LiveproError, match=says):
        parse_region(*given)
