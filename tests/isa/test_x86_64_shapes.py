"""Facts are worked out once per shape: they must not depend on registers or constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from iced_x86 import Decoder

from livepro.isa.x86_64 import describe as module


def test_accesses_depend_on_the_shape_alone() -> None:
    """Over the code of NumPy's largest library: many registers, scales and displacements."""
    libraries = (Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*.so*")
    data = next(libraries).read_bytes()
    seen = set()
    for instruction in Decoder(64, data[4 << 20 : 6 << 20]):
        if not instruction.is_invalid:
            code = data[(4 << 20) + instruction.ip : (4 << 20) + instruction.ip + instruction.len]
            seen.add(code)
    assert len(seen) > 20_000
    for code in seen:
        fact = module.describe(code)
        assert (fact.reads_memory, fact.writes_memory) == module._accesses(Decoder(64, code).decode())
        assert fact.code == code
