"""Windows: a process measured in bursts, untouched in between."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

import pytest
from attach.targets import TIMEOUT, Target, command_line, eventually

import livepro
from fixtures import Builder


@pytest.fixture
def target(builder: Builder) -> Target:
    return Target(builder.hosted("attach_loop", "-no-pie", "-fno-pie", "-Wl,--no-relax"))


def tracer(target: Target) -> str:
    return Path(f"/proc/{target.pid}/status").read_text().partition("TracerPid:\t")[2].split()[0]


def test_windows_until_ctrl_c(target: Target, tmp_path: Path) -> None:
    """Between windows there is no tracer; Ctrl-C between two ends it all, with a report."""
    with target:
        before = target.shape()
        out = tmp_path / "windows.json"
        watching = command_line(target.pid, "--every", "1s", "--for", "100ms", "--json", out)
        seen = []
        until = time.monotonic() + TIMEOUT
        while "".join(seen).count("10") < 2 and time.monotonic() < until:
            now = "1" if tracer(target) != "0" else "0"
            if not seen or seen[-1] != now:
                seen.append(now)
            time.sleep(0.005)
        assert target.shape() == before
        watching.send_signal(signal.SIGINT)
        _, summary = watching.communicate(timeout=TIMEOUT)
        assert watching.returncode == 0
        assert " windows, 0." in summary
        report = json.loads(out.read_text())
        windows = report["sampling"]["windows"]
        assert len(windows) >= 2
        assert all(window["instructions"] > 0 for window in windows)
        assert sum(window["instructions"] for window in windows) == report["instructions"]
        assert windows[1]["began"] - windows[0]["began"] >= 1
        assert target.end() == (7, "done\n", "")


def test_windows_in_python(target: Target) -> None:
    with target:
        result = livepro.sample(target.pid, every=0.4, window=0.05, seconds=1)
        assert result.sampling is not None
        assert result.sampling.seconds >= 1
        assert all(window.seconds >= 0.05 for window in result.sampling.windows)
        assert result.exit is None
        (process,) = result.processes
        assert process.instructions == sum(w.instructions for w in result.sampling.windows)
        assert target.end() == (7, "done\n", "")


def test_process_that_ends_between_windows(target: Target) -> None:
    """What was seen of it until then is reported."""

    def ending() -> None:
        eventually(lambda: tracer(target) != "0")
        eventually(lambda: tracer(target) == "0")
        target.process.send_signal(signal.SIGTERM)

    with target:
        other = threading.Thread(target=ending)
        other.start()
        result = livepro.sample(target.pid, every=TIMEOUT, window=0.05)
        other.join()
        assert result.sampling is not None
        assert [w.instructions for w in result.sampling.windows] == [result.instructions]
        assert target.process.communicate(timeout=TIMEOUT) == ("done\n", "")
        assert target.process.returncode == 7


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("--for", "1s"), "--for is the length of a window."),
        (("--every", "1s", "--for", "1s"), "--for must be shorter than --every."),
        (("--every", "1s", "--skip", "5"), "--skip does not go with --every."),
    ],
)
def test_what_does_not_go_together(arguments: tuple[str, ...], cause: str) -> None:
    done = command_line(1, *arguments)
    out, err = done.communicate(timeout=TIMEOUT)
    assert (done.returncode, out) == (2, "")
    assert err.startswith(f"livepro: {cause}")
