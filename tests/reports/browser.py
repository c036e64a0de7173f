"""Debian's Chromium, driven by Playwright: pages are opened as somebody would who was sent them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    if not Path(CHROMIUM).exists():
        if "CI" in os.environ:
            pytest.fail(f"{CHROMIUM} is missing")
        pytest.skip("needs Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Opened:
    """A page in a browser window of its own, and what went wrong there: errors, messages, requests."""

    def __init__(self, browser: Any, path: Path, width: int = 1400, theme: str = "light") -> None:
        self.trouble: list[str] = []
        self._context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        self.page = self._context.new_page()
        self.page.on("console", lambda m: self.trouble.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.trouble.append(f"error: {e}"))
        self.page.on("request", lambda r: self._request(r.url, str(path)))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]")

    def _request(self, url: str, path: str) -> None:
        if not url.startswith(("data:", "blob:")) and url != Path(path).as_uri():
            self.trouble.append(f"request: {url}")

    def close(self) -> None:
        """Close the window; whatever went wrong fails the test."""
        self._context.close()
        assert self.trouble == []

    def column(self, table: str, number: int) -> list[str]:
        """The texts of a column (from 1) of the table with that label, as far as its rows are drawn."""
        self.page.wait_for_selector(f'table[aria-label="{table}"] tbody tr[data-n]')
        cells = self.page.locator(f'table[aria-label="{table}"] tbody tr[data-n] td:nth-child({number})')
        return [str(text) for text in cells.all_text_contents()]

    def row(self, table: str, text: str) -> Any:
        """The first row of a table with `text` in it."""
        return self.page.locator(f'table[aria-label="{table}"] tbody tr[data-n]', has_text=text).first
