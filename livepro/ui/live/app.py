"""The live view's loop: keys in, commands to the run, screens out."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from livepro.analyses.document import to_document
from livepro.errors import LiveproError
from livepro.formats.json_report import write
from livepro.model import RunResult
from livepro.model.live import Picture, Query
from livepro.ui.live.keys import KeyReader
from livepro.ui.live.output import CapturedOutput
from livepro.ui.live.page import body_height, page
from livepro.ui.live.state import Command, State, View, press, rows_in
from livepro.ui.live.style import Paper
from livepro.ui.live.terminal import Terminal

_ESCAPE_TIME = 0.05
"""Seconds after which an Escape is a key and not the beginning of another one."""

_IDLE = 1.0
"""Seconds between two looks at the terminal's size when nothing else happens."""


class Actions(Protocol):
    """See `livepro.live.run.Actions`."""

    @property
    def reset(self) -> Callable[[], str] | None: ...
    @property
    def present(self) -> Callable[[], RunResult] | None: ...
    @property
    def detach(self) -> Callable[[], str] | None: ...
    @property
    def attend(self) -> Callable[[], float] | None: ...


class Run(Protocol):
    """See `livepro.live.run.LiveRun`."""

    query: Query
    paused: bool

    @property
    def actions(self) -> Actions: ...
    @property
    def picture(self) -> Picture | None: ...
    @property
    def changed(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    @property
    def dismissed(self) -> bool: ...
    @property
    def failure(self) -> Exception | None: ...
    def seen(self) -> None: ...


class LiveView:
    """Shows a run on the terminal until the user leaves: call it with the run.

    It is to be used as a context manager from before the program is started to
    after its end. With `capture` the program's output is kept meanwhile.
    """

    def __init__(self, terminal: Terminal, *, capture: bool) -> None:
        self._terminal = terminal
        self._output = CapturedOutput() if capture else None

    def __enter__(self) -> Self:
        if self._output is not None:
            self._output.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._output is not None:
            self._output.__exit__()
        self._terminal.close()

    def __call__(self, run: Run) -> None:
        """Show `run`; return when the user leaves, when nothing is left to show, or when told to.
        Raises what made looking at the run fail; the terminal is its own again then."""
        try:
            with self._terminal:
                Loop(run, self._terminal, self._output).run()
        finally:
            if self._output is not None:
                self._output.release()
        if run.failure is not None:
            raise run.failure


class Loop:
    """One showing."""

    def __init__(self, run: Run, terminal: Terminal, output: CapturedOutput | None) -> None:
        self._run = run
        self._terminal = terminal
        self._output = output if output is not None and output.captures else None
        self._keys = KeyReader()
        self._shown: Picture | None = None
        self._ascii = not terminal.utf8
        actions = run.actions
        possible = (
            (Command.RESET, actions.reset),
            (Command.SAVE, actions.present),
            (Command.DETACH, actions.detach),
        )
        self._state = State(
            can=frozenset(command for command, action in possible if action is not None),
            output=self._output is not None,
        )

    def run(self) -> None:
        """Until the user leaves."""
        run, descriptor = self._run, self._terminal.descriptor
        while not self._state.quitting and not run.dismissed and run.failure is None:
            self._draw()
            patience = _ESCAPE_TIME if self._keys.pending else _IDLE
            if run.actions.attend is not None:
                patience = min(patience, run.actions.attend())
            ready = select.select([descriptor, run.changed], [], [], patience)[0]
            if run.changed in ready:
                run.seen()
            try:
                keys = self._keys.feed(self._terminal.read()) if descriptor in ready else []
            except EOFError:
                return
            if self._keys.pending and not ready:
                keys = self._keys.flush()
            for key in keys:
                self._press(key)
            run.query = self._state.query()
            run.paused = self._state.paused

    def _picture(self) -> Picture | None:
        """The latest picture; while the display is paused, the one that it was paused at, or what
        has been asked for since."""
        latest, shown = self._run.picture, self._shown
        if self._state.paused and latest is not None and shown is not None and latest.query == shown.query:
            return shown
        self._shown = latest
        return latest

    def _draw(self) -> None:
        columns, rows = self._terminal.size
        paper = Paper(columns, rows, self._ascii)
        shown = self._picture()
        if shown is not None and self._run.ended and self._state.paused:
            shown = replace(shown, ended=True)
        written = self._output.lines() if self._output and self._state.place.view is View.OUTPUT else []
        place = self._state.place
        if place.view is not View.OUTPUT and shown is not None and shown.query == self._state.query():
            last = max(0, rows_in(place, shown) - 1)
            if place.cursor > last:
                self._state = replace(self._state, place=replace(place, cursor=last))
        self._state = replace(
            self._state,
            page=max(1, body_height(paper) - 2),
            output_lines=max(0, len(written) - paper.height + 8),
        )
        self._terminal.draw(page(self._state, shown, paper, written))

    def _press(self, key: str) -> None:
        state, command = press(self._state, key, self._shown)
        self._state = state
        if command is Command.REDRAW:
            self._terminal.redraw()
        elif command is not None:
            self._perform(command)

    def _perform(self, command: Command) -> None:
        actions = self._run.actions
        action = {Command.RESET: actions.reset, Command.SAVE: self._save, Command.DETACH: actions.detach}[
            command
        ]
        if action is None:
            return
        try:
            message = action()
        except (LiveproError, OSError) as error:
            message = f"That failed: {error}"
        else:
            if command is Command.DETACH:
                self._state = replace(self._state, quitting=True)
        self._state = replace(self._state, message=message)

    def _save(self) -> str:
        """Write the counts so far into a new file in the present directory."""
        if self._run.actions.present is None:
            raise LiveproError("This run cannot be saved.")
        self._state = replace(self._state, message="Saving the counts ...")
        self._draw()
        result = self._run.actions.present()
        path = Path(time.strftime("livepro-%Y%m%d-%H%M%S.json"))
        path.open("x").close()  # nothing of that name is written over
        write(str(path), to_document(result))
        return f"Saved {result.instructions:,} instructions and all about them as {path}"
