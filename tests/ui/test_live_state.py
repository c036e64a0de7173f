"""What keys do."""

from __future__ import annotations

from dataclasses import replace

from live_pictures import picture

from livepro.ui.live.keys import KeyReader
from livepro.ui.live.state import Command, State, View, press

SHOWN = picture()
ABLE = State(can=frozenset((Command.RESET, Command.SAVE)), output=True)


def after(*keys: str, state: State = ABLE) -> State:
    """The state behind some keys, each pressed once there is a picture of what the one before asked for."""
    for key in keys:
        state, _ = press(state, key, replace(SHOWN, query=state.query()))
    return state


def test_numbers_and_tab_choose_a_view() -> None:
    assert [after(str(n)).place.view for n in range(1, 7)] == [
        View.OVERVIEW,
        View.THREADS,
        View.TYPES,
        View.SIMD,
        View.FUNCTIONS,
        View.BLOCKS,
    ]
    assert after("tab", "tab").place.view is View.TYPES
    assert after("backtab").place.view is View.BLOCKS
    assert after("9").place.view is View.OVERVIEW


def test_drilling_down_and_back() -> None:
    state = after("2", "down", "enter")
    assert (state.place.view, state.place.thread) == (View.FUNCTIONS, SHOWN.threads[1].number)
    state = after("down", "down", "enter", state=state)
    assert (state.place.view, state.place.function) == (View.BLOCKS, SHOWN.functions[2].number)
    assert "no symbol" in state.place.function_label
    state = after("down", "enter", state=state)
    assert (state.place.view, state.place.block) == (View.CODE, SHOWN.blocks[1].number)
    query = state.query()
    assert (query.thread, query.function, query.block, query.listing) == (1, 2, 1, True)
    state = after("escape", state=state)
    assert (state.place.view, state.place.cursor, state.query().block) == (View.BLOCKS, 1, None)
    state = after("left", "backspace", state=state)
    assert (state.place.view, state.place.cursor, state.query().thread) == (View.THREADS, 1, None)
    assert after("escape", "escape", state=state).place.view is View.OVERVIEW


def test_what_is_listed_of_something_else_is_not_opened() -> None:
    """The picture is of all threads until there is one of the thread chosen: its functions may not be that
    thread's, and their blocks would never be seen."""
    state = after("2", "down", "enter")
    for key in ("enter", "c", "down"):
        state, _ = press(state, key, SHOWN)
        assert (state.place.view, state.place.thread, state.place.cursor) == (View.FUNCTIONS, 1, 0)
    state, _ = press(state, "enter", replace(SHOWN, query=state.query()))
    assert (state.place.view, state.place.function) == (View.BLOCKS, SHOWN.functions[0].number)


def test_a_whole_functions_code() -> None:
    state = after("5", "c")
    assert (state.place.view, state.query().function, state.query().block) == (View.CODE, 0, None)
    assert after("5", "enter", "c").place.view is View.CODE
    assert "choose one" in after("3", "c").message


def test_the_filter_by_thread_goes_round_and_stays() -> None:
    state = after("f")
    assert state.place.thread == 0
    assert after("5", state=state).place.thread == 0
    assert after("f", "f", "f", state=state).place.thread is None
    assert after("F").place.thread == 2
    assert after("f", "a").place.thread is None
    assert after("f", "escape").place.thread is None


def test_sorting_goes_round() -> None:
    assert after("2", "s").thread_order == "SIMD"
    assert after("2", "s", "s", "s", "s").thread_order == "instructions"
    assert after("5", "s").function_order == "SIMD"
    assert after("6", "s").query().block_order == "executions"
    assert "Nothing to sort" in after("3", "s").message


def test_rates_and_pause_are_switches() -> None:
    assert after("r").query().by_rate
    assert not after("r", "r").rates
    assert after("p").paused
    assert not after("p", " ").paused


def test_the_cursor_stays_in_its_list() -> None:
    assert after("2", "up").place.cursor == 0
    assert after("2", "pagedown").place.cursor == len(SHOWN.threads) - 1
    assert after("5", "G").place.cursor == len(SHOWN.functions) - 1
    assert after("5", "end", "home").place.cursor == 0
    assert press(after("5"), "enter", None)[0].place.view is View.FUNCTIONS  # nothing there yet


def test_what_cannot_be_undone_is_asked_for() -> None:
    state, done = press(ABLE, "z", SHOWN)
    assert (done, state.asking) == (None, Command.RESET)
    assert "y: yes" in state.message
    assert press(state, "y", SHOWN) == (replace(state, asking=None, message=""), Command.RESET)
    assert press(state, "q", SHOWN)[1] is None
    assert not press(state, "q", SHOWN)[0].quitting


def test_what_the_run_does_not_take_is_refused_with_a_word() -> None:
    state, command = press(State(), "z", SHOWN)
    assert command is None
    assert "cannot be reset" in state.message
    assert press(ABLE, "w", SHOWN)[1] is Command.SAVE
    assert press(replace(ABLE, can=frozenset(Command)), "d", SHOWN)[1] is Command.DETACH
    assert "not captured" in after("o", state=State()).message


def test_help_and_output_lie_over_the_view() -> None:
    assert after("5", "?").place.view is View.HELP
    assert after("5", "?", "x").place.view is View.FUNCTIONS
    assert after("5", "o", "o").place.view is View.FUNCTIONS
    assert after("o", "?", "x", "escape").place.view is View.OVERVIEW
    scrolled = after("o", "up", "pageup", state=replace(ABLE, output_lines=100))
    assert scrolled.place.cursor == 11
    assert after("?", "q").quitting


def test_keys_from_bytes() -> None:
    reader = KeyReader()
    assert reader.feed(b"q\x1b[A\x1bOB\x1b[5~\t\r\x7f\xc3\xa9\x1b[Z") == [
        *("q", "up", "down", "pageup", "tab", "enter", "backspace", "é", "backtab")
    ]
    assert reader.feed(b"\x1b") == []
    assert reader.pending
    assert reader.feed(b"[") == []
    assert reader.feed(b"B") == ["down"]
    assert not reader.pending


def test_escape_alone_is_a_key_once_nothing_follows() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.flush() == ["escape"]
    assert reader.feed(b"\x1b\x1b[Aq") == ["escape", "up", "q"]
    assert reader.feed(b"\x1b[38;5;1x\x01j") == ["j"]  # unknown sequences and controls are passed over
