"""Taking samples of a command or of running processes, until they end."""

from __future__ import annotations

import os
import select
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from livepro.blocks.sampling.jit import GeneratedCode, Piece
from livepro.errors import LiveproError
from livepro.linux import target
from livepro.linux.command import resolve_command
from livepro.linux.sampling.events import Sampler
from livepro.linux.sampling.records import Lost, Record, Sample, records
from livepro.linux.sampling.spaces import ANONYMOUS, Located, Spaces

FREQUENCY = 997
"""Samples a second, unless asked otherwise: a prime, so as not to keep step with the program."""

_LOOK_EVERY = 100  # milliseconds between two looks into the buffers
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


@dataclass
class Samples:
    """What was sampled. `places` counts samples by module and offset in its file, `generated` those in code
    that was made at run time, by piece and address; `lost` were taken and found no room,
    `throttled` counts the times that the kernel held samples back. `exit` is the command's
    status as a shell reports it (None: it goes on, or was running before)."""

    source: str = ""
    frequency: int = FREQUENCY
    seconds: float = 0.0
    exit: int | None = None
    total: int = 0
    lost: int = 0
    throttled: int = 0
    places: Counter[Located] = field(default_factory=Counter)
    generated: Counter[tuple[Piece, int]] = field(default_factory=Counter)

    def warnings(self) -> list[str]:
        """What a reader of the samples should know."""
        out = []
        if self.lost:
            out.append(f"{self.lost:,} samples were lost: lower --frequency.")
        if self.throttled:
            out.append(f"The kernel held back samples {self.throttled:,} times: lower --frequency.")
        if self.total < 1000:
            out.append(
                f"There are only {self.total:,} samples: shares are rough. Let it run longer, or raise "
                "--frequency."
            )
        return out


def sample_command(
    command: Sequence[str],
    environment: Mapping[bytes, bytes],
    frequency: int = FREQUENCY,
    seconds: float | None = None,
    progress: Callable[[Samples], None] | None = None,
) -> Samples:
    """Run `command` to its end and sample it and all that it starts, for at most `seconds`.

    Raises LiveproError when the command cannot be found or executed, or samples cannot be taken.
    """
    executable = resolve_command(command[0], environment)
    go, told = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(go, told[1], executable, command, environment)
    os.close(go[0])
    os.close(told[1])
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        try:
            sampler = Sampler([pid], frequency, on_exec=True)
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        collector = _Collector(sampler, frequency)
        os.write(go[1], b"g")
        code = os.read(told[0], 16)
        if code:
            os.waitpid(pid, 0)
            collector.close()
            raise LiveproError(
                f"{executable} cannot be executed: {os.strerror(int(code)).lower()}.",
                "See `file` and the permissions.",
                126,
            )
        descriptor = os.pidfd_open(pid)
        try:
            samples = collector.until([descriptor], seconds, progress)
        finally:
            os.close(descriptor)
        status = os.waitpid(pid, 0)[1]
        samples.exit = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return samples
    finally:
        os.close(go[1])
        os.close(told[0])
        for number, handler in before.items():
            signal.signal(number, handler)


def _child(
    go: tuple[int, int],
    tell: int,
    executable: str,
    command: Sequence[str],
    environment: Mapping[bytes, bytes],
) -> None:
    """In the child: wait for the word, then become the command. Never returns."""
    try:
        os.close(go[1])
        if not os.read(go[0], 1):
            os._exit(1)
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        os.execve(executable, list(command), dict(environment))
    except OSError as error:
        os.write(tell, str(error.errno).encode())
    finally:
        os._exit(126)


def sample_process(
    pid: int,
    frequency: int = FREQUENCY,
    seconds: float | None = None,
    progress: Callable[[Samples], None] | None = None,
) -> Samples:
    """Sample the process `pid`, its descendants, and all that they start, until it ends, for `seconds`, or
    until SIGINT. The processes are not stopped. Raises LiveproError."""
    pids = [pid, *target.descendants(pid)]
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        raise LiveproError(
            f"There is no process {pid}.", "See `ps -e` for the processes there are."
        ) from error
    try:
        sampler = Sampler((), frequency, on_exec=False)
        known: set[int] = set()
        while new := [tid for tid in _threads(pids) if tid not in known]:
            for tid in new:
                sampler.add(tid)
            known.update(new)
        collector = _Collector(sampler, frequency, pids)
        return collector.until([descriptor], seconds, progress)
    finally:
        os.close(descriptor)


def _threads(pids: Iterable[int]) -> list[int]:
    out = []
    for pid in pids:
        with suppress(OSError):
            out += [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]
    return out


class _Collector:
    """Reads the buffers, and brings samples together with where they were."""

    def __init__(self, sampler: Sampler, frequency: int, pids: Iterable[int] = ()) -> None:
        self._sampler = sampler
        self._spaces = Spaces()
        for pid in pids:
            self._spaces.begin(pid)
        self._code = GeneratedCode()
        self._waiting: list[Record] = []
        self._latest = 0
        self.samples = Samples(sampler.source.name, frequency)

    def until(
        self, ended: Iterable[int], seconds: float | None, progress: Callable[[Samples], None] | None
    ) -> Samples:
        """Collect until one of the descriptors `ended` can be read, for at most `seconds`."""
        began = time.monotonic()
        poll = select.poll()
        for descriptor in (*ended, *self._sampler.descriptors):
            poll.register(descriptor, select.POLLIN)
        over = set(ended)
        try:
            while True:
                left = _LOOK_EVERY / 1000
                if seconds is not None:
                    left = min(left, began + seconds - time.monotonic())
                ready = poll.poll(max(left, 0) * 1000)
                for descriptor, events in ready:
                    if descriptor not in over and events & (select.POLLHUP | select.POLLERR):
                        poll.unregister(descriptor)  # its thread has ended
                self.samples.seconds = time.monotonic() - began
                self._drain()
                if progress is not None:
                    progress(self.samples)
                if any(descriptor in over for descriptor, _ in ready):
                    break
                if seconds is not None and self.samples.seconds >= seconds:
                    break
        except KeyboardInterrupt:
            pass  # only where a process was running before: what has been sampled is the result
        finally:
            self._sampler.stop()
            self._drain()
            self._follow(self._waiting)
            self.close()
        self.samples.source = self._sampler.source.name
        return self.samples

    def close(self) -> None:
        """Give everything back."""
        self._sampler.close()
        self._code.close()

    def _drain(self) -> None:
        """Read all buffers. What is newer than the newest record of the time before waits: an older one
        may be on its way in another processor's buffer."""
        found = self._waiting
        for ring in self._sampler.rings.values():
            found += records(ring.read())
        found.sort(key=lambda record: record.time)
        limit, self._latest = self._latest, found[-1].time if found else self._latest
        ready = [record for record in found if record.time <= limit]
        self._waiting = found[len(ready) :]
        self._follow(ready)

    def _follow(self, ready: Iterable[Record]) -> None:
        samples = self.samples
        for record in ready:
            if isinstance(record, Sample):
                samples.total += 1
                place = self._spaces.locate(record.pid, record.ip)
                if place.module == ANONYMOUS:
                    piece = self._code.find(record.pid, record.ip)
                    if piece is not None:
                        samples.generated[piece, record.ip] += 1
                        continue
                samples.places[place] += 1
            elif isinstance(record, Lost):
                samples.lost += record.number
                samples.throttled += record.throttled
            else:
                self._spaces.follow(record)
