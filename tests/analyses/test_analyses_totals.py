"""Totals against counts worked out by hand."""

from __future__ import annotations

import model_builders as mb
import numpy as np

from livepro.analyses.totals import Totals, executed, process_totals, sum_totals, thread_totals

BLOCKS = mb.table(
    (0x1000, [mb.ADD, mb.REP_STOSB, mb.FLDCW, mb.REP_STOSB, mb.JNZ]),  # reps at 0x1002 and 0x1007
    (0x1007, [mb.REP_STOSB, mb.JNZ]),  # the tail of the first block: its rep is the same instruction
    (0x2000, [mb.NOP, mb.REP_MOVSB, mb.RET]),  # rep at 0x2001
)


def test_complete_executions() -> None:
    # 3 * 5 + 2 * 2 + 0 instructions; reps 3 * 2 + 2; at addresses 0x1002, 0x1007; fldcw 3
    totals = thread_totals(BLOCKS, mb.thread([3, 2, 0], rep_iterations=77))
    assert totals == Totals(
        instructions=19, rep_instructions=8, rep_iterations=77, distinct_reps=2, fldcw=3, blocks=2
    )


def test_partial_executions_count_their_prefix() -> None:
    # Block 0 left once behind 2 instructions (ADD, rep), twice behind 3 (ADD, rep, FLDCW);
    # block 2 left four times behind its NOP: executed, but not its rep.
    thread = mb.thread([0, 0, 0], partial=[(0, 2, 1), (0, 3, 2), (2, 1, 4)], rep_iterations=5)
    assert thread_totals(BLOCKS, thread) == Totals(
        instructions=2 + 6 + 4, rep_instructions=3, rep_iterations=5, distinct_reps=1, fldcw=2, blocks=2
    )
    assert executed(thread).tolist() == [True, False, True]


def test_nothing_executed() -> None:
    assert thread_totals(BLOCKS, mb.thread([0, 0, 0])) == Totals(0, 0, 0, 0, 0, 0)
    assert thread_totals(mb.table(), mb.thread([])) == Totals(0, 0, 0, 0, 0, 0)


def test_process_counts_shared_blocks_and_reps_once() -> None:
    first, second = mb.thread([1, 0, 0], rep_iterations=4), mb.thread([0, 1, 1], rep_iterations=6, tid=101)
    whole, each = process_totals(mb.process(BLOCKS, first, second))
    assert each == (Totals(5, 2, 4, 2, 1, 1), Totals(5, 2, 6, 2, 0, 2))
    # Addresses 0x1002, 0x1007 (both threads, in two blocks) and 0x2001.
    assert whole == Totals(
        instructions=10, rep_instructions=4, rep_iterations=10, distinct_reps=3, fldcw=1, blocks=3
    )


def test_process_without_threads() -> None:
    assert process_totals(mb.process(BLOCKS)) == (Totals(0, 0, 0, 0, 0, 0), ())


def test_run_adds_images() -> None:
    image = mb.process(BLOCKS, mb.thread([1, 0, 0], rep_iterations=4))
    assert sum_totals([process_totals(p)[0] for p in mb.run(image, image).processes]) == Totals(
        10, 4, 8, 4, 2, 2
    )


def test_counts_beyond_53_bits_stay_exact() -> None:
    huge = 2**60 + 1
    totals = thread_totals(BLOCKS, mb.thread([0, huge, 0]))
    assert totals.instructions == 2 * huge
    assert totals.rep_instructions == huge


def test_two_hundred_thousand_blocks() -> None:
    number = 200_000
    blocks = mb.table(*((16 * i, (mb.REP_STOSB, mb.JNZ)) for i in range(number)))
    entries = np.arange(number, dtype=np.uint64)
    totals = thread_totals(blocks, mb.thread(entries.tolist()))
    executions = number * (number - 1) // 2
    assert totals == Totals(2 * executions, executions, 0, number - 1, 0, number - 1)
