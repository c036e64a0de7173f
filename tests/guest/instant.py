"""A pytest plugin that shows a failure when it happens, and what each test took.

What runs for many minutes and may be ended by its time limit says what it knows meanwhile.
"""

from __future__ import annotations

import os
import time

import pytest

BEGAN = time.monotonic()


def pytest_runtest_logstart(nodeid: str) -> None:
    """So that the last line names the test that did not end."""
    print(f"{time.monotonic() - BEGAN:5.0f} s  {nodeid.partition('/')[2]} ...", end="", flush=True)


def pytest_runtest_logfinish(nodeid: str) -> None:
    print(flush=True)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        print(f" {report.outcome} in {report.duration:.1f} s", end="", flush=True)
    if report.failed:
        print(f"{os.linesep}{report.longreprtext}", flush=True)
