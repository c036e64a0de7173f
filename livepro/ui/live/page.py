"""The whole screen: head, strips, tabs, one view, keys. From state and picture to lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from livepro.model.live import Picture
from livepro.ui.live import lists
from livepro.ui.live.help import help_lines
from livepro.ui.live.state import TABS, Command, State, View, is_of
from livepro.ui.live.strip import strips
from livepro.ui.live.style import Paper, clock, fitted, rate, share
from livepro.ui.text import grouped, plural
from livepro.ui.view import shown as shown_command

LEAST_WIDTH, LEAST_HEIGHT = 60, 16
"""Below that there is no room for anything useful."""

TALL = 30
"""From so many lines on there is room for more than the needful."""


def page(state: State, shown: Picture | None, paper: Paper, output: Sequence[str] = ()) -> list[Text]:
    """Exactly `paper.height` lines of at most `paper.width` columns.

    `output` are the lines that the program has written, for the view that shows them.
    """
    if paper.width < LEAST_WIDTH or paper.height < LEAST_HEIGHT:
        small = Text(
            paper.cut(f"The live view needs {LEAST_WIDTH} x {LEAST_HEIGHT} characters.", paper.width)
        )
        return ([small] + [Text("")] * paper.height)[: paper.height]
    head = heading(state, shown, paper)
    below = replace(paper, height=paper.height - len(head) - 1)
    body = view(state, shown, below, output)[: below.height]
    body += [Text("")] * (below.height - len(body))
    return [fitted(line, paper.width) for line in (*head, *body, foot(state, shown, paper))]


def body_height(paper: Paper) -> int:
    """Lines of the view below the head."""
    return max(1, paper.height - (7 if paper.height >= TALL else 6))


def heading(state: State, shown: Picture | None, paper: Paper) -> list[Text]:
    """What is run and how far it is; totals; strips; tabs."""
    if shown is None:
        first = Text("livepro", "bold").append("  starting", "default")
        blank = [Text("")] * (4 if paper.height >= TALL else 3)
        return [first, *blank, tabs(state, paper)]
    status = "ended" if shown.ended else "running"
    if shown.whole.total and not shown.threads_alive:
        status = "ending"
    if not shown.counting:
        status = "counting paused"
    if shown.ended and shown.exit is not None:
        status = f"ended, exit {shown.exit}"
    right = (
        Text(f"{shown.engine} engine  ").append(status, "bold").append(f" {clock(shown.seconds)}", "default")
    )
    if state.paused:
        right = Text("DISPLAY PAUSED", "bold reverse").append("  ", "not reverse").append(right)
    left = Text("livepro  ", "bold").append(shown_command(shown.command), "default")
    parts = [
        f"{grouped(shown.whole.total)} instructions",
        *([] if shown.ended else [rate(shown.whole) if shown.whole.rate >= 0.5 else "idle"]),
        f"SIMD {share(shown.whole_simd, shown.whole, state.rates)}",
        plural(shown.distinct_blocks, "block"),
        plural(shown.threads_alive, "thread"),
    ]
    if shown.processes > 1:
        parts.append(plural(shown.processes, "process", "processes"))
    while len("  ".join(parts)) + 2 > paper.width:
        del parts[-1]
    return [
        paper.sides(left, right),
        Text("  " + "  ".join(parts)),
        *strips(shown.moments, paper, simd=paper.height >= TALL),
        tabs(state, paper),
    ]


def tabs(state: State, paper: Paper) -> Text:
    """The views by number, and what is shown of them: which thread, totals or rates."""
    line = Text(" ")
    for number, tab in enumerate(TABS, 1):
        here = state.place.view is tab
        name = f"[{number} {tab.value}]" if here else f" {number} {tab.value} "
        line.append(name, "bold reverse" if here else "")
    if state.place.view not in TABS:
        line.append(f"[{state.place.view.value}]", "bold reverse")
    return paper.sides(line, Text("RATES" if state.rates else "TOTALS", "bold"))


def view(state: State, shown: Picture | None, paper: Paper, output: Sequence[str]) -> list[Text]:
    """What fills the screen below the tabs."""
    place = state.place
    if place.view is View.HELP:
        return help_lines(paper, state.can, state.output)
    if place.view is View.OUTPUT:
        return output_lines(state, paper, output)
    if shown is None or not shown.whole.total:
        ended = shown is not None and shown.ended
        what = "Nothing was counted." if ended else "Nothing has been counted yet."
        return [Text(""), Text(f"  {what}")]
    if place.view is View.OVERVIEW and place.thread is None:
        return overview(state, shown, paper)
    about = subject(state, paper)
    below = replace(paper, height=paper.height - len(about))
    if not is_of(place, shown):
        shown = replace(shown, functions=(), functions_total=0, blocks=(), blocks_total=0, listing=())
    match place.view:
        case View.OVERVIEW:
            return about + overview(state, shown, below)
        case View.THREADS:
            return about + lists.threads(state, shown, below)
        case View.TYPES:
            return about + unnamed(shown) + lists.types(state, shown, below)
        case View.SIMD:
            return about + unnamed(shown) + lists.simd(state, shown, below)
        case View.FUNCTIONS:
            return about + lists.functions(state, shown, below)
        case View.BLOCKS:
            return about + lists.blocks(state, shown, below)
    return about + lists.code(state, shown, below)


def subject(state: State, paper: Paper) -> list[Text]:
    """What the view is limited to, if it is."""
    place = state.place
    parts = []
    if place.thread is not None:
        parts.append(f"thread {place.thread_label}")
    if place.view is View.CODE and place.block is not None:
        parts.append(place.block_label)
    elif place.function is not None:
        parts.append(place.function_label)
    if not parts:
        return []
    room = (paper.width - 4) // len(parts) - 3
    return [Text("  " + " > ".join(paper.cut(part, room) for part in parts), "bold")]


def unnamed(shown: Picture) -> list[Text]:
    """Says so when types are not known of all instructions yet."""
    if shown.unnamed * 100 <= shown.selected.total:
        return []
    percent = 100 * shown.unnamed / shown.selected.total
    return [Text(f"  {percent:.0f} % of the instructions are yet to be looked into: of new blocks", "dim")]


def known_part(shown: Picture) -> str:
    """Of how many instructions types are known, if not of all."""
    if shown.unnamed * 100 <= shown.selected.total:
        return ""
    return f" of {100 - 100 * shown.unnamed / shown.selected.total:.0f} % so far"


def overview(state: State, shown: Picture, paper: Paper) -> list[Text]:
    """Threads, types beside SIMD, functions."""
    gap = 1 if paper.height >= TALL - 8 else 0
    middle = min(12, max(4, paper.height // 3))
    rest = paper.height - middle - 1 - 2 * gap
    for_threads = min(len(shown.threads) + 1, rest // 2)
    for_functions = rest - for_threads
    out = lists.threads(state, shown, replace(paper, height=for_threads))
    out += [Text("")] * gap
    half = replace(paper, width=paper.width // 2)
    left = [
        Text("  instruction types" + known_part(shown), "dim"),
        *lists.types(state, shown, half, most=middle),
    ]
    right = [Text("  SIMD by set and width", "dim"), *lists.simd(state, shown, half, most=middle)]
    for at in range(middle + 1):
        line = left[at].copy() if at < len(left) else Text("")
        line.append(" " * (half.width - len(line)))
        out.append(line.append(right[at]) if at < len(right) else line)
    out += [Text("")] * gap
    return out + lists.functions(state, shown, replace(paper, height=for_functions), select=False)


def output_lines(state: State, paper: Paper, output: Sequence[str]) -> list[Text]:
    """The end of what the program has written, or further up."""
    head = Text("  what the program has written (it is repeated when you leave)", "bold")
    if not output:
        return [head, Text("  nothing so far", "dim")]
    room = paper.height - 1
    end = max(min(room, len(output)), len(output) - state.place.cursor)
    return [
        head,
        *(Text("  " + paper.cut(line, paper.width - 2)) for line in output[max(0, end - room) : end]),
    ]


def foot(state: State, shown: Picture | None, paper: Paper) -> Text:
    """The last line: a message, or the keys that matter most here."""
    if state.message:
        return Text(paper.cut(" " + state.message, paper.width), "bold")
    if shown is not None and shown.ended and state.place.view is not View.HELP:
        return Text(" The program has ended.  q  leave for the report   ?  help", "bold")
    keys = [("q", "detach" if Command.DETACH in state.can else "quit"), ("?", "help")]
    match state.place.view:
        case View.OVERVIEW | View.THREADS | View.FUNCTIONS:
            keys += [("Enter", "open"), ("s", "sort")]
        case View.BLOCKS:
            keys += [("Enter", "open"), ("s", "sort"), ("Esc", "back")]
        case View.CODE | View.OUTPUT:
            keys += [("Esc", "back")]
        case View.HELP:
            return Text(" any key: back", "bold")
    keys += [("f", "thread"), ("r", "totals" if state.rates else "rates"), ("p", "pause")]
    if state.output:
        keys.append(("o", "output"))
    for command, key, what in ((Command.RESET, "z", "zero"), (Command.SAVE, "w", "save")):
        if command in state.can:
            keys.append((key, what))
    line = Text(" ")
    for key, what in keys:
        if len(line) + len(key) + len(what) + 3 > paper.width:
            break
        line.append(key, "bold").append(f" {what}  ", "default")
    return line
