"""What all tests share."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from fixtures import Builder

pytest.register_assert_rewrite(
    *(f"engines.{name}" for name in ("contract", "control_contract", "region_contract", "observed")),
    "attach.attach_contract",
)


def pytest_configure() -> None:
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that take longest come first (`long(seconds=...)`), so that workers end together."""

    def seconds(item: pytest.Item) -> float:
        marker = item.get_closest_marker("long")
        return marker.kwargs.get("seconds", 0.0) if marker else 0.0

    items.sort(key=seconds, reverse=True)


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
