"""What is imported for analyses, and what is not."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")

PROGRAM = """
import sys
from livepro.events.needed import compiler
with compiler():
    import numba
assert "scipy.linalg" not in sys.modules, "it takes a tenth of a second"
assert "scipy.linalg.cython_blas" not in sys.modules, "nobody could import it any more"
import numpy as np

@numba.njit
def product(matrix, vector):
    return np.dot(matrix, vector)

print(product(np.full((2, 2), 3.0), np.full(2, 4.0)).tolist())
"""


def test_linear_algebra_is_loaded_when_a_compiled_function_calls_it() -> None:
    pytest.importorskip("scipy", reason="scipy is not installed: pip install scipy")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[24.0, 24.0]\n", "")
