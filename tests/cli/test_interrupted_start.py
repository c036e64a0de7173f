"""Ctrl-C while livepro is still being loaded ends it, also where Python would lose the exception."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import ROOT

CUSTOM = """\
import os, signal, sys

class Presses:
    \"\"\"Presses Ctrl-C as a module is looked for, in whose callbacks exceptions are ignored.\"\"\"

    def find_spec(self, name, path=None, target=None):
        if name == os.environ["PRESSED_AT"]:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(100):
                    pass
            except BaseException:
                pass

sys.meta_path.insert(0, Presses())
"""


def started(module: str, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "sitecustomize.py").write_text(CUSTOM)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT.parent}", "PRESSED_AT": module}
    return subprocess.run(
        [sys.executable, "-m", "livepro", *command],
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        start_new_session=True,
    )


@pytest.mark.parametrize("module", ["livepro.cli.attach", "numpy", "livepro.attachment", "livepro.session"])
def test_attaching(module: str, tmp_path: Path) -> None:
    """The process goes on as if nothing had been."""
    with subprocess.Popen(["sleep", "60"]) as process:
        command = ("attach", "--no-live", "--duration", "50s", str(process.pid))
        done = started(module, tmp_path, *command)
        assert process.poll() is None
        process.kill()
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)  # the front tells of the other
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("module", ["livepro.cli.main", "livepro.cli.run", "numpy", "livepro.session"])
def test_running(module: str, tmp_path: Path) -> None:
    """The program is not started."""
    begun = tmp_path / "begun"
    done = started(module, tmp_path, "run", "-q", "--", "sh", "-c", f"touch {begun}; sleep 50")
    assert done.returncode == -signal.SIGINT
    assert (done.stdout, done.stderr) == ("", "")
    assert not begun.exists()


def test_what_it_does_once_all_is_there(tmp_path: Path) -> None:
    """An exception again, which lets a command tidy up."""
    script = (
        "import signal\n"
        "from livepro.cli.loading import ended_at_once, load_numpy\n"
        "with ended_at_once():\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL\n"
        "    with ended_at_once():\n"
        "        pass\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL\n"
        "load_numpy()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "with ended_at_once():\n"
        "    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT.parent)
