"""`livepro run --live` in a real terminal: keys in, screens out, and the terminal as it was afterwards."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyte
import pytest
from programs.real import environment

from fixtures import Builder
from livepro.formats import json_report

LIVE = (sys.executable, "-m", "livepro", "run", "--live")
PATIENCE = 60.0


class Session:
    """A command in a terminal of its own, and what that shows."""

    def __init__(
        self, command: Sequence[str], columns: int, rows: int, extra: dict[str, str], cwd: Path | None = None
    ) -> None:
        self.raw = b""
        self.status: int | None = None
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        size = struct.pack("HHHH", rows, columns, 0, 0)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.chdir(cwd or ".")
            os.execve(command[0], list(command), {**environment(), "TERM": "xterm-256color", **extra})
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        self.modes = termios.tcgetattr(self.master)

    def __str__(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def send(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read(self, seconds: float) -> bool:
        """Take what comes within `seconds`; False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 1 << 16)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def until(self, text: str | Callable[[str], bool]) -> str:
        """Wait until the screen shows `text`, or is as it says."""
        shows = (lambda screen: text in screen) if isinstance(text, str) else text
        end = time.monotonic() + PATIENCE
        while not shows(str(self)):
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError(f"not seen: {text}\n{self}")
        return str(self)

    def finish(self) -> int:
        """Wait for the end; the exit status."""
        end = time.monotonic() + PATIENCE
        while self.read(0.2):
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
            if self.status is not None and not select.select([self.master], [], [], 0.2)[0]:
                break
            assert time.monotonic() < end, f"it does not end\n{self}"
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def check_restored(self) -> None:
        """The terminal's modes and screen are what they were."""
        assert termios.tcgetattr(self.master) == self.modes
        entered, left = (self.raw.count(b"\x1b[?1049" + end) for end in (b"h", b"l"))
        assert entered == left >= 1
        assert self.raw.rfind(b"\x1b[?25h") > self.raw.rfind(b"\x1b[?25l")
        assert self.raw.rfind(b"\x1b[?7h") > self.raw.rfind(b"\x1b[?7l")

    def after(self) -> str:
        """What stands in the terminal behind the view."""
        text = self.raw.rpartition(b"\x1b[?1049l")[2].decode()
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")


@pytest.fixture
def open_session() -> Iterator[Callable[..., Session]]:
    sessions = []

    def start(
        *command: str,
        columns: int = 80,
        rows: int = 24,
        options: Sequence[str] = (),
        cwd: Path | None = None,
        **extra: str,
    ) -> Session:
        session = Session([*LIVE, *options, "--", *command], columns, rows, extra, cwd)
        sessions.append(session)
        return session

    yield start
    for session in sessions:
        if session.status is None:
            os.kill(session.pid, signal.SIGTERM)
            session.finish()
        os.close(session.master)


Start = Callable[..., Session]


def test_a_walk_through_the_view(builder: Builder, open_session: Start, tmp_path: Path) -> None:
    report = tmp_path / "run.json"
    session = open_session(str(builder.hosted("watched")), options=["--json", str(report)])
    session.until(lambda screen: "[1 overview]" in screen and "instructions*" in screen)
    screen = session.until("blocks  2 threads")
    lines = screen.split("\n")
    assert lines[0].startswith("livepro  ")
    assert "translate engine  running" in lines[0]
    assert re.match(r"  [\d,]+ instructions  \S+ \S?/?s? ?", lines[1])
    assert lines[2].startswith("  rate")
    assert lines[3].startswith("  phase")
    assert "mem read" in screen
    assert lines[-1].startswith(" q quit")
    assert "begins" not in screen
    assert "to error" not in screen

    session.send("2")
    session.until("[2 threads]")
    session.until(lambda screen: sum(line[2:9].strip().isdigit() for line in screen.split("\n")) == 2)
    session.until("  second  ")  # names that threads get late are noticed
    session.send("s")
    session.until("SIMD*")
    session.send("sss")
    session.until("instructions*")
    # On a loaded machine the busy thread is not the first at once: until it has executed more than the
    # first one did to start it.
    session.until(lambda screen: re.search(r"instructions\*.*\n.* second +[\d,]{9}", screen) is not None)
    session.send("g\r")
    session.until("[5 functions]")
    screen = session.until(lambda screen: re.search(r"module.*\n.* add_up", screen) is not None)
    assert re.search(r"^  thread \d+", screen, re.MULTILINE)
    session.send("g\r")
    session.until("[6 blocks]")
    session.until(lambda screen: re.search(r"times run.*\n> .* add_up ", screen) is not None)
    session.send("\r")
    session.until("[code]")
    session.until("add_up")
    session.until(lambda screen: re.search(r"^> +[0-9a-f]+ +\* +[\d,]+ +█+ +[a-z]", screen, re.M) is not None)
    session.send("\x1b")
    session.until("[6 blocks]")
    session.send("3")
    session.until("[3 types]")
    session.send("r")
    session.until("RATES")
    session.until("/s")
    session.send("4")
    session.until("[4 SIMD]")
    session.send("?")
    session.until("Ctrl-L")
    session.send("xo")
    screen = session.until("begins")
    assert "to error" in screen
    session.send("1p")
    session.until("DISPLAY PAUSED")
    while session.read(1.0) and select.select([session.master], [], [], 1.0)[0]:
        pass  # what was asked for just before
    screen = str(session)
    session.read(1.5)
    assert str(session) == screen
    session.send("\x03")  # Ctrl-C is the program's
    session.until("The program has ended")
    session.send("p")
    screen = session.until("ended, exit 3")
    assert "q  leave for the report" in screen
    session.send("q")
    assert session.finish() == 3
    session.check_restored()
    after = session.after()
    begins, error, ended, summary = (
        after.index(text)
        for text in ("begins\n", "to error\n", "input 0, terminals 11\n", "Instruction types")
    )
    assert begins < error < ended < summary
    document = json.loads(report.read_text())
    shown = re.search(r"([\d,]+) +instructions", screen)
    assert shown is not None
    assert int(shown[1].replace(",", "")) == document["instructions"]


@pytest.mark.parametrize("engine", ["block", "translate"])
def test_saving_and_resetting(engine: str, builder: Builder, open_session: Start, tmp_path: Path) -> None:
    options = ["--engine", engine, "--json", "end.json"]
    session = open_session(str(builder.hosted("watched")), options=options, cwd=tmp_path)
    session.until("blocks  2 threads")
    session.until("second")
    session.send("w")
    screen = session.until(lambda screen: re.search(r"Saved [\d,]+ instructions and", screen) is not None)
    (name,) = tmp_path.glob("livepro-*.json")
    saved = json_report.read(str(name))
    assert f"{saved['instructions']:,} instructions" in screen
    assert saved["exit"] is None
    assert [t["name"] for t in saved["processes"][0]["threads"]][1] == "second"
    assert "add_up" in [f["function"] for f in saved["processes"][0]["hottest_functions"]]
    session.send("zn")
    session.until("q quit")
    session.send("5")
    session.until("_dl_relocate_object")  # of the program's start
    session.send("z")
    session.until("y: yes")
    session.send("y")
    session.until("All counts begin anew")
    session.until(lambda screen: "add_up" in screen and "_dl_relocate_object" not in screen)
    session.send("\x03")
    screen = session.until("ended, exit 3")
    session.send("q")
    assert session.finish() == 3
    shown = re.search(r"([\d,]+) +instructions", screen)
    assert shown is not None
    end = json_report.read(str(tmp_path / "end.json"))
    assert end["instructions"] == int(shown[1].replace(",", ""))


@pytest.mark.parametrize(
    ("keys", "options"), [("q", ()), ("d", ()), ("\x03", ()), ("", ("--duration", "3s"))]
)
def test_attached_and_let_go(keys: str, options: tuple[str, ...], builder: Builder) -> None:
    """The view is the default for attach on a terminal; leaving it in whatever way lets the process go."""
    program = subprocess.Popen(
        [builder.hosted("watched")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"begins\n"
    time.sleep(0.1)  # to where it computes
    session = Session([sys.executable, "-m", "livepro", "attach", *options, str(program.pid)], 80, 24, {})
    session.until(lambda screen: "add_up" in screen and "blocks  2 threads" in screen)
    session.send(keys)
    assert session.finish() == 0
    session.check_restored()
    assert "Hottest blocks" in session.after()
    assert "failed" not in session.after()
    assert program.poll() is None
    program.send_signal(signal.SIGINT)
    output, _ = program.communicate(timeout=PATIENCE)
    assert (program.returncode, output) == (3, b"has ended: input 0, terminals 00\n")
    os.close(session.master)


def test_leaving_early_lets_the_program_go_on(builder: Builder, open_session: Start) -> None:
    session = open_session(str(builder.hosted("watched")))
    session.until("blocks  2 threads")
    session.send("q")
    while "begins" not in session.after():
        assert session.read(PATIENCE)
    session.check_restored()
    session.send("\x03")
    assert session.finish() == 3
    assert re.search(r"begins\n(.*\n)*?.*terminals 11\n(.*\n)*?.*exit 3", session.after())


def test_a_large_terminal_without_colour(builder: Builder, open_session: Start) -> None:
    program = str(builder.hosted("watched"))
    session = open_session(program, columns=120, rows=40, options=["--engine", "block"], NO_COLOR="1")
    screen = session.until("SIMD by set and width")
    assert "  SIMD  " in screen
    assert max(len(line) for line in screen.split("\n")) <= 120
    session.until("block engine")
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", session.raw)
    fcntl.ioctl(session.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    session.screen.resize(24, 80)
    session.until(lambda screen: screen.rstrip().split("\n")[-1].startswith(" q quit"))
    assert len(str(session).rstrip().split("\n")) == 24
    os.kill(session.pid, signal.SIGTERM)  # livepro is told to go, and its terminal comes back
    assert session.finish() == 143
    session.check_restored()
    assert "livepro was sent SIGTERM" in session.after()


def test_stop_and_continue(builder: Builder) -> None:
    """Ctrl-Z gives the terminal back to the shell until one goes on."""
    script = f"{' '.join(LIVE)} -- {builder.hosted('watched')}; echo 'sto'pped; sleep 1; fg; echo status $?"
    session = Session(["/bin/sh", "-mc", script], 80, 24, {})
    session.until("blocks  2 threads")
    session.send("\x1a")
    while "stopped" not in session.after():
        assert session.read(PATIENCE)
    session.check_restored()
    while session.raw.count(b"\x1b[?1049h") < 2:
        assert session.read(PATIENCE)
    session.until("[1 overview]")
    session.until("blocks  2 threads")
    session.send("\x03")
    session.until("ended, exit 3")
    session.send("q")
    assert session.finish() == 0
    session.check_restored()
    assert "status 3" in session.after()
    os.close(session.master)


def test_output_that_is_redirected_and_input_from_a_file(open_session: Start, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("b\na\n")
    script = f"{' '.join(LIVE)} -- sort < {tmp_path}/in > {tmp_path}/out"
    session = Session(["/bin/sh", "-c", script], 80, 24, {})
    session.until("ended, exit 0")
    session.send("q")
    assert session.finish() == 0
    session.check_restored()
    assert (tmp_path / "out").read_text() == "a\nb\n"
    os.close(session.master)


def test_a_program_that_cannot_be_started_leaves_no_screen_behind(
    open_session: Start, tmp_path: Path
) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"\x7fELF" + bytes(60))
    bad.chmod(0o755)
    session = open_session(str(bad))
    assert session.finish() == 126
    assert termios.tcgetattr(session.master) == session.modes


@pytest.mark.parametrize("engine", ["step", "block", "translate"])
def test_every_engine_can_be_watched(engine: str, builder: Builder, open_session: Start) -> None:
    session = open_session(str(builder.hosted("watched")), "1", options=["--engine", engine])
    session.until("ended, exit 0")
    session.send("5")
    session.until("  add_up  ")
    session.send("q")
    assert session.finish() == 0
    session.check_restored()


def test_without_a_terminal_it_is_refused() -> None:
    done = subprocess.run(
        [*LIVE, "--", "true"],
        capture_output=True,
        text=True,
        env={**environment(), "TERM": "xterm"},
        start_new_session=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("livepro: The live view needs a terminal, and there is none. Start ")
    dumb = subprocess.run(
        [*LIVE, "--", "true"],
        capture_output=True,
        text=True,
        env={**environment(), "TERM": "dumb"},
        timeout=60,
    )
    assert dumb.returncode == 2
    assert "TERM is dumb" in dumb.stderr
