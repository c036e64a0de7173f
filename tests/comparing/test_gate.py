"""Limits: what they let pass and what they do not, to the instruction; what is written of it."""

from __future__ import annotations

from xml.etree import ElementTree

import documents as d
import pytest

from livepro.comparing import junit, markdown
from livepro.comparing.gate import Limits, Outcome, judge, regressed


def simple(instructions: int, *functions: tuple[str, int]) -> dict[str, object]:
    rows = [d.function(name, count) for name, count in functions]
    return d.run(d.process("prog", [d.thread("main", instructions)], rows))


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        (1000, Outcome.PASSED),
        (1010, Outcome.PASSED),
        (1011, Outcome.REGRESSED),
        (990, Outcome.PASSED),
        (989, Outcome.IMPROVED),
    ],
)
def test_the_soft_limit_is_exact(after: int, outcome: Outcome) -> None:
    (verdict,) = judge(simple(1000), simple(after), Limits(soft=0.01))
    assert verdict.outcome is outcome


def test_the_hard_limit_is_for_the_whole_run() -> None:
    assert not regressed(judge(None, simple(500), Limits(None, hard=500)))
    assert regressed(judge(None, simple(501), Limits(None, hard=500)))
    assert regressed(judge(simple(501), simple(501), Limits(hard=500)))


def test_functions_one_by_one() -> None:
    before = simple(10_000, ("f", 5000), ("g", 4000), ("tiny", 9), ("gone", 991))
    after = simple(10_000, ("f", 5051), ("g", 3900), ("tiny", 9999 - 8951 - 900), ("new", 901))
    verdicts = judge(before, after, Limits(soft=0.01, per="function", floor=0.02))
    assert {v.change.name: v.outcome for v in verdicts} == {
        "instructions": Outcome.PASSED,
        "f (prog)": Outcome.REGRESSED,
        "g (prog)": Outcome.IMPROVED,
        "gone (prog)": Outcome.IMPROVED,
        "new (prog)": Outcome.NEW,
    }  # tiny is below the floor in both
    assert [v.limit for v in verdicts if v.limit] == ["it may grow by 1 %"]


HOSTILE = "</script>|`x``|\x1b[2J\x00\udcff<b>&"


def test_markdown_keeps_names_apart_from_its_own() -> None:
    verdicts = judge(
        simple(100, (HOSTILE, 50)), simple(200, (HOSTILE, 150)), Limits(soft=0.01, per="function")
    )
    text = markdown.summary(verdicts, HOSTILE)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    name = "```</script>\\|`x``\\|�[2J��<b>& (prog)```"
    assert rows[1] == "| `instructions` | 100 | 200 | +100 (+100.00 %) | ❌ regressed: it may grow by 1 % |"
    assert rows[2] == f"| {name} | 50 | 150 | +100 (+200.00 %) | ❌ regressed: it may grow by 1 % |"
    text.encode()


def test_markdown_without_a_change() -> None:
    text = markdown.summary(judge(simple(100), simple(100), Limits()), "prog")
    assert text.startswith("### ✅ livepro: `prog`\n")
    assert "| `instructions` | 100 | 100 | 0 | ✅ |" in text


def test_junit_can_be_parsed_whatever_the_names() -> None:
    verdicts = judge(
        simple(100, (HOSTILE, 50)), simple(200, (HOSTILE, 150)), Limits(soft=0.01, per="function")
    )
    root = ElementTree.fromstring(junit.document(verdicts, HOSTILE))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    total, function = suite
    assert total.find("failure").get("message") == "100 -> 200 instructions: it may grow by 1 %"  # type: ignore[union-attr]
    assert function.get("name") == "</script>|`x``|�[2J��<b>& (prog)"
