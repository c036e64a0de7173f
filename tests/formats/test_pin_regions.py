"""Pin's regions.csv."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from livepro.errors import LiveproError
from livepro.formats import pin_regions
from livepro.formats.pin_regions import PinRegion

REGIONS = [
    PinRegion("phase 0, interval 2", 0, 1, 4_000_000, 6_000_000, 0.38548271147100205),
    PinRegion("phase 1", 3, 2, 0, 17, 1.0),
]


def test_written_and_read_again(tmp_path: Path) -> None:
    out = io.StringIO()
    pin_regions.write(out, REGIONS)
    assert out.getvalue().splitlines() == [
        "# comment,thread-id,region-id,start-icount,end-icount,weight",
        '"phase 0, interval 2",0,1,4000000,6000000,0.38548271147100205',
        "phase 1,3,2,0,17,1.0",
    ]
    (tmp_path / "r.csv").write_text(out.getvalue())
    assert pin_regions.read(str(tmp_path / "r.csv")) == REGIONS


@pytest.mark.parametrize("line", ["a,b", "x,0,1,2,3", "x,0,1,2,three,0.5", "x,0,1,2,3,0.5,6"])
def test_a_malformed_line_is_located(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.csv").write_text(f"# heading\n{line}\n")
    with pytest.raises(LiveproError, match=r"r\.csv:2: the line is not comment,thread"):
        pin_regions.read(str(tmp_path / "r.csv"))
