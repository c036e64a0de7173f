"""What analyses of the event stream need, and not every installation has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from livepro.errors import LiveproError

_ALGEBRA = "scipy.linalg.cython_blas"


@contextmanager
def compiler() -> Iterator[None]:
    """Raises LiveproError, which names the extra, where what is imported meanwhile finds no numba."""
    try:
        _load()
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "numba":
            raise
        raise LiveproError(
            "Analyses of the event stream are compiled by numba, which is not installed.",
            "Install it: pip install 'livepro[events]'.",
        ) from None


def _load() -> None:
    """Import numba without SciPy's linear algebra, which one of its modules looks for, where that is
    installed. It takes a tenth of a second, and has threads that wait busily for what livepro never asks of
    them. Functions of a user's that call it find it all the same."""
    if _ALGEBRA in sys.modules:
        return
    sys.modules[_ALGEBRA] = None  # type: ignore[assignment]  # whoever imports it is told that there is none
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[_ALGEBRA]
