"""What all tests share."""

from __future__ import annotations

import pytest

from fixtures import Builder

pytest.register_assert_rewrite("engines.contract", "engines.observed", "attach.attach_contract")


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Builds fixture programs, each once a session."""
    return Builder(tmp_path_factory.mktemp("programs"))
