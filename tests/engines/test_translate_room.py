"""Where a module's own cache is full, what it executes next is translated elsewhere."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

import livepro
from livepro.engines.translate.threads import room


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only there modules have caches of their own")
@pytest.mark.parametrize("size", [1 << 15, 1 << 17])
def test_code_of_a_module_whose_cache_is_full_is_not_stepped(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(directory: str) -> livepro.Result:
        return livepro.run(["/bin/ls", "-d", "/"], cache=tmp_path / directory, aslr=False)

    roomy = counted("roomy")
    monkeypatch.setattr(room, "cache_size", lambda module, largest, *, filtered: size)
    narrow = [counted("narrow") for _ in range(2)]  # nothing kept, and what there was room for
    assert [each.instructions for each in narrow] == [roomy.instructions] * 2
    for each in narrow:
        assert each.stats["stops"] < 2 * roomy.stats["stops"]  # and not one for each instruction
