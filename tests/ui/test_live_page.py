"""What the live view's screens look like: in 80 x 24 characters and in more, without colour, in ASCII."""

from __future__ import annotations

from dataclasses import replace

import pytest
from live_pictures import LONG_NAME, picture

from livepro.model.live import Measure, Picture
from livepro.ui.live.page import page
from livepro.ui.live.state import Command, Place, State, View
from livepro.ui.live.style import Paper

SIZES = [(80, 24), (120, 40), (60, 16), (200, 60)]
ALL = frozenset((Command.RESET, Command.SAVE))


def drawn(
    state: State, shown: Picture | None, width: int = 80, height: int = 24, ascii_: bool = False
) -> list[str]:
    if shown is not None:
        shown = replace(shown, query=state.query())
    lines = page(state, shown, Paper(width, height, ascii_), ["first line", "x" * 300])
    assert len(lines) == height
    assert [line.plain for line in lines if line.cell_len > width or "\n" in line.plain] == []
    return [line.plain.rstrip() for line in lines]


def at(view: View, **facts: object) -> State:
    return State(place=Place(view=view, **facts), can=ALL, output=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("view", View)
def test_every_view_fits(view: View, width: int, height: int) -> None:
    for shown in (
        None,
        picture(),
        picture(0, 0, 0, moments=(), simd=(), simd_types=()),
        picture(150, 200, 10**18),
        picture(1, 1, ended=True, exit=3),
    ):
        for state in (
            at(view),
            at(view, thread=0, thread_label=LONG_NAME, function=1, function_label=LONG_NAME),
        ):
            drawn(state, shown, width, height)
            drawn(replace(state, rates=True), shown, width, height)
            drawn(replace(state, paused=True, message=LONG_NAME), shown, width, height)


def test_lists_of_something_else_are_not_shown() -> None:
    """Right behind a key the picture is that of before."""
    state = at(View.FUNCTIONS, thread=1, thread_label="2 two")
    lines = page(state, picture(), Paper(80, 24), [])
    name = picture().functions[0].name
    assert not any(name in line.plain for line in lines)
    shown = replace(picture(), query=state.query())
    assert any(name in line.plain for line in page(state, shown, Paper(80, 24), []))


def test_the_overview_says_what_matters_on_80_by_24() -> None:
    lines = drawn(at(View.OVERVIEW), picture())
    text = "\n".join(lines)
    assert lines[0].startswith("livepro  /opt/server/")
    assert lines[0].endswith("translate engine  running 1:15")
    assert lines[1] == "  123,456,789,012 instructions  812 M/s  SIMD 12.3 %  54,321 blocks  3 threads"
    wide = drawn(at(View.OVERVIEW), picture(), 100)
    assert wide[1].endswith("54,321 blocks  3 threads  2 processes")
    assert lines[2].startswith("  rate")
    assert lines[2].endswith("peak 260 M/s")
    assert lines[3].startswith("  phase")
    assert lines[3].endswith("1 column = 1 s")
    assert lines[4].startswith(" [1 overview] 2 threads ")
    assert lines[4].endswith("TOTALS")
    assert "mem read        25.0 % ███" in text
    assert "AVX512BW 256     10.0 %" in text
    assert "> 4000     a-very" in text
    assert "main" in text
    assert lines[-1].startswith(" q quit  ? help")


def test_rates_replace_totals_in_shares() -> None:
    shown = picture(selected=Measure(1000, 100.0), itypes=(("control", Measure(100, 90.0)),))
    assert "control                    100   10.0 %" in "\n".join(drawn(at(View.TYPES), shown))
    lines = drawn(replace(at(View.TYPES), rates=True), shown)
    assert lines[4].endswith("RATES")
    assert "control                   90/s   90.0 %" in "\n".join(lines)


def test_shares_of_types_are_of_what_is_known() -> None:
    """Blocks that are yet to be described are in no type: shares are of the others, and it is said."""
    shown = picture(selected=Measure(1000, 0.0), unnamed=600, itypes=(("control", Measure(100, 0.0)),))
    text = "\n".join(drawn(at(View.TYPES), shown))
    assert "60 % of the instructions are yet to be looked into" in text
    assert "25.0 %" in text


def test_the_selected_row_is_marked_and_kept_in_sight() -> None:
    for cursor in (0, 7, 100, 199):
        lines = drawn(at(View.FUNCTIONS, cursor=cursor), picture(functions=200))
        marked = [line for line in lines if line.startswith(">")]
        assert len(marked) == 1
        assert f"{round(123_456_789_012 * 0.6 / (cursor + 1)):,}" in marked[0]
    assert lines[-2].strip() == "185 to 200 of 700 functions; only the first 200 are listed"


def test_instructions_with_their_counts() -> None:
    place = {"function_label": "main", "function": 0, "block": 3, "block_label": "main block at 0x4000"}
    lines = drawn(at(View.CODE, **place), picture())
    assert lines[5].strip() == "main block at 0x4000"
    assert lines[7].split() == [">", "4000", "*", "1,000,000,000", "████████", "mov", "rbp,", "rsp"]
    assert lines[8].split() == ["4001", "999,999,999", "████████", "rep", "movsb", "[rdi],", "[rsi]"]
    wide = drawn(at(View.CODE, **place), picture(), 120, 40)
    assert any("48 89 e5" in line for line in wide)


def test_a_first_second_without_anything_counted() -> None:
    assert "Nothing has been counted yet." in "\n".join(
        drawn(at(View.OVERVIEW), picture(0, 0, 0, moments=()))
    )
    assert drawn(at(View.OVERVIEW), None)[0] == "livepro  starting"


def test_the_end_is_announced() -> None:
    lines = drawn(at(View.OVERVIEW), picture(ended=True, exit=3, threads_alive=0))
    assert lines[0].endswith("ended, exit 3 1:15")
    assert lines[-1] == " The program has ended.  q  leave for the report   ?  help"


def test_plain_ascii() -> None:
    for view in View:
        for line in drawn(at(view), picture(), ascii_=True):
            assert line.isascii(), line


def test_no_colour_is_needed_to_read_it() -> None:
    """What a style says, a character says too: the selected row, the tab, the filter, a pause."""
    state = at(View.THREADS, cursor=1, thread=1, thread_label="4001 worker-1")
    text = "\n".join(drawn(replace(state, paused=True), picture()))
    assert "> 4001" in text
    assert "thread 4001 worker-1" in text
    assert "DISPLAY PAUSED" in text
    assert "[2 threads]" in text


def test_output_shows_its_end_and_scrolls_back() -> None:
    written = [f"line {n}" for n in range(100)]
    state = at(View.OUTPUT)
    lines = [line.plain.strip() for line in page(state, picture(), Paper(80, 24), written)]
    assert lines[6:-1] == written[-17:]
    state = replace(state, place=replace(state.place, cursor=40))
    lines = [line.plain.strip() for line in page(state, picture(), Paper(80, 24), written)]
    assert lines[6:-1] == written[43:60]


def test_help_names_every_key_it_can() -> None:
    text = "\n".join(drawn(at(View.HELP), picture()))
    for what in (
        "another view",
        "set all counts to zero",
        "save the counts",
        "has written",
        "Ctrl-C",
    ):
        assert what in text
    attached = replace(at(View.HELP), can=ALL | {Command.DETACH})
    assert "let the program go" in "\n".join(drawn(attached, picture()))
    without = "\n".join(drawn(State(place=Place(view=View.HELP)), picture()))
    assert "zero" not in without
    assert "has written" not in without


def test_too_small_a_terminal_is_told_so() -> None:
    assert "needs 60 x 16" in drawn(at(View.OVERVIEW), picture(), 50, 10)[0]
