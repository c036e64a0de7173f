"""Comparisons on a terminal."""

from __future__ import annotations

import io

from livepro.comparing.changes import KINDS, Change
from livepro.comparing.gate import Limits, Outcome, Verdict, judge
from livepro.ui.changes import print_changes, print_verdicts


def test_changes_are_limited_and_what_is_left_out_is_told() -> None:
    rows = [Change("function", f"f{n}", 100, 100 + n) for n in (3, 2, 1, 0)]
    found = {kind: [] for kind in KINDS} | {
        "function": rows,
        "total": [Change("total", "instructions", 5, 5)],
    }
    out = io.StringIO()
    print_changes(found, out, top=2, width=80)
    lines = out.getvalue().splitlines()
    assert "Functions  1 more changed, 1 did not change" in lines
    assert [line.split() for line in lines if line.startswith("  f")] == [
        ["f3", "100", "103", "+3", "+3.00", "%", "grew"],
        ["f2", "100", "102", "+2", "+2.00", "%", "grew"],
    ]
    assert "  instructions       5      5       0    same" in lines


def test_verdicts_show_every_regression() -> None:
    bad = Verdict(Change("function", "f", 1, 2), Outcome.REGRESSED, "it may grow by 1 %")
    out = io.StringIO()
    print_verdicts([bad] * 3 + [Verdict(Change("function", "g", 1, 1), Outcome.PASSED)], out, 1, width=100)
    assert out.getvalue().count("regressed: it may grow by 1 %") == 3
    assert "1 more compared, within the limits" in out.getvalue()


def test_a_run_without_a_baseline_has_not_grown() -> None:
    out = io.StringIO()
    print_verdicts(judge(None, {"instructions": 7}, Limits(None, hard=9)), out, 5, width=80)
    assert out.getvalue().splitlines()[1].split() == ["instructions", "-", "7", "-", "passed"]
