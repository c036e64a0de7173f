"""All functions, packed blocks and moments: counts worked out by hand, and the way back."""

from __future__ import annotations

import model_builders as mb
import numpy as np
import pytest

from livepro.analyses import code, functions, moments
from livepro.analyses.functions import FunctionRow
from livepro.model import BlockTable, CodeLabel, Origin, ThreadCounts

ADDPS = mb.simd("ADDPS")
TABLE = mb.table(
    (0x401000, [mb.ADD, mb.JNZ], "cold", "/bin/prog"),
    (0x401100, [ADDPS, mb.ADD, mb.JNZ], "hot", "/bin/prog"),
    (0x401200, [mb.RET], "hot", "/bin/prog"),
    (0x401300, [mb.RET], "never", "/bin/prog"),
)
THREADS = (
    mb.thread([1, 10, 1, 0], partial=[(1, 2, 3)], tid=1),
    mb.thread([0, 5, 0, 0], partial=[(1, 2, 1), (0, 1, 1)], tid=2),
)


def pack_again(table: BlockTable, *threads: ThreadCounts) -> code.Code:
    found = functions.functions(table, *threads)
    return code.unpacked(code.packed(code.code(table, found.of_block, threads)))


def test_functions_sum_to_the_totals() -> None:
    found = functions.functions(TABLE, *THREADS)
    assert found.rows == [
        FunctionRow("hot", "/bin/prog", "", 0, 2, 15 * 3 + 4 * 2 + 1, 19),
        FunctionRow("cold", "/bin/prog", "", 0, 1, 3, 0),
    ]
    assert found.of_block.tolist() == [1, 0, 0, -1]
    assert sum(r.instructions for r in found.rows) == sum(t.instructions(TABLE) for t in THREADS)


def test_functions_of_compilers_are_told_apart() -> None:
    labels = (CodeLabel(Origin.C1, 3, "A.b()V"), CodeLabel(Origin.C2, 4, "A.b()V"), CodeLabel(Origin.VM))
    table = BlockTable(
        **{**vars(mb.table(*[(n * 16, [mb.RET], "A.b()V", "[anon]") for n in range(3)])), "label": labels}
    )
    found = functions.functions(table, mb.thread([3, 2, 1]))
    assert [(r.origin, r.tier, r.instructions) for r in found.rows] == [
        ("C1", 3, 3),
        ("C2", 4, 2),
        ("VM", 0, 1),
    ]


def test_nothing_executed() -> None:
    assert functions.functions(TABLE, mb.thread([0] * 4)).rows == []
    assert len(pack_again(TABLE, mb.thread([0] * 4)).id) == 0


def test_packed_blocks_come_back() -> None:
    found = pack_again(TABLE, *THREADS)
    assert found.id.tolist() == [2, 1, 3]  # the hottest first
    assert found.function.tolist() == [0, 1, 0]
    assert found.address.tolist() == [0x401100, 0x401000, 0x401200]
    assert found.entries.tolist() == [15, 1, 1]
    assert found.instructions.tolist() == [53, 3, 1]
    assert found.step.tolist() == [4, 2, 2, 2, 2, 1]
    assert found.code.tobytes() == TABLE.code[1] + TABLE.code[0] + TABLE.code[2]
    assert found.partial == [(0, 2, 4), (1, 1, 1)]
    assert found.executions().tolist() == [19, 19, 15, 2, 1, 1]
    assert [(t.row.tolist(), t.entries.tolist(), t.partial) for t in found.threads] == [
        ([0, 1, 2], [10, 1, 1], [(0, 2, 3)]),
        ([0], [5], [(0, 2, 1), (1, 1, 1)]),
    ]


def test_lines_are_those_of_each_instruction() -> None:
    found = functions.functions(TABLE, *THREADS)

    def lines(
        module: str, addresses: np.ndarray[tuple[int], np.dtype[np.uint64]]
    ) -> list[tuple[str, int] | None]:
        assert module == "/bin/prog"
        return [("a.c", int(a) & 0xFF) if a & 2 == 0 else None for a in addresses]

    packed = code.code(TABLE, found.of_block, THREADS, lines)
    # 0x1100 +0, +4, +6; 0x1000 +0, +2; 0x1200
    assert packed.line.tolist() == [1, 2, 0, 1, 0, 1]
    assert packed.lines == [("a.c", 0), ("a.c", 4)]


def test_damaged_code_is_told() -> None:
    good = code.packed(code.code(TABLE, functions.functions(TABLE, *THREADS).of_block, THREADS))
    with pytest.raises(ValueError, match="damaged"):
        code.unpacked({**good, "step": "AAAA"})
    with pytest.raises(ValueError, match="damaged"):
        code.unpacked({})


def test_moments() -> None:
    one, two = mb.interval({1: 30}), mb.interval({0: 30})
    found = moments.moments(mb.process(TABLE, mb.thread([20, 20, 0, 0], intervals=[one, one, two, one])))
    assert [tuple(m) for m in found[0]] == [(30, 10, 0), (30, 10, 0), (30, 0, 1), (30, 10, 0)]
    assert moments.moments(mb.process(TABLE, THREADS[0])) == [[]]


def test_many_moments_are_joined_and_none_is_lost() -> None:
    many = [mb.interval({1: 3})] * 2500
    (found,) = moments.moments(mb.process(TABLE, mb.thread([0, 2500, 0, 0], intervals=many)))
    assert len(found) == 834
    assert sum(m.instructions for m in found) == 7500
    assert sum(m.simd for m in found) == 2500
