"""What the live view shows, and what each key does to that. Nothing here touches a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

from livepro.model.live import BLOCK_ORDERS, FUNCTION_ORDERS, THREAD_ORDERS, Picture, Query


class View(Enum):
    """What fills the screen below its head: the value is the tab's title."""

    OVERVIEW = "overview"
    THREADS = "threads"
    TYPES = "types"
    SIMD = "SIMD"
    FUNCTIONS = "functions"
    BLOCKS = "blocks"
    CODE = "code"
    OUTPUT = "output"
    HELP = "help"


TABS = (View.OVERVIEW, View.THREADS, View.TYPES, View.SIMD, View.FUNCTIONS, View.BLOCKS)
"""The views that have a number."""

ROWS = 200
"""Rows of a list that can be scrolled through."""


class Command(Enum):
    """What a key asks for beyond another view."""

    RESET = "reset"
    SAVE = "save"
    DETACH = "detach"
    REDRAW = "redraw"


@dataclass(frozen=True, slots=True)
class Place:
    """A view with the row that is selected in it, and what it is drilled down to."""

    view: View = View.OVERVIEW
    cursor: int = 0
    thread: int | None = None
    thread_label: str = ""
    function: int | None = None
    function_label: str = ""
    block: int | None = None
    block_label: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """All that the screen depends on besides the picture.

    `back` are the places that Escape returns to, the last first. `asking` is a
    command that waits to be confirmed, `message` stands in the last line until
    the next key. `can` are the commands that the run takes, `output` whether there is
    program output to show.
    """

    place: Place = field(default_factory=Place)
    back: tuple[Place, ...] = ()
    rates: bool = False
    paused: bool = False
    thread_order: str = THREAD_ORDERS[0]
    function_order: str = FUNCTION_ORDERS[0]
    block_order: str = BLOCK_ORDERS[0]
    message: str = ""
    asking: Command | None = None
    quitting: bool = False
    can: frozenset[Command] = frozenset()
    output: bool = False
    output_lines: int = 0
    page: int = 10
    """Rows that Page Up and Page Down move by."""

    def query(self) -> Query:
        """What this state needs a picture to tell."""
        place = self.place
        return Query(
            thread=place.thread,
            function=place.function,
            block=place.block,
            listing=place.view is View.CODE,
            by_rate=self.rates,
            rows=ROWS,
            thread_order=self.thread_order,
            function_order=self.function_order,
            block_order=self.block_order,
        )


def is_of(place: Place, shown: Picture) -> bool:
    """Whether a picture is of what a place is drilled down to: behind a key it may be one of before."""
    query = shown.query
    return (query.thread, query.function, query.block) == (place.thread, place.function, place.block)


def rows_in(place: Place, shown: Picture | None) -> int:
    """Rows that can be selected in a view."""
    if shown is None or not is_of(place, shown):
        return 0
    match place.view:
        case View.OVERVIEW | View.THREADS:
            return len(shown.threads)
        case View.SIMD:
            return len(shown.simd)
        case View.FUNCTIONS:
            return len(shown.functions)
        case View.BLOCKS:
            return len(shown.blocks)
        case View.CODE:
            return len(shown.listing)
    return 0


_CONFIRM = {
    Command.RESET: "Set all counts to zero? They are gone for the report, too. y: yes, any other key: no",
}

_COMMANDS = {"z": Command.RESET, "w": Command.SAVE, "d": Command.DETACH}

_REFUSED = {
    Command.RESET: "The counts of this run cannot be reset.",
    Command.SAVE: "This run cannot be saved.",
    Command.DETACH: "There is nothing to detach from: livepro started this program. q leaves the view.",
}


def press(state: State, key: str, shown: Picture | None) -> tuple[State, Command | None]:
    """The state behind a key, and what the key asks for. `shown` is the picture on the screen."""
    if state.asking is not None:
        asked = state.asking
        state = replace(state, asking=None, message="")
        return state, asked if key in ("y", "Y") else None
    state = replace(state, message="")
    if state.place.view is View.HELP and key not in ("q", "redraw"):
        return _back(state), None
    if key == "redraw":
        return state, Command.REDRAW
    if key in _COMMANDS:
        return _command(state, _COMMANDS[key])
    if key in _ACTIONS:
        return _ACTIONS[key](state, shown), None
    if key.isdigit() and 1 <= int(key) <= len(TABS):
        return _to(state, TABS[int(key) - 1]), None
    return state, None


def _command(state: State, command: Command) -> tuple[State, Command | None]:
    if command not in state.can:
        return replace(state, message=_REFUSED[command]), None
    if command in _CONFIRM:
        return replace(state, asking=command, message=_CONFIRM[command]), None
    return state, command


def _to(state: State, view: View) -> State:
    """Another tab: the filter by thread stays, a function or block chosen does not."""
    place = state.place
    new = Place(view=view, thread=place.thread, thread_label=place.thread_label)
    return replace(state, place=new, back=())


def _tab(state: State, step: int) -> State:
    view = state.place.view
    at = TABS.index(view) if view in TABS else TABS.index(View.BLOCKS) if view is View.CODE else 0
    return _to(state, TABS[(at + step) % len(TABS)])


def _back(state: State) -> State:
    if state.back:
        return replace(state, place=state.back[-1], back=state.back[:-1])
    place = state.place
    if place.view is View.OVERVIEW:
        return replace(state, place=Place()) if place.thread is not None else state
    return _to(state, View.OVERVIEW)


def _into(state: State, place: Place) -> State:
    return replace(state, place=place, back=(*state.back, state.place))


def _over(state: State, view: View) -> State:
    """Show a view over the present one, or take it away again."""
    if state.place.view is view:
        return _back(state)
    return _into(state, replace(state.place, view=view, cursor=0))


def _move(state: State, shown: Picture | None, step: int) -> State:
    place = state.place
    if place.view is View.OUTPUT:  # lines back from the end
        step, last = -step, max(0, state.output_lines - 1)
    else:
        last = max(0, rows_in(place, shown) - 1)
    return replace(state, place=replace(place, cursor=min(max(0, place.cursor + step), last)))


def _enter(state: State, shown: Picture | None) -> State:
    """Drill down: thread, function, block, instructions."""
    place = state.place
    at = place.cursor
    if shown is None or at >= rows_in(place, shown):
        return state
    match place.view:
        case View.OVERVIEW | View.THREADS:
            thread = shown.threads[at]
            label = f"{thread.tid} {thread.name}"
            return _into(state, Place(View.FUNCTIONS, thread=thread.number, thread_label=label))
        case View.FUNCTIONS:
            function = shown.functions[at]
            label = function.name or f"(no symbol) in {function.module or 'anonymous memory'}"
            new = replace(place, view=View.BLOCKS, cursor=0, function=function.number, function_label=label)
            return _into(state, new)
        case View.BLOCKS:
            block = shown.blocks[at]
            label = f"{block.function or '(no symbol)'} block at {block.offset:#x}"
            new = replace(place, view=View.CODE, cursor=0, block=block.number, block_label=label)
            return _into(state, new)
    return state


def _code(state: State, shown: Picture | None) -> State:
    """The instructions of a whole function."""
    place = state.place
    if place.view is View.FUNCTIONS and shown is not None and place.cursor < rows_in(place, shown):
        function = shown.functions[place.cursor]
        label = function.name or f"(no symbol) in {function.module}"
        new = replace(place, view=View.CODE, cursor=0, function=function.number, function_label=label)
        return _into(state, new)
    if place.view is View.BLOCKS and place.function is not None:
        return _into(state, replace(place, view=View.CODE, cursor=0, block=None))
    return replace(state, message="c shows a function's instructions: choose one in view 5.")


def _sort(state: State) -> State:
    match state.place.view:
        case View.OVERVIEW | View.THREADS:
            return replace(state, thread_order=_next(THREAD_ORDERS, state.thread_order))
        case View.FUNCTIONS:
            return replace(state, function_order=_next(FUNCTION_ORDERS, state.function_order))
        case View.BLOCKS:
            return replace(state, block_order=_next(BLOCK_ORDERS, state.block_order))
    return replace(state, message="Nothing to sort here.")


def _next(orders: tuple[str, ...], order: str) -> str:
    return orders[(orders.index(order) + 1) % len(orders)]


def _filter(state: State, shown: Picture | None, step: int) -> State:
    """The next thread of the list alone, or all behind the last."""
    threads = shown.threads if shown is not None else ()
    numbers = [None, *(thread.number for thread in threads)]
    place = state.place
    at = numbers.index(place.thread) if place.thread in numbers else 0
    number = numbers[(at + step) % len(numbers)]
    label = next((f"{t.tid} {t.name}" for t in threads if t.number == number), "")
    return replace(state, place=replace(place, thread=number, thread_label=label))


def _all(state: State) -> State:
    return replace(state, place=replace(state.place, thread=None, thread_label=""))


def _output(state: State) -> State:
    if not state.output:
        return replace(state, message="The program's output is not captured: it goes where it went before.")
    return _over(state, View.OUTPUT)


_ACTIONS: dict[str, Callable[[State, Picture | None], State]] = {
    "q": lambda state, shown: replace(state, quitting=True),
    "?": lambda state, shown: _over(state, View.HELP),
    "h": lambda state, shown: _over(state, View.HELP),
    "o": lambda state, shown: _output(state),
    "up": lambda state, shown: _move(state, shown, -1),
    "k": lambda state, shown: _move(state, shown, -1),
    "down": lambda state, shown: _move(state, shown, 1),
    "j": lambda state, shown: _move(state, shown, 1),
    "pageup": lambda state, shown: _move(state, shown, -state.page),
    "pagedown": lambda state, shown: _move(state, shown, state.page),
    "home": lambda state, shown: _move(state, shown, -1_000_000),
    "g": lambda state, shown: _move(state, shown, -1_000_000),
    "end": lambda state, shown: _move(state, shown, 1_000_000),
    "G": lambda state, shown: _move(state, shown, 1_000_000),
    "enter": _enter,
    "right": _enter,
    "escape": lambda state, shown: _back(state),
    "left": lambda state, shown: _back(state),
    "backspace": lambda state, shown: _back(state),
    "tab": lambda state, shown: _tab(state, 1),
    "backtab": lambda state, shown: _tab(state, -1),
    "s": lambda state, shown: _sort(state),
    "r": lambda state, shown: replace(state, rates=not state.rates),
    "f": lambda state, shown: _filter(state, shown, 1),
    "F": lambda state, shown: _filter(state, shown, -1),
    "a": lambda state, shown: _all(state),
    "c": _code,
    "p": lambda state, shown: replace(state, paused=not state.paused),
    " ": lambda state, shown: replace(state, paused=not state.paused),
}
