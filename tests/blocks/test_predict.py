"""Predictions: what llvm-mca and OSACA say, and what is made of it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from blocks.samples import tool
from blocks.test_files import rows_of

from livepro.blocks import files
from livepro.blocks.predict import llvm_mca, osaca
from livepro.blocks.predict import osaca_worker as worker
from livepro.blocks.predict.models import PROCESSORS, Prediction
from livepro.blocks.predict.predictions import predict
from livepro.cli.main import main


@pytest.mark.parametrize(("machine", "cpu"), [("x86_64", "skylake"), ("aarch64", "neoverse-n1")])
def test_llvm_mca_is_asked_as_by_hand(machine: str, cpu: str, tmp_path: Path) -> None:
    mca = tool("llvm-mca", "llvm")
    rows = rows_of(tmp_path, machine)
    (answers,) = predict(rows[:1], ["llvm-mca"], [cpu])
    (tmp_path / "t.s").write_text(files.text(rows[:1], "llvm-mca"))
    done = subprocess.run(
        [mca, f"-mtriple={machine}", f"-mcpu={PROCESSORS[cpu].llvm}", tmp_path / "t.s"],
        capture_output=True,
        text=True,
        check=True,
    )
    cycles = int(done.stdout.partition("Total Cycles:")[2].split()[0])
    assert answers.predictions[0].cycles == cycles / 100
    assert answers.total(rows[:1]) == 900 * cycles / 100


def test_answers_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("llvm-mca", "llvm")
    rows = rows_of(tmp_path, "x86_64")
    first = predict(rows, ["llvm-mca"], ["skylake"], tmp_path / "kept")
    monkeypatch.setattr(llvm_mca, "predict", lambda *_: pytest.fail("asked again"))
    assert predict(rows, ["llvm-mca"], ["skylake"], tmp_path / "kept") == first


def test_what_has_no_prediction_says_why(tmp_path: Path) -> None:
    tool("llvm-mca", "llvm")
    (row, _) = rows_of(tmp_path, "x86_64")
    other = replace(row, code="638061616161")  # movsxd without REX.W: LLVM has no name for it
    (answers,) = predict([row, other], ["llvm-mca"], ["skylake"])
    assert answers.predictions[0].cycles
    assert "invalid instruction mnemonic" in answers.predictions[1].reason
    (wrong,) = predict([row], ["llvm-mca"], ["neoverse-n1"])
    assert "does not execute its instruction set" in wrong.predictions[0].reason


def test_answers_of_osaca_are_taken_apart() -> None:
    ports = {"ports": {"0": 1.0, "2": 2.5}, "lcd": 2.0, "cp": 9.0}
    assert osaca.parse(dict(ports)) == Prediction(2.5, "port 2")
    assert osaca.parse({**ports, "lcd": 4.0}) == Prediction(4.0, "loop-carried dependency")
    assert osaca.parse({"reason": "no data"}) == Prediction(None, "", "no data")


def test_instructions_that_osaca_has_no_data_for_are_named() -> None:
    report = (
        " 0 - 1 |  1 |  2 ||   CP | LCD  |\n"
        " 5 | 0.33 | 0.33 ||  1.0 |      |   ldr\td3, [x0], #4\n"
        " 6 |      |      ||      |      | X fmul\ts0,  s0, s5\n"
    )
    found = worker.without_data(report)
    assert found == ["fmul s0, s0, s5"]
    assert worker.no_data(found) == "no data for: fmul s0, s0, s5"
    assert worker.no_data(found * 3) == "no data for: fmul s0, s0, s5 and 2 others"


@pytest.mark.long
@pytest.mark.parametrize(("machine", "cpu"), [("x86_64", "skylake"), ("aarch64", "neoverse-v2")])
def test_osaca_predicts_both_instruction_sets(machine: str, cpu: str, tmp_path: Path) -> None:
    (loop, _) = rows_of(tmp_path, machine)
    (answers,) = predict([loop], ["osaca"], [cpu])
    assert answers.predictions[0].reason == ""
    assert answers.predictions[0].cycles
    assert answers.predictions[0].bottleneck


@pytest.mark.long
def test_osaca_names_what_it_lacks_also_where_it_stops(tmp_path: Path) -> None:
    (row, _) = rows_of(tmp_path, "aarch64")
    # OSACA 0.7.1 has no such load for the N1, and stops as it adds up the critical path.
    (answers,) = predict([replace(row, code="020040bd0028221e")], ["osaca"], ["neoverse-n1"])
    assert answers.predictions[0].reason.startswith("no data for: ldr s2, [x0]")


def test_a_table_for_each_instruction_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool("llvm-mca", "llvm")
    rows = [
        replace(row, benchmark=f"{machine}-program", occurrences=(row.occurrences or 0) * times)
        for machine, times in (("x86_64", 10), ("aarch64", 1))
        for row in rows_of(tmp_path, machine)
    ]
    table = tmp_path / "b.csv"
    table.write_text(files.text(rows, "csv"))
    options = ["--with", "llvm-mca", "--cpu", "skylake,neoverse-n1,cortex-a72", "--top", "1", "--no-cache"]
    assert main(["blocks", "predict", str(table), *options]) == 0
    text = capsys.readouterr().out
    assert "2 blocks of 4" in text  # the hottest of each
    parts = text.split("\naarch64\n")[1].split("\nx86_64\n")
    heads = [" ".join(part.splitlines()[1].split()) for part in parts]
    assert "neoverse-n1 cortex-a72" in heads[0]
    assert "skylake" not in heads[0]
    assert "skylake bounded" in heads[1]
    assert "aarch64-program" in parts[0]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tool("llvm-mca", "llvm")
    rows = rows_of(tmp_path, "x86_64")
    table, out = tmp_path / "b.csv", tmp_path / "p.json"
    table.write_text(files.text(rows, "csv"))
    options = ["--with", "llvm-mca", "--cpu", "skylake,zen3", "--no-cache", "-o", str(out)]
    assert main(["blocks", "predict", str(table), *options]) == 0
    text = capsys.readouterr().out
    assert "_start+0x0" in text
    assert "instructions a cycle" in text
    written = json.loads(out.read_text())
    assert [len(block["predictions"]) for block in written] == [2, 2]
    for arguments, words in [
        ([str(table), "--cpu", "skylak"], "Did you mean skylake?"),
        ([str(table), "--with", "iaca"], "There is no model 'iaca'"),
        ([str(table), "--with", "uica"], "--format uica"),
        ([str(tmp_path / "none.csv")], "There is no"),
        ([str(out)], "no table of blocks"),
    ]:
        assert main(["blocks", "predict", *arguments]) == 2
        assert words in capsys.readouterr().err


def test_tables_are_read_back(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "x86_64")
    for name in ("csv", "json", "parquet"):
        files.write(rows, tmp_path / f"b.{name}", name)
        assert files.read(tmp_path / f"b.{name}") == rows
