from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

import livepro
from livepro.cli import main as cli
from livepro.cli.main import main
from livepro.errors import LiveproError


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from livepro.__main__ import main as entry

    for argv in (["--version"], ["-V"]):
        assert entry(argv) == 0
        assert capsys.readouterr().out == f"livepro {livepro.__version__}\n"


def test_version_loads_nothing_heavy() -> None:
    """What makes starting fast is what is not imported."""
    code = (
        "import sys; from livepro.__main__ import main; main(['--version']);"
        "print(sorted({'argparse', 'capstone', 'iced_x86', 'numpy', 'ptrace', 'rich'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == f"livepro {livepro.__version__}\n[]\n"


@pytest.mark.parametrize(
    "argv", [["--help"], ["-h"], ["run", "--help"], ["doctor", "--help"], ["cache", "--help"]]
)
def test_help(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: livepro")
    assert err == ""
    assert max(len(line) for line in out.splitlines()) <= 80


def test_help_of_run_names_the_analyses(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "comma- separated: totals, simd, itypes, bbv, origins, hot" in out
    assert "livepro run -- ls -l" in out


def test_nothing_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: livepro" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["rnu"], "livepro: There is no command 'rnu'. Did you mean run?"),
        (["--frob"], "livepro: There is no option --frob."),
        (["annotate", "one", "two", "three"], "livepro: There is one argument too many, three."),
        (["run"], "livepro: There is no command to run."),
        (["run", "--"], "livepro: There is no command to run."),
    ],
)
def test_bad_command_lines(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(says)
    assert err.count("\n") == 1  # one paragraph


def raising(error: BaseException) -> object:
    def dispatch(argv: Sequence[str]) -> int:
        raise error

    return dispatch


def test_errors_keep_their_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "dispatch", raising(LiveproError("Cause\n  here.", "Remedy.", 127)))
    assert main(["x"]) == 127
    assert capsys.readouterr().err == "livepro: Cause here. Remedy.\n"


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "dispatch", raising(KeyboardInterrupt()))
    assert main(["x"]) == 130


def test_bugs_are_reported_as_such(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "dispatch", raising(ZeroDivisionError("oh")))
    monkeypatch.delenv("LIVEPRO_DEBUG", raising=False)
    assert main(["x"]) == 70
    err = capsys.readouterr().err
    assert err.startswith(
        "livepro: Internal error (ZeroDivisionError: oh). This is a bug in livepro: please report"
    )
    assert err.count("\n") == 1
    monkeypatch.setenv("LIVEPRO_DEBUG", "1")
    assert main(["x"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = [sys.executable, "-m", "livepro", "run", "--help"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == ""
