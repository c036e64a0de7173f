"""What analyses of the event stream need, and not every installation has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from livepro.errors import LiveproError


@contextmanager
def compiler() -> Iterator[None]:
    """Raises LiveproError, which names the extra, where what is imported meanwhile finds no numba."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "numba":
            raise
        raise LiveproError(
            "Analyses of the event stream are compiled by numba, which is not installed.",
            "Install it: pip install 'livepro[events]'.",
        ) from None
