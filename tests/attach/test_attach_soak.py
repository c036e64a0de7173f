"""A short soak; `python -m tests.soak --times 200` is the long one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["python", "java", "shell", "waits", "server"])
def test_attached_to_again_and_again(name: str) -> None:
    where = Path(__file__).parents[1] / "soak" / "__main__.py"
    spec = importlib.util.spec_from_file_location("soak_main", where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.soak(name, 3, 0.1, "translate")
