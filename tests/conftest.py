"""What all tests share."""

from __future__ import annotations

import os
import signal

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


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Builds fixture programs, each once a session."""
    return Builder(tmp_path_factory.mktemp("programs"))
