"""`livepro doctor --prepare`: what is compiled once is compiled now."""

from __future__ import annotations

import platform
import time

from livepro.engines.translate import backend_for
from livepro.errors import LiveproError


def prepare() -> int:
    """Compile what translates new code, and say what came of it on standard output; 0 if that is ready.
    Raises LiveproError without numba."""
    backend = backend_for(platform.machine())
    if backend.compiler is None:
        print("Nothing is compiled on this kind of machine: new code is translated in Python.")
        return 0
    print("Compiling what translates new code: half a minute or so ...", flush=True)
    began = time.monotonic()
    try:
        shapes = backend.compiler().prepare()
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("numba", "llvmlite"):
            raise
        raise LiveproError(
            "New code is translated in Python: numba, which compiles that, is not installed.",
            "Install it: pip install 'livepro[events]'.",
        ) from None
    known = f"; {shapes:,} shapes of instructions are known" if shapes else ""
    print(f"Ready after {time.monotonic() - began:.0f} s{known}.")
    return 0
