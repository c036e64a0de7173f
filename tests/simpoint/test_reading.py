"""Interval vectors out of the files of all tools that write some, and what is no such file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from simpoint.test_study import counted

from livepro.errors import LiveproError
from livepro.formats import mica_intervals, vectors_json
from livepro.simpoint import Source, Vectors, read, with_places
from livepro.simpoint.reading import to_document

EXP_BBV = """\
# a comment
T:1:4   :3:6   
T:2:10   


# Thread 1
#   Total intervals: 2 (Interval Size 10)
"""
QEMU = "T:0:4 :3:6 \nT:2:10 \n"

FACTS = {
    "command": ["prog"],
    "machine": "x86_64",
    "pid": 1,
    "tid": 2,
    "thread": "prog",
    "interval_size": 40,
}


def dense(vectors: Vectors) -> list[list[float]]:
    out = np.zeros((len(vectors), len(vectors.ids)))
    for n in range(len(vectors)):
        columns, counts = vectors.row(n)
        out[n, columns] += counts
    return out.tolist()


def vectors_of(path: Path) -> Vectors:
    found = read(str(path))
    assert isinstance(found, Vectors)
    return found


@pytest.mark.parametrize(("text", "ids"), [(EXP_BBV, [1, 2, 3]), (QEMU, [0, 2, 3])])
@pytest.mark.parametrize("packed", [False, True])
def test_block_vectors(tmp_path: Path, text: str, ids: list[int], packed: bool) -> None:
    path = tmp_path / ("bb.gz" if packed else "bb")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = vectors_of(path)
    assert found.ids.tolist() == ids
    assert found.instructions.tolist() == [10, 10]
    first = sorted(ids)[0]
    assert dense(found)[0][ids.index(first)] == 4
    assert found.total().tolist() == [4, 10, 6]


def test_a_block_twice_in_a_line_adds_up(tmp_path: Path) -> None:
    (tmp_path / "bb").write_text("T:5:1 :5:2\n")
    assert vectors_of(tmp_path / "bb").total().tolist() == [3]


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    vectors = counted()
    name = str(tmp_path / "saved.json.gz")
    vectors_json.write(name, to_document(vectors, **FACTS))
    again = vectors_of(Path(name))
    assert dense(again) == dense(vectors)
    one, two = again.blocks, vectors.blocks
    assert one is not None
    assert two is not None
    assert (one.function, one.module, one.metrics, one.totals) == (
        *(two.function, two.module),
        *(two.metrics, two.totals),
    )
    assert (one.density == two.density).all()
    assert (one.offset == two.offset).all()


def test_pc_file_names_the_blocks(tmp_path: Path) -> None:
    (tmp_path / "bb").write_text(EXP_BBV)
    (tmp_path / "pc").write_text("F:1:400:main\nF:3:500:\nF:2:480:std::f\nF:9:600:never\n")
    blocks = with_places(vectors_of(tmp_path / "bb"), str(tmp_path / "pc")).blocks
    assert blocks is not None
    assert blocks.function == ("main", "std::f", "")
    assert blocks.address.tolist() == [0x400, 0x480, 0x500]
    (tmp_path / "pc").write_text("F:1:400:main\n")
    with pytest.raises(LiveproError, match="does not tell where block 2"):
        with_places(vectors_of(tmp_path / "bb"), str(tmp_path / "pc"))


def mica(tmp_path: Path, name: str, text: str) -> Source:
    (tmp_path / name).write_text(text)
    found = read(str(tmp_path / name))
    assert isinstance(found, Source)
    return found


def test_micas_intervals(tmp_path: Path) -> None:
    """The rows of `mica.md`: with the interval's instructions in front, or without."""
    itypes = " ".join(str(n) for n in range(12))
    found = mica(tmp_path, "itypes_phases_int_pin.out", f"1000 {itypes}\n500 {itypes}\n ")
    assert found.names == mica_intervals.KINDS["itypes"].columns
    assert found.rates(None).values[1].tolist() == [n / 500 for n in range(12)]
    ppm = " ".join(["1"] * 15)
    found = mica(tmp_path, "ppm_phases_int_123_pin.out", f"1000 {ppm}\n1000 {ppm}\n{ppm}\n")
    assert found.instructions is not None
    assert found.instructions.tolist() == [1000, 1000, 1000]  # the last line does not say
    found = mica(tmp_path, "memfootprint_phases_int_pin.out", "1 2 3 4\n5 6 7 8\n ")
    assert (found.instructions, found.counts) == (None, False)
    assert found.values.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    stride = " ".join(["10"] * 30)
    found = mica(tmp_path, "stride_phases_int_pin.out", f"{stride}\n{stride}\n")
    assert found.rates(np.array([10.0, 20.0])).values[1].tolist() == [0.5] * 30
    found = mica(tmp_path, "ilp-win32_phases_int_pin.out", "1000 200\n1000 300\n")
    assert found.rates(None).values.tolist() == [[0.2], [0.3]]


@pytest.mark.parametrize("kind", mica_intervals.KINDS)
def test_every_kind_of_mica_has_its_columns(kind: str) -> None:
    """Counted in the output table of `mica.md`."""
    widths = {
        "ilp": 4,
        "itypes": 12,
        "ppm": 15,
        "reg": 11,
        "stride": 30,
        "memfootprint": 4,
        "memstackdist": 21,
    }
    columns = mica_intervals.KINDS[kind].columns
    assert len(columns) == len(set(columns)) == widths[kind]


def test_a_table_of_numbers(tmp_path: Path) -> None:
    found = mica(tmp_path, "misses.csv", "# l1,l2\n1,2\n3,4.5\n")
    assert found.values.tolist() == [[1, 2], [3, 4.5]]


REPORT = {"schema": "livepro/1"}
VECTORS = to_document(counted(), **FACTS)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("bb", "T:1:4   \nT:1:x\n", r"bb:2: the line is not T:id:count"),
        ("bb", "T:1:4\nT:1:99999999999999999999999\n", r"bb:2: the line has a number of more than 64 bits"),
        ("bb", "#!/bin/sh\necho hello\n", r"bb:2: the line is neither a block vector .* nor numbers"),
        ("bb", "\x7fELF\x00\n", r"bb:1: the line is neither"),
        ("bb", "", "bb has no interval"),
        ("bb", "# only\n\n", "bb has no interval"),
        ("bb", "1 2\n3\n", "bb:2: the line has 1 numbers, the first has 2"),
        ("bb", "1 nan\n", "bb:1: the line is neither"),
        ("itypes_phases_int_pin.out", "1 2 3\n", "itypes_phases_int_pin.out:1: the line has 3 numbers"),
        ("itypes_full_int_pin.out", "1 2 3\n", "a whole run, not its intervals"),
        ("a.json", "{\n,", r"a.json:2: not JSON"),
        ("a.json", json.dumps(REPORT), "it tells how many vectors there were, not what they hold"),
        ("a.json", "{}", "a.json has no vectors"),
        (
            "a.json",
            json.dumps({**VECTORS, "schema": vectors_json.SCHEMA, "pid": "x"}),
            "pid is not of type int",
        ),
        (
            "a.json",
            json.dumps({**VECTORS, "schema": vectors_json.SCHEMA, "intervals": [[[99], [1]]]}),
            r"intervals\[0\] names a block that is not in blocks",
        ),
        (
            "a.json",
            json.dumps({**VECTORS, "schema": vectors_json.SCHEMA, "intervals": [[[1], [1, 2]]]}),
            r"intervals\[0\] is no list of ids beside a list of as many counts",
        ),
        ("a.json", json.dumps({**VECTORS, "schema": vectors_json.SCHEMA, "density": []}), "differ in length"),
    ],
)
def test_what_is_no_vector_file(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(LiveproError, match=says) as error:
        read(str(tmp_path / name))
    assert error.value.remedy


@pytest.mark.parametrize("cut", [5, 30])
def test_a_damaged_gzip_file(tmp_path: Path, cut: int) -> None:
    packed = gzip.compress(EXP_BBV.encode())
    (tmp_path / "bb.gz").write_bytes(packed[:cut])
    with pytest.raises(LiveproError, match=r"bb\.gz cannot be decompressed"):
        read(str(tmp_path / "bb.gz"))
    (tmp_path / "bb.gz").write_text(EXP_BBV)
    with pytest.raises(LiveproError, match=r"bb\.gz cannot be decompressed"):
        read(str(tmp_path / "bb.gz"))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(LiveproError, match="cannot be read: no such file"):
        read(str(tmp_path / "absent"))
    with pytest.raises(LiveproError, match="cannot be read"):
        read(str(tmp_path))
