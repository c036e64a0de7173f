"""Lines that threads use together: against a plain Python twin, and of a program that was worked out."""

from __future__ import annotations

import json
import platform
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

from cachesim.test_cachegrind import livepro

from fixtures import Builder
from livepro.cachesim.sharing.model import KINDS, runs
from livepro.cachesim.sharing.noting import EMPTY, THREAD_BITS, THREADS, kinds_of
from livepro.cachesim.sharing.places import Places
from livepro.cachesim.sharing.state import Entries
from livepro.events.spans.operand import READ1, READ2, REWRITE, WRITE, described
from livepro.linux.proc import parse_maps


def drawn(seed: int) -> list[tuple[int, int, int, int, int]]:
    """Operands: thread, instruction, address, size, slot."""
    generator = random.Random(seed)
    out = []
    for n in range(3000):
        size = generator.choice([1, 2, 4, 8, 16, 64, 200, 5000 if n % 500 == 0 else 8])
        address = 0x500000 + generator.randrange(1 << 14)
        out.append(
            (generator.randrange(3), n, address, size, generator.choice([READ1, READ2, WRITE, REWRITE]))
        )
    return out


@pytest.mark.parametrize("seed", range(4))
def test_entries_are_what_plain_python_notes(seed: int) -> None:
    """The table begins with eight entries, and grows within operands, too."""
    operands, entries = drawn(seed), Entries(3)
    addresses = np.array([address for _, _, address, _, _ in operands], np.int64)
    words = np.array([described(n, size, slot) for _, n, _, size, slot in operands], np.int64)
    at = 0
    while at < len(operands):  # pieces of one thread each
        end = at + 1
        while end < len(operands) and operands[end][0] == operands[at][0]:
            end += 1
        entries.note(addresses, words, at, end, operands[at][0])
        at = end
    wanted: dict[tuple[int, int], list[Any]] = defaultdict(lambda: [[0, 0], [set(), set()], [-1, -1]])
    for thread, n, address, size, slot in operands:
        kind = int(slot in (WRITE, REWRITE))
        for line in range(address // 64, (address + size - 1) // 64 + 1):
            entry = wanted[line, thread]
            entry[0][kind] += 1
            entry[1][kind] |= {b - line * 64 for b in range(address, address + size) if b // 64 == line}
            if entry[2][kind] < 0:
                entry[2][kind] = n
    found = {
        (int(key) >> THREAD_BITS, int(key) % THREADS): [
            entries.counts[at].tolist(),
            [{n for n in range(64) if int(mask) >> n & 1} for mask in entries.bytes_of[at]],
            entries.who[at].tolist(),
        ]
        for at, key in enumerate(entries.keys)
        if key != EMPTY
    }
    assert found == dict(wanted)
    assert entries.used == len(wanted)


@pytest.mark.parametrize(
    ("masks", "kind"),
    [
        ([(1, 1)], "private"),
        ([(1, 0), (1, 0)], "read by several"),
        ([(0, 0xFF), (0, 0xFF00)], "falsely shared"),
        ([(0xFF, 0xFF), (0xFF00, 0)], "falsely shared"),
        ([(0, 0xFF), (0x80, 0)], "shared"),
        # Of three pairs of threads one shares truly.
        ([(0, 0xFF), (0, 0xFF00), (0x80, 0)], "falsely shared"),
        ([(0x80, 0), (0, 0xFF00), (0, 0xFF)], "falsely shared"),
        ([(0, 0xFF), (0, 0xFF00), (0x8080, 0)], "shared"),
        ([(0x8080, 0), (0, 0xFF00), (0, 0xFF)], "shared"),
    ],
)
def test_kinds_of_lines(masks: list[tuple[int, int]], kind: str) -> None:
    bounds = np.array([0, len(masks), len(masks) + 1], np.int64)
    bytes_of = np.array([*masks, (1, 1)], np.uint64)
    counts = np.ones((len(bytes_of), 2), np.int64)
    assert [KINDS[k] for k in kinds_of(bounds, bytes_of, counts)] == [kind, "private"]


@pytest.mark.parametrize(("looks", "kind"), [(1, "falsely shared"), (2, "shared")])
def test_who_looks_at_all_of_it_but_once_does_not_hide_what_others_do(looks: int, kind: str) -> None:
    """Two threads of 3 accesses each to bytes of their own meet 3 times, for nothing; a third one that reads
    both `looks` times meets each of them so often, for good reason."""
    bytes_of = np.array([(0xFFFF, 0), (0xFF, 0xFF), (0xFF00, 0xFF00)], np.uint64)
    counts = np.array([(looks, 0), (1, 2), (2, 1)], np.int64)
    assert [KINDS[k] for k in kinds_of(np.array([0, 3], np.int64), bytes_of, counts)] == [kind]


def test_bytes_of_a_mask() -> None:
    assert [runs(mask) for mask in (0, 1, 0xFF, 0x101, 1 << 63, (1 << 64) - 1)] == [
        *("", "0", "0-7", "0, 8", "63", "0-63"),
    ]


def test_places(builder: Builder) -> None:
    """Variables of a program that is mapped at some address, and what is none."""
    program = builder.hosted("false_sharing", "-O1", "-pthread")
    at = 0x7F0000000000
    maps = f"{at:x}-{at + 0x1000:x} r--p 00000000 00:00 1 {program}\n5000-6000 rw-p 00000000 00:00 0 [heap]\n"
    places = Places(parse_maps(maps))
    from elftools.elf.elffile import ELFFile

    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        (symbol,) = table.get_symbol_by_name("apart")
    assert places.name(at + symbol["st_value"]) == f"apart ({program.name})"
    assert places.name(at + symbol["st_value"] + 8) == f"apart+8 ({program.name})"
    assert places.name(at + 4) == f"{program.name}+0x4"
    assert (places.name(0x5010), places.name(0x9000)) == ("[heap]", "")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")
@pytest.mark.parametrize("engine", ["translate", "step"])
def test_a_program(engine: str, builder: Builder, tmp_path: Path) -> None:
    """By the comment of false_sharing.c."""
    program = builder.hosted("false_sharing", "-O1", "-pthread", "-no-pie", "-fno-pie")
    report = tmp_path / "run.json"
    options = ("--engine", engine, "--analysis", "sharing", "--json", report)
    done = livepro("run", *options, "--", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "counted\n")
    (told,) = json.loads(report.read_text())["analyses"]["sharing"]
    result = told["result"]
    rows = {row["place"]: row for key in ("falsely_shared", "hottest", "shared") for row in result[key]}
    name = f"({program.name})"
    apart, both = rows[f"apart {name}"], rows[f"both {name}"]
    assert (apart["kind"], both["kind"]) == ("falsely shared", "shared")
    assert (apart["accesses"], both["accesses"]) == (4002, 4000)
    first, second, reader = apart["threads"]
    assert (reader["reads"], reader["writes"], reader["bytes_read"]) == (2, 0, "0-15")
    assert {first["bytes_read"], second["bytes_read"]} == {"0-7", "8-15"}
    for thread in (first, second, *both["threads"]):
        assert (thread["reads"], thread["writes"]) == (1000, 1000)
        assert (thread["reader"], thread["writer"]) == ("count", "count")
        assert thread["bytes_read"] == thread["bytes_written"]
    assert {thread["bytes_written"] for thread in both["threads"]} == {"0-7"}
    settings = rows[f"settings {name}"]
    assert settings["kind"] == "read by several"
    assert [thread["reads"] for thread in settings["threads"]] == [1000, 1000]
    assert sum(counts["lines"] for counts in result["totals"].values()) > 20
    assert f"apart {name}" in done.stderr
    assert "writes 8-15 1,000 times (count)" in done.stderr


@pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64 programs")
def test_data_frames(builder: Builder) -> None:
    pytest.importorskip("pandas")
    import livepro as package
    from livepro.cachesim.sharing.model import Sharing

    program = builder.hosted("false_sharing", "-O1", "-pthread", "-no-pie", "-fno-pie")
    frames = package.run([str(program)], analyses=[Sharing()]).to_pandas()
    told = frames["sharing"]
    own = told[told["place"] == f"apart ({program.name})"]
    assert sorted(own["bytes_written"]) == ["", "0-7", "8-15"]  # the first thread only reads
    assert set(frames["sharing.kinds"]["kind"]) == set(KINDS)
