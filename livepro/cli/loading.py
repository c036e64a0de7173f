"""Loading NumPy for a command that needs it."""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import NumPy without the threads of its linear algebra library, which livepro does not use.

    OpenBLAS starts one for each processor as soon as it is loaded: more work than all the
    rest of NumPy. It reads the variable then only, and programs that livepro runs do not see it.
    """
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
