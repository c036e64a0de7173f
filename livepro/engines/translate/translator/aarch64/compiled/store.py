"""Where the compiled kernels for AArch64 are kept."""

from __future__ import annotations

from pathlib import Path

from livepro.engines.translate.translator.compiling.store import KernelStore

_HERE = Path(__file__).parent


def kernels() -> KernelStore:
    """The place."""
    makers = (_HERE.with_name(name) for name in ("facts.py", "encode.py", "relocation.py", "counter.py"))
    return KernelStore("aarch64", _HERE, *makers)
