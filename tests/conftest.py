"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tools import todays

from fixtures import Builder

pytest.register_assert_rewrite(
    *(f"engines.{name}" for name in ("contract", "control_contract", "region_contract", "observed")),
    "attach.attach_contract",
)


SECOND_CHANCES = 8
"""Tests of a run that are made once more in CI when they fail beside others; more of them are no chance."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """What tests start finds a sane world.

    livepro is started hundreds of times: its modules are compiled once, whatever the
    environment says of it. Tests run in the background of a shell, or by nohup, are started with
    SIGINT or SIGHUP ignored, and so would be the programs that they start.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if os.environ.get("CI") and config.option.reruns is None:
        config.option.reruns, config.option.max_suite_reruns = 1, SECOND_CHANCES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        metavar="K/N",
        help="only the K-th of N parts of the tests (in CI: of those that take long the part of today)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """The tests that take longest come first (`long(seconds=...)`), so that workers end together; a part
    has some of the longest, some of the shortest."""
    leave_some(items)
    yield

    def seconds(item: pytest.Item) -> float:
        marker = item.get_closest_marker("long")
        return marker.kwargs.get("seconds", 0.0) if marker else 0.0

    items.sort(key=seconds, reverse=True)
    if config.option.part:
        number, parts = map(int, config.option.part.split("/"))
        others = set(items) - set(items[number - 1 :: parts])
    elif os.environ.get("CI"):
        number, parts = todays()
        long = [item for item in items if item.get_closest_marker("long")]
        others = set(long) - set(long[number::parts])
    else:
        return
    config.hook.pytest_deselected(items=list(others))
    items[:] = [item for item in items if item not in others]


def leave_some(items: Sequence[pytest.Item]) -> None:
    """Of the cases of a test with `some(n)` n are ordinary ones, evenly spread; the others take long. (Where
    n has no divisor in common with how many there are, all values of all parameters come up.)"""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("some") and not item.get_closest_marker("long"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("some")
        assert marker is not None
        (ordinary,) = marker.args
        for number, item in enumerate(group):
            if number * ordinary % len(group) >= ordinary:
                item.add_marker("long")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A worker that has nothing left takes tests over from another."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Builds fixture programs, each once a session."""
    return Builder(tmp_path_factory.mktemp("programs"))
