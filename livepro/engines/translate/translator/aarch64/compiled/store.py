"""Where the compiled kernels for AArch64 are kept."""

from __future__ import annotations

from pathlib import Path

from livepro.engines.translate.translator.compiling.store import KernelStore


def kernels() -> KernelStore:
    """The place."""
    return KernelStore("aarch64", Path(__file__).parent)
