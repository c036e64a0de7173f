from __future__ import annotations

import argparse

import pytest

from livepro.cli.options import with_machine
from livepro.cli.parser import count, names, suggest
from livepro.cli.run import parser
from livepro.errors import LiveproError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("100000000", 100_000_000),
        ("100_000_000", 100_000_000),
        ("1e8", 100_000_000),
        ("1E+8", 100_000_000),
        ("100M", 100_000_000),
        ("100m", 100_000_000),
        ("1.5G", 1_500_000_000),
        ("2.5k", 2_500),
        ("3T", 3_000_000_000_000),
        (" 7 ", 7),
        ("123456789012345678901", 123456789012345678901),
    ],
)
def test_numbers_as_people_write_them(text: str, value: int) -> None:
    assert count(text) == value


@pytest.mark.parametrize(
    "text", ["0", "0M", "-1", "1.5", "1e-3", "ten", "", "1 M", "M", "1MB", "0x10", "nan", "inf"]
)
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        count(text)


def test_name_lists() -> None:
    assert names("simd, itypes,,simd") == ("simd", "itypes")


def test_suggestions() -> None:
    assert suggest("simmd", ["simd", "itypes"]) == "Did you mean simd? "
    assert suggest("zzz", ["simd", "itypes"]) == ""


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["--", "ls", "-l"], ["--", "ls", "-l"]),
        (["ls", "-l"], ["ls", "-l"]),
        (["-q", "ls", "-q", "--json", "x"], ["ls", "-q", "--json", "x"]),
        (["ls", "--", "-l"], ["ls", "--", "-l"]),
        (["--quiet", "--", "ls", "--", "-l"], ["--", "ls", "--", "-l"]),
        (["ls", "--in"], ["ls", "--in"]),  # an abbreviation of two of livepro's options
        (["ls", "--engine=nonsense"], ["ls", "--engine=nonsense"]),
        (["--", "--json"], ["--", "--json"]),
        ([], []),
    ],
)
def test_what_belongs_to_the_command(argv: list[str], command: list[str]) -> None:
    assert parser().parse_args(argv).command == command


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--jsn", "x", "ls"], "There is no option --jsn. Did you mean --json?"),
        (["--zzzzzz", "ls"], "There is no option --zzzzzz. See `livepro run --help`"),
        (["--engine", "warp", "ls"], "Argument --engine: invalid choice: 'warp'"),
        (["--interval-size", "0", "--", "ls"], "--interval-size: '0' is too small, the least is 1"),
        (["--interval-size", "many", "--", "ls"], "--interval-size: 'many' is not a whole number"),
        (["--json"], "--json: expected one argument"),
    ],
)
def test_bad_options(argv: list[str], says: str) -> None:
    with pytest.raises(LiveproError) as error:
        parser().parse_args(argv)
    assert says in str(error.value)
    assert error.value.status == 2


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("--cachesim zen4 -- prog", "--hierarchy zen4 -- prog"),
        ("--cachesim zen4 prog", "--hierarchy zen4 prog"),
        ("--cachesim=mine.toml prog", "--hierarchy=mine.toml prog"),
        ("--json f --cachesim ./mine.toml -- prog", "--json f --hierarchy ./mine.toml -- prog"),
        ("--cachesim host -- prog", "--hierarchy host -- prog"),
        ("--cachesim -- zen4", "--cachesim -- zen4"),
        ("--cachesim prog zen4", "--cachesim prog zen4"),
        ("-- prog --cachesim zen4", "-- prog --cachesim zen4"),
        ("prog --cachesim zen4", "prog --cachesim zen4"),
        ("", ""),
    ],
)
def test_a_machine_behind_cachesim(written: str, meant: str) -> None:
    assert with_machine(written.split()) == meant.split()
