"""Windows added up, and what they say of the whole."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isclose

import fake_runs
import model_builders as mb
import numpy as np
import pytest

from livepro.analyses.merging import merge, merge_tables
from livepro.analyses.sampling import document, estimate, quantile
from livepro.model import CodeLabel, Origin, SamplingResult, Window
from livepro.results import code_labels


def windows(*rates: int) -> SamplingResult:
    return SamplingResult(tuple(Window(10.0 * n, 0.5, rate // 2) for n, rate in enumerate(rates)), 100.0)


def test_mean_and_confidence_interval() -> None:
    """Rates 100, 110, 120: mean 110, standard deviation 10, t with 2 degrees of freedom 4.303."""
    found = estimate(windows(100, 110, 120))
    assert (found.mean, found.total) == (110.0, 11000.0)
    assert isclose(found.margin, 4.303 * 10 / 3**0.5)
    assert isclose(found.total_margin, found.margin * 100)


def test_one_window_says_nothing_of_chance() -> None:
    assert (estimate(windows(100)).mean, estimate(windows(100)).margin) == (100.0, inf)
    assert document(windows(100))["rate_margin"] is None
    assert estimate(windows()).mean == 0.0


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (30, 2.042), (39, 2.042), (40, 2.021), (500, 1.98)])
def test_students_t(freedom: int, t: float) -> None:
    assert quantile(freedom) == t


def test_processes_are_added_up_block_by_block() -> None:
    """Twice the same process, the second time with its blocks in the opposite order."""
    process = fake_runs.single().processes[0]
    table = process.table
    order = np.arange(len(table))[::-1]
    parts = [slice(int(table.start[row]), int(table.start[row + 1])) for row in order]
    turned = replace(
        table,
        address=table.address[order],
        size=table.size[order],
        length=table.length[order],
        code=tuple(table.code[row] for row in order),
        step=np.concatenate([table.step[part] for part in parts]),
        form=np.concatenate([table.form[part] for part in parts]),
        function=tuple(table.function[row] for row in order),
        module=tuple(table.module[row] for row in order),
        offset=table.offset[order],
    )
    places = {int(row): at for at, row in enumerate(order)}
    threads = tuple(
        t._replace(
            entries=t.entries[order],
            partial=np.array([(places[r], k, n) for r, k, n in t.partial.tolist()], np.int64).reshape(-1, 3),
            intervals=(),
        )
        for t in process.threads
    )
    first = replace(process, threads=tuple(t._replace(intervals=()) for t in process.threads))
    (both,) = merge([[first], [replace(process, table=turned, threads=threads)]])
    assert both.table.address.tolist() == table.address.tolist()
    for thread, merged in zip(process.threads, both.threads, strict=True):
        assert merged.entries.tolist() == (2 * thread.entries).tolist()
        assert merged.form_counts(both.table).sum() == 2 * thread.form_counts(table).sum()
        assert merged.rep_iterations == 2 * thread.rep_iterations
        assert merged.instructions(both.table) == 2 * thread.instructions(table)


def test_a_window_without_anything_of_the_virtual_machine_has_no_labels() -> None:
    """Only the C library's code in one window, that of a method beside it in the other."""
    libc = (0x1000, [mb.ADD, mb.RET], "memcpy", "/lib/libc.so.6")
    alone = mb.table(libc, (0x6000, [mb.RET], "", "[anon]"))
    method = CodeLabel(Origin.C2, 4, "Sum.all([F)V")
    beside = mb.table((0x5000, [mb.ADD, mb.RET], method.name, "[anon]"), libc)
    beside = replace(beside, label=(method, CodeLabel(Origin.NATIVE)))
    for tables in ((alone, beside), (beside, alone)):
        both, _ = merge_tables(tables)
        assert both.label is not None
        assert dict(zip(both.address.tolist(), both.label, strict=True)) == {
            0x1000: CodeLabel(Origin.NATIVE),
            0x5000: method,
            0x6000: CodeLabel(Origin.GENERATED),
        }
    assert merge_tables((alone, alone))[0].label is None


def test_compiled_code_alone_is_labelled() -> None:
    """The virtual machine itself need not have executed anything."""
    method = CodeLabel(Origin.C2, 4, "Sum.all([F)V")
    modules = ("[anon]", "/lib/libc.so.6")
    assert code_labels(modules, {0: method}) == (method, CodeLabel(Origin.NATIVE))
    assert code_labels(modules, {0: CodeLabel(Origin.GENERATED, 0, "js")}) is None
