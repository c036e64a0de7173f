"""`livepro diff` and `livepro gate` from the outside, on programs whose counts are known."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fixtures import ROOT, Builder
from livepro.cli.main import main
from livepro.formats import json_report


@pytest.fixture(scope="session")
def million(builder: Builder) -> str:
    return str(builder.build(ROOT / "asm/million.S"))


def changed(source: str, target: Path, by: int) -> str:
    """A report with `by` instructions more than `source` has."""
    document = json_report.read(source)
    process = document["processes"][0]
    for place in (document, process, process["threads"][0], process["functions"][0]):
        place["instructions"] += by
    json_report.write(str(target), document)
    return str(target)


def test_gate_passes_its_own_baseline_and_fails_beyond_the_limit(
    million: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    base = str(tmp_path / "base.json")
    assert main(["gate", "--save-baseline", base, "--", million]) == 0
    count = json_report.read(base)["instructions"]
    assert main(["gate", "--baseline", base, "--soft", "0%", "--per", "thread", "--", million]) == 0

    more = changed(base, tmp_path / "more.json", 2)
    assert main(["gate", "--baseline", base, "--soft", "50%", more]) == 0
    markdown, junit, kept = tmp_path / "gate.md", tmp_path / "gate.xml", tmp_path / "kept.json"
    outputs = ["--markdown", str(markdown), "--junit", str(junit), "--save-baseline", str(kept)]
    capfd.readouterr()
    assert main(["gate", "--baseline", base, "--soft", "0%", "--per", "function", *outputs, more]) == 3
    out = capfd.readouterr().out
    assert "regressed: it may grow by 0 %" in out
    assert "FAILED: 2 of 2 broke a limit" in out
    assert f"{count:,} | {count + 2:,} | +2" in markdown.read_text()
    assert ElementTree.parse(junit).getroot()[0].get("failures") == "2"
    assert not kept.exists()  # a regression is no baseline
    assert main(["gate", "--hard", str(count), "-q", more]) == 3
    assert main(["gate", "--hard", str(count + 2), "-q", more]) == 0


def test_gate_says_what_is_missing(million: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "--", million]) == 2
    assert "nothing to compare with" in capfd.readouterr().err
    assert main(["gate", "--hard", "1", "a.json", "b.json"]) == 2
    assert "'b.json' is one file too many" in capfd.readouterr().err
    assert main(["gate", "--hard", "1"]) == 2
    assert "There is no run to judge" in capfd.readouterr().err
    assert main(["gate", "--baseline", str(tmp_path / "none.json"), "--", million]) == 2
    assert "cannot be read" in capfd.readouterr().err
    assert main(["gate", "--hard", "1", "--soft", "1%", "--", million]) == 2
    assert "--soft needs something to grow from" in capfd.readouterr().err
    assert main(["gate", "--baseline", "x", "--soft", "much", "--", million]) == 2
    assert "'much' is not a part (write 1% or 0.01)" in capfd.readouterr().err


def test_a_command_that_fails_is_not_compared(
    builder: Builder, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fails = str(builder.build(ROOT / "asm/straight.S"))  # exit status 7
    base = tmp_path / "base.json"
    assert main(["gate", "--save-baseline", str(base), "--", fails]) == 7
    assert "The command failed (exit 7)" in capfd.readouterr().err
    assert not base.exists()


def test_diff(million: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    base = str(tmp_path / "base.json")
    assert main(["run", "-q", "--json", base, "--", million]) == 0
    more = changed(base, tmp_path / "more.json", 1000)
    assert main(["diff", base, more]) == 0
    out = capfd.readouterr().out
    assert "Functions" in out
    assert "+1,000" in out
    assert main(["diff", "--json", base, more]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [c["delta"] for c in found["changes"]["total"]] == [1000]
    assert [c["delta"] for c in found["changes"]["type"] if c["delta"]] == []


def test_pages_for_the_browser(million: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page, report = tmp_path / "run.html", tmp_path / "run.json.gz"
    assert main(["run", "-q", "--html", str(page), "--json", str(report), "--", million]) == 0
    document = json_report.read(str(report))
    assert document["timeline"]["instructions"][-1] == document["instructions"]
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert main(["report", str(report), str(report)]) == 0
    assert capfd.readouterr().out.startswith(f"{page}: ")
    assert main(["run", "-q", "--no-code", "--json", str(report), "--", million]) == 0
    document = json_report.read(str(report))
    assert "code" not in document["processes"][0]
    assert document["timeline"] is None


def test_a_damaged_report_is_told(million: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "run.json"
    assert main(["run", "-q", "--json", str(report), "--", million]) == 0
    document = json_report.read(str(report))
    document["processes"][0]["code"]["step"] = "AAAA"
    json_report.write(str(report), document)
    assert main(["report", str(report)]) == 2
    assert "cannot be shown: the code of a process is damaged" in capfd.readouterr().err
