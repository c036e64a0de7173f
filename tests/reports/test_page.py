"""The report in a real browser: made of runs whose numbers are known, looked at and clicked through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import model_builders as mb
import pytest
from browser import Opened, launched

from livepro.analyses.document import to_document
from livepro.model import RunResult
from livepro.model.timeline import Timeline, TimelinePhase, TimelineThread
from livepro.reports.page import page

HOSTILE = "</script><script>hacked=1</script>"
IMAGE = '"><img src=x onerror=hacked=1>\x1b[2J\u202egnp.exe'

NOP = mb.instruction("NOP", code=b"\x90", category="NOP", itypes=("nop",))
ADD = mb.instruction("ADD", code=b"\x01\xd8")
ADDPS = mb.instruction(
    "ADDPS", code=b"\x0f\x58\xc1", category="SSE", itypes=("sse",), simd=mb.simd("ADDPS").simd
)  # fmt: skip
RET = mb.instruction("RET", code=b"\xc3", category="RET", itypes=("control",))


def sample() -> RunResult:
    """Two threads: main 10 * (2 + 1) + 5, the other 100 * 2 + 1 (left early) instructions."""
    table = mb.table(
        (0x1000, [ADD, NOP], "loop", "/bin/prog"),
        (0x1003, [RET], "loop", "/bin/prog"),
        (0x2000, [ADDPS, RET], HOSTILE, "/lib/<b>evil</b>.so"),
    )
    first = mb.thread([10, 10, 2], partial=[(2, 1, 1)], tid=100, name="main", intervals=[
        mb.interval({0: 20}), mb.interval({1: 10, 2: 5}),
    ])  # fmt: skip
    second = mb.thread([100, 0, 0], partial=[(0, 1, 1)], tid=101, name=IMAGE)
    line = Timeline(
        (0.5, 1.0), (100, 236), (1, 3),
        (TimelineThread(100, 100, "early name", "prog", 0, (20, 35), (1, 3)),
         TimelineThread(100, 101, IMAGE, "prog", 1, (201,), (0,))),
        (TimelinePhase(0.5, 0), TimelinePhase(0.5, 1)), 0,
    )  # fmt: skip
    return mb.run(mb.process(table, first, second), command=("prog", HOSTILE), timeline=line)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


Show = Callable[..., Opened]


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Show]:
    """Opens the page of some documents."""
    opened: list[Opened] = []

    def make(*documents: dict[str, Any], width: int = 1400, theme: str = "light") -> Opened:
        path = tmp_path / "report.html"
        path.write_text(page(list(documents), [f"run{n}.json" for n in range(len(documents))]))
        opened.append(Opened(browser, path, width, theme))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    def lines(module: str, addresses: Any) -> list[tuple[str, int] | None]:
        return [(__file__, 1) if module == "/bin/prog" else None for _ in addresses]

    return to_document(sample(), with_code=True, lines=lines)


def test_it_has_a_section_for_everything_that_the_run_has(show: Show, document: dict[str, Any]) -> None:
    opened = show(document)
    titles = opened.page.locator("section h2").all_text_contents()
    assert titles == [
        "At a glance",
        "Threads and processes",
        "Over time",
        "Instruction mix",
        "Functions, blocks, instructions",
        "Modules and functions",
    ]
    assert opened.page.locator("nav a").all_text_contents() == titles
    assert opened.page.locator(".tiles dd").first.text_content() == "236236"  # in full, and scaled
    assert opened.page.locator("canvas").count() >= 3


def test_names_are_text_whatever_they_are(show: Show, document: dict[str, Any]) -> None:
    opened = show(document)
    assert opened.page.evaluate("typeof hacked") == "undefined"
    assert HOSTILE in opened.column("functions", 1)
    assert opened.page.title() == f"livepro: prog {HOSTILE}"
    shown = IMAGE.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd")
    assert opened.column("threads", 1) == [shown, "main"]
    opened.page.hover("#time canvas")
    opened.page.hover("#icicle canvas")
    opened.page.locator("#mix canvas").hover(position={"x": 200, "y": 90})
    assert opened.page.evaluate("typeof hacked") == "undefined"
    assert opened.page.locator("img").count() == 0


def test_tables_are_sorted_and_filtered(show: Show, document: dict[str, Any]) -> None:
    opened = show(document)
    assert opened.column("functions", 2) == ["231", "5"]
    heading = opened.page.get_by_role("columnheader", name="instructions").nth(1).get_by_role("button")
    heading.click()
    assert opened.column("functions", 2) == ["5", "231"]
    assert opened.page.locator('#functions th[aria-sort="ascending"]').count() == 1
    opened.page.get_by_label("Filter functions").fill("SCRIPT hacked")
    assert opened.column("functions", 1) == [HOSTILE]
    assert opened.page.locator("#functions [role=status]").text_content() == "1 of 2"
    opened.page.get_by_label("Filter functions").fill("nothing like it")
    assert opened.page.locator("#functions .empty").text_content() == "Nothing to show"


def test_from_a_function_to_its_instructions(show: Show, document: dict[str, Any]) -> None:
    opened = show(document)
    opened.row("functions", "loop").click()
    assert opened.column("blocks of loop", 1) == ["1", "2"]
    assert opened.column("blocks of loop", 5) == ["221", "10"]
    label = "Instructions of loop"
    assert opened.column(label, 3) == [f"test_page.py:1  {SOURCE_LINE}", "add eax, ebx", "nop", "ret"]
    assert opened.column(label, 2) == ["", "111", "110", "10"]
    opened.row("blocks of loop", "0x1003").click()
    assert opened.column("Block 2 at 0x1003", 3)[-1] == "ret"
    opened.page.get_by_role("button", name="Whole function").click()
    assert len(opened.column(label, 3)) == 4


def test_inlined_functions_are_told(show: Show) -> None:
    """As `addr2line -i` has them; blocks that nothing was inlined into, or of the other module, have none."""

    def frames(module: str, addresses: Any) -> list[list[tuple[str, str, int]]]:
        chain = [("square", "/src/a.h", 7), ("sum", "/src/a.c", 20), ("loop", "/src/a.c", 33)]
        known = {0x1000: chain, 0x1003: [("loop", "/src/a.c", 34)]}
        return [known.get(int(at), []) if module == "/bin/prog" else [] for at in addresses]

    opened = show(to_document(sample(), with_code=True, frames=frames))
    opened.row("functions", "loop").click()
    assert opened.column("blocks of loop", 7) == ["square", ""]
    opened.row("blocks of loop", "0x1000").click()
    opened.page.wait_for_selector("#detail .note")
    told = "Inlined: square a.h:7, in sum a.c:20, in loop a.c:33"
    assert opened.page.locator("#detail .note").text_content() == told
    opened.row("blocks of loop", "0x1003").click()
    assert opened.page.locator("#detail .note").count() == 0
    assert "inlined" not in opened.page.locator("section h2").all_text_contents()


SOURCE_LINE = Path(__file__).read_text().splitlines()[0]


def test_counts_of_one_thread(show: Show, document: dict[str, Any]) -> None:
    opened = show(document)
    opened.row("threads", "main").click()
    opened.page.wait_for_function("document.querySelector('#functions select').value === '0'")
    opened.page.wait_for_function("document.querySelectorAll('#functions tbody tr[data-n]').length === 2")
    assert opened.column("functions", 2) == ["30", "5"]
    opened.row("functions", HOSTILE).click()
    assert opened.column(f"Instructions of {HOSTILE}", 2) == ["3", "2"]
    opened.page.get_by_role("button", name="All blocks").click()
    assert opened.column("blocks", 7) == ["20", "10", "5"]


def test_the_keyboard_is_enough(show: Show, document: dict[str, Any]) -> None:
    opened = show(document)
    opened.page.get_by_label("Filter functions").focus()
    for _ in range(7):  # six headings, then the rows
        opened.page.keyboard.press("Tab")
    opened.page.keyboard.press("ArrowDown")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector("#detail table")
    assert opened.page.locator('#functions tr[aria-selected="true"] td').first.text_content() == HOSTILE
    assert opened.page.evaluate("document.activeElement.dataset.n") == "1"


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (390, "dark")])
def test_everybody_can_read_it(show: Show, document: dict[str, Any], width: int, theme: str) -> None:
    """No rule of axe-core's is broken: names, roles, contrast; and nothing is wider than the screen."""
    from axe_playwright_python.sync_playwright import Axe

    opened = show(document, document, width=width, theme=theme)
    opened.row("functions", "loop").click()
    opened.page.wait_for_selector("#detail table")
    assert opened.page.evaluate("document.documentElement.scrollWidth") == width
    found = Axe().run(opened.page).response["violations"]
    assert [(v["id"], [node["html"] for node in v["nodes"]][:3]) for v in found] == []


def test_the_theme_can_be_chosen(show: Show, document: dict[str, Any]) -> None:
    opened = show(document, theme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = opened.page.evaluate(colour)
    opened.page.get_by_role("button", name="Light").click()
    assert opened.page.evaluate(colour) != dark


def test_two_runs_are_compared(show: Show, document: dict[str, Any]) -> None:
    again = to_document(sample())
    again["processes"][0]["functions"][0]["instructions"] += 100
    opened = show(document, again)
    assert opened.column("changes", 1)[0] == "loop (prog)"
    assert opened.column("changes", 4) == ["+100", "0"]
    assert opened.column("changes", 5)[0] == "+43.29 %"
    assert "written without blocks" in str(opened.page.locator("#detail").text_content())
    opened.page.get_by_role("button", name="A: run0.json").click()
    opened.row("functions", "loop").click()
    assert opened.column("blocks of loop", 1) == ["1", "2"]


def test_a_hundred_thousand_blocks_and_a_thousand_threads_are_quick(show: Show) -> None:
    many = 100_000
    table = mb.table(*((16 * n, [NOP], f"f{n % 5000}", "/bin/prog") for n in range(many)))
    main = mb.process(table, mb.thread(range(many, 0, -1), tid=1, name="main"))
    small = mb.table((0, [NOP], "f", "/bin/many"))
    threads = mb.process(small, *(mb.thread([n], tid=n, name=f"t{n}") for n in range(2, 1001)), pid=2)
    opened = show(to_document(mb.run(main, threads), with_code=True))
    assert "1,000 rows" in str(opened.page.locator("#threads").text_content())
    opened.page.get_by_role("button", name="All blocks").click()
    opened.page.wait_for_selector('table[aria-label="blocks"]')
    drawn = opened.page.locator('table[aria-label="blocks"] tr[data-n]')
    assert drawn.count() < 60
    opened.page.evaluate("document.querySelector('#functions .scroll').scrollTop = 1e9")
    opened.page.wait_for_selector(f'tr[data-n="{many - 1}"]')
    assert drawn.count() < 60
    took = opened.page.evaluate(
        """() => { const began = performance.now(); const input = document.querySelector('#functions input');
        input.value = 'f4999'; input.dispatchEvent(new Event('input')); return performance.now() - began; }"""
    )
    assert "20 of 100,000" in str(opened.page.locator("#functions").text_content())
    assert took < 5000  # milliseconds; half a second on an idle machine


def test_analyses_that_it_does_not_know_are_shown_all_the_same(show: Show, document: dict[str, Any]) -> None:
    processes = [{**p, "caches": {"L1": [{"name": "L1D", "misses": 5}]}} for p in document["processes"]]
    opened = show({**document, "processes": processes, "mica": {"ilp": 2.5, "footprint": [1, 2, 3, 4]}})
    text = " ".join(opened.page.locator("main").all_text_contents())
    assert "MICA" in opened.page.locator("nav a").all_text_contents()
    assert "Caches" in opened.page.locator("nav a").all_text_contents()
    assert "L1D" in text
    assert "ilp2.5" in text


def test_a_page_stays_small_and_says_what_it_left_out(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("livepro.reports.page.ROOM", 12_000)
    table = mb.table(*((16 * n, [NOP, ADD], f"f{n}", "/bin/prog") for n in range(3000)))
    opened = show(to_document(mb.run(mb.process(table, mb.thread(range(3000, 0, -1)))), with_code=True))
    note = str(opened.page.locator("#detail .note").text_content())
    assert note.startswith("To keep this page small, ")
    opened.page.get_by_role("button", name="All blocks").click()
    assert opened.column("blocks", 7)[0] == "6,000"
