"""`livepro.run`: what the command line itself uses."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from livepro.engines import NAMES, engine_class
from livepro.engines.base import EngineOptions
from livepro.engines.control import Control
from livepro.engines.live import Progress
from livepro.engines.region import Region
from livepro.engines.region_text import parse_region
from livepro.errors import LiveproError
from livepro.linux import proc
from livepro.model import RunResult
from livepro.model.itypes import ItypesSpec

if TYPE_CHECKING:
    from pandas import DataFrame

    from livepro.attachment import Attachment
    from livepro.engines.base import Engine
    from livepro.events import Analysis
    from livepro.events.recording import Recording
    from livepro.isa.base import Isa
    from livepro.live import LiveRun
    from livepro.live.timeline import Recorder
    from livepro.sampling import Sampler

ENGINES = NAMES
"""Names that `run` takes for `engine`; auto chooses the one that suits the machine."""

SMALLEST_CACHE = 1000
"""Bytes that `cache_size` may be at least."""


_ADDED = b"LC_CTYPE"
_ADDED_VALUES = (b"C.UTF-8", b"C.utf8", b"UTF-8")  # Python/pylifecycle.c, _TARGET_LOCALES


class Result(RunResult):
    """What `run` returns."""

    def to_pandas(self, spec: ItypesSpec | None = None) -> dict[str, DataFrame]:
        """The run as pandas data frames ``threads``, ``simd``, ``itypes`` and ``blocks``, and those of each
        analysis of the event stream, by its name.

        `livepro.analyses.dataframe.to_pandas` describes the columns, `livepro.events.told.frames.tables` and
        `Analysis.frames` those of analyses; `spec` are instruction-type groups of the user's. Raises
        LiveproError when pandas is not installed.
        """
        from livepro.analyses.dataframe import to_pandas

        frames = to_pandas(self, spec)
        if self.analyses:
            from pandas import DataFrame

            from livepro.events.told.frames import tables

            frames |= {name: DataFrame(rows) for name, rows in tables(self.analyses).items()}
        return frames


def run(
    command: Sequence[str],
    *,
    engine: str = "auto",
    env: Mapping[str, str] | Mapping[bytes, bytes] | None = None,
    aslr: bool = True,
    children: str = "follow",
    interval_size: int = 0,
    bbv_dialect: str = "exact",
    start_at: str = "",
    stop_at: str = "",
    skip: int = 0,
    count: int = 0,
    cache: bool | str | Path = True,
    cache_size: int | None = None,
    demangle: bool = True,
    analyses: Sequence[str | Analysis | type[Analysis]] = (),
    stream_memory: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    control: Callable[[Control], None] | None = None,
    live: Callable[[LiveRun], None] | None = None,
    serve: bool = False,
    metrics: str = "",
    timeline: bool = False,
    snapshot_every: int = 0,
) -> Result:
    """Run `command` to its end and return what every thread of it executed.

    `env` is the program's environment (None: this process's own),
    `aslr` False makes address-space layout, and so runs, repeatable,
    `children` is "follow" or "ignore". `interval_size` in instructions asks for
    basic block vectors (0: none), cut as `bbv_dialect` ("exact" or "exp-bbv")
    says. `start_at`, `stop_at`, `skip` and `count` choose the part of the run that is counted: from
    when a thread first comes to a function (its name, ``MODULE!NAME`` or ``MODULE+0xOFFSET``; with
    ``:N`` behind it, when threads come there for the Nth time since the beginning of the run, with ``:N@T``,
    when each process's Tth thread does) and
    `skip` instructions later, until one comes to `stop_at` or `count` have been counted; the
    program is then let go, and the result's `exit` is None. The result's `region` says what became
    of that. `cache` is the directory in which translated code is kept from run to run
    (True: the user's own, False: none; see `livepro cache`). `cache_size` is about how many bytes
    translated code may take in each process (None: 160 MB; the translate engine only); when there
    would be more, all of it is dropped and translated anew, and no count with it. `demangle` False leaves the
    functions of C++ and Rust as their symbols are. `progress` is called a few
    times a second while the command runs.
    `analyses` see the event stream (`livepro.events`): classes, objects, or names as `livepro run --analysis`
    takes them; what they tell is in the result's `analyses`. `stream_memory` is about how many bytes of the
    stream may wait for them (None: 64 MB); when there would be more, the program waits.
    `control` is called when the run begins, with what resets, pauses and takes snapshots of it,
    from any thread: `control.perform("reset")`. `serve` takes the same commands from
    `livepro ctl`; `metrics` is the address, ``[HOST]:PORT``, at which the counts are served as
    OpenMetrics. `live` is called once while the command runs, from the calling thread, with
    what a live view needs (`livepro.live.LiveRun`). `timeline` keeps how fast each
    thread went from beginning to end, in the result's `timeline`; that takes up to a ninth of a processor.
    `snapshot_every` takes a snapshot each time that all threads together have executed so many instructions
    more (0: none), to the instruction; they are in the result's `snapshots`.
    The program shares this process's standard streams and working directory.

    The program is traced from a thread of livepro's own. An exception that comes
    from `progress` ends the program and comes out of `run`. Called from the main
    thread, `run` takes over SIGINT, SIGQUIT, SIGTERM, SIGHUP and SIGALRM while it
    lasts: Ctrl-C is the program's affair then.

    Raises LiveproError when the command cannot be found (status 127), cannot
    be executed or measured (126), or an argument is wrong (2).
    """
    from livepro import isa
    from livepro.linux.command import check_executable, resolve_command
    from livepro.linux.places import check_command
    from livepro.serving.served import served
    from livepro.session import Session

    if not command:
        raise LiveproError("There is no command to run.", "Give one: livepro run -- COMMAND [ARGS...].")
    machine = isa.for_machine(platform.machine())
    environment = _inherited() if env is None else _bytes(env)
    executable = resolve_command(command[0], environment)
    warnings = check_executable(executable, machine.name)
    region = parse_region(start_at, stop_at, skip, count, snapshot_every)
    for place in filter(None, (region.start, region.stop)):
        check_command(place, executable, environment)
    recording = _recording(analyses, machine, cache, interval_size, bbv_dialect, stream_memory)
    if recording is not None:
        engine = recording.check(engine, machine, region)
    chosen = _engine(
        engine, machine, children, interval_size, bbv_dialect, cache, region, cache_size, recording
    )
    chosen.warnings.extend(warnings)
    if control is not None:
        control(chosen.control)
    session = Session(chosen, machine, demangle=demangle)
    recorder = _recorder() if timeline else None
    with served(chosen, machine, command, commands=serve, metrics=metrics):
        found = session.run(
            executable,
            command,
            environment,
            aslr=aslr,
            interval_size=interval_size,
            progress=progress,
            live=live if recorder is None else recorder.beside(live, progress),
        )
    return _result(found if recording is None else recording.finish(found), recorder)


def attach(
    pid: int,
    *,
    engine: str = "auto",
    seconds: float | None = None,
    instructions: int | None = None,
    children: bool = False,
    interval_size: int = 0,
    bbv_dialect: str = "exact",
    start_at: str = "",
    stop_at: str = "",
    skip: int = 0,
    count: int = 0,
    cache: bool | str | Path = True,
    cache_size: int | None = None,
    demangle: bool = True,
    analyses: Sequence[str | Analysis | type[Analysis]] = (),
    stream_memory: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[Attachment], None] | None = None,
    serve: bool = False,
    metrics: str = "",
    live: Callable[[LiveRun], None] | None = None,
    timeline: bool = False,
) -> Result:
    """Watch the running process `pid` for a while, let it go, and return what it executed meanwhile.

    It is let go after `seconds`, once about `instructions` have been counted, when
    `Attachment.detach` is called (`started` is given the attachment before it
    begins), or when livepro is sent SIGINT, SIGTERM or SIGHUP. With `children` its
    descendants are measured too, those there are and those to come. The result's
    `exit` is None for a process that went on. The other arguments are those of `run`.

    Should this process be killed by SIGKILL meanwhile, so is the one attached to; the
    command line takes care of that (`livepro attach`).

    Raises LiveproError, the process untouched, when it cannot be attached to.
    """
    from livepro import isa
    from livepro.attachment import Attachment, Limits
    from livepro.linux import target
    from livepro.linux.places import check_process
    from livepro.serving.served import served

    if seconds is not None and seconds <= 0:
        raise LiveproError(f"A measurement of {seconds} seconds is not possible.")
    machine = isa.for_machine(platform.machine())
    warnings = target.check(pid, machine.name)
    following = "follow" if children else "ignore"
    region = parse_region(start_at, stop_at, skip, count)
    for place in filter(None, (region.start, region.stop)):
        check_process(place, pid)
    recording = _recording(analyses, machine, cache, interval_size, bbv_dialect, stream_memory)
    if recording is not None:
        engine = recording.check(engine, machine, region)
    chosen = _engine(
        engine, machine, following, interval_size, bbv_dialect, cache, region, cache_size, recording
    )
    chosen.warnings.extend(warnings)
    attachment = Attachment(chosen, machine, Limits(seconds, instructions), demangle=demangle)
    if started is not None:
        started(attachment)
    recorder = _recorder() if timeline else None
    with served(chosen, machine, proc.command_line(pid), commands=serve, metrics=metrics):
        found = attachment.watch(
            pid,
            children=children,
            interval_size=interval_size,
            progress=progress,
            live=live if recorder is None else recorder.beside(live, progress),
        )
    return _result(found if recording is None else recording.finish(found), recorder)


def sample(
    pid: int,
    *,
    every: float,
    window: float = 0.2,
    seconds: float | None = None,
    engine: str = "auto",
    children: bool = False,
    cache: bool | str | Path = True,
    demangle: bool = True,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[Sampler], None] | None = None,
) -> Result:
    """Watch the running process `pid` for `window` seconds every `every` seconds, and return what it
    executed in all these windows together; the result's `sampling` has them one by one, and
    `livepro.analyses.sampling.estimate` says what follows for the whole time.

    Between windows the process is not traced. It ends after `seconds`, when the process does, when
    `Sampler.stop` is called (`started` is given the sampler), or when livepro is sent SIGINT,
    SIGTERM or SIGHUP. The other arguments are those of `attach`.

    Raises LiveproError, the process untouched, when it cannot be attached to.
    """
    from livepro.sampling import Sampler

    if not 0 < window < every:
        raise LiveproError(
            f"Windows of {window} seconds every {every} seconds are not possible.",
            "A window must be shorter than the time from one to the next.",
        )
    sampler = Sampler(pid, every, seconds)
    if started is not None:
        started(sampler)
    return _result(
        sampler.run(
            lambda begun: attach(
                pid,
                engine=engine,
                seconds=window,
                children=children,
                cache=cache,
                demangle=demangle,
                progress=progress,
                started=begun,
            )
        )
    )


def find_process(name: str, *, children: bool = False) -> int:
    """The pid of the one process with that name; with `children`, of those with that name the one that all
    others descend from. Raises LiveproError when there is none, or several."""
    from livepro.linux import target

    return target.named(name, children=children)


def _engine(
    name: str,
    machine: Isa,
    children: str,
    interval_size: int,
    bbv_dialect: str,
    cache: bool | str | Path,
    region: Region,
    cache_size: int | None,
    recording: Recording | None = None,
) -> Engine:
    """The engine of that name with its options. Raises LiveproError for those that are wrong."""
    from livepro.kept.place import default_directory
    from livepro.linux.command import check_executable

    if children not in ("follow", "ignore"):
        raise LiveproError(f"'{children}' is no way to treat children.", "Choose 'follow' or 'ignore'.")
    if cache_size is not None and cache_size < SMALLEST_CACHE:
        raise LiveproError(
            f"A code cache of {cache_size} bytes is too small.", f"Give it {SMALLEST_CACHE} or more."
        )
    cut = _cut(interval_size, bbv_dialect)

    def measurable(pid: int) -> bool:
        try:
            check_executable(f"/proc/{pid}/exe", machine.name)
        except LiveproError:
            return proc.dying(pid)  # of which there is nothing left to be read, and nothing to be counted
        return True

    options = EngineOptions(
        follow_children=children == "follow",
        cut=cut if recording is None else None,  # else the stream is cut
        measurable=measurable,
        kept=(default_directory() if cache is True else Path(cache)) if cache else None,
        region=region if region != Region() else None,
        cache_size=cache_size,
        stream=None if recording is None else recording.recorder,
    )
    engine = engine_class(name, machine.name)(machine, options)
    if recording is not None:
        recording.watch(engine)
    return engine


def _recording(
    analyses: Sequence[str | Analysis | type[Analysis]],
    machine: Isa,
    cache: bool | str | Path,
    interval_size: int,
    dialect: str,
    memory: int | None,
) -> Recording | None:
    """The analyses of a run, ready; None if there are none. Raises LiveproError for too little memory."""
    if not analyses:
        return None
    from livepro.events.recording import Recording

    return Recording.of(analyses, machine, cache, _cut(interval_size, dialect), memory)


def _cut(interval_size: int, dialect: str) -> Callable[[int], int] | None:
    """Where the intervals of threads end; None if there are none. Raises LiveproError for what is wrong."""
    from livepro.analyses.bbv import next_cut

    if interval_size < 0:
        raise LiveproError(f"An interval of {interval_size} instructions is not possible.")
    if dialect not in ("exact", "exp-bbv"):
        raise LiveproError(f"There is no dialect '{dialect}'.", "Choose 'exact' or 'exp-bbv'.")
    return partial(next_cut, dialect, interval_size) if interval_size else None


def _recorder() -> Recorder:
    from livepro.live.timeline import Recorder

    return Recorder()


def _result(found: RunResult, recorder: Recorder | None = None) -> Result:
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    if recorder is not None:
        values["timeline"] = recorder.timeline()
    return Result(**values)


def _inherited() -> dict[bytes, bytes]:
    """This process's environment with what the caller has changed in it, but without the
    LC_CTYPE that CPython adds when it is started in the C locale (PEP 538)."""
    own = dict(os.environb)
    if own.get(_ADDED) in _ADDED_VALUES and _ADDED not in proc.initial_environment():
        del own[_ADDED]
    return own


def _bytes(environment: Mapping[str, str] | Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    return {os.fsencode(key): os.fsencode(value) for key, value in environment.items()}
