"""Has kernels compiled by another process, while this one does without."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import livepro

_LOCK_LASTS = 600  # seconds after which who prepares is taken for dead


def prepare_meanwhile(place: Path) -> None:
    """Have that done by a process of its own, unless one is at it; it is nobody's child. What is
    compiled is kept at `place`."""
    lock = place / "preparing"
    try:
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            if time.time() - lock.stat().st_mtime > _LOCK_LASTS:
                lock.unlink()
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return
    command = f"{shlex.quote(sys.executable)} -m livepro doctor --prepare; rm -f {shlex.quote(str(lock))}"
    # A tracer waits for all its children: this one is to be init's. (Nothing is imported from where it is.)
    here = str(Path(livepro.__file__).parents[1])
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    subprocess.run(
        ["/bin/sh", "-c", f"(nice -n 19 /bin/sh -c {shlex.quote(command)}) </dev/null >/dev/null 2>&1 &"],
        start_new_session=True,
        cwd="/",
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
