"""Boots the guest for one command."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .image import cache, compile_python, image
from .kernels import kernels
from .packages import packages
from .tools import Tools

CHECKOUT = Path(__file__).parents[2]
CPUS = {"cortex-a57": "cortex-a57", "max": "max,pauth-impdef=on"}
"""Processors to emulate. `max` has everything that QEMU has, LSE and SVE among it; its
pointer authentication codes must be those that are cheap to emulate."""


class GuestError(Exception):
    """The guest ended without the command's status."""


def _print(part: bytes) -> None:
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


def run(
    command: Sequence[str],
    *,
    cpu: str = "cortex-a57",
    timeout: float = 900.0,
    files: Path | None = None,
    write: Callable[[bytes], object] = _print,
    over: threading.Event | None = None,
) -> int:
    """Boot, run `command` in the checkout, and return its exit status.

    What it prints goes to `write` (default: standard output). `files` is a directory that the
    guest sees and may write to, under the same path and as $GUEST_SHARE (default: a new one,
    removed afterwards). Raises GuestError when there is no status after `timeout` seconds, or
    when `over` is set.
    """
    with tempfile.TemporaryDirectory(prefix="livepro-guest.") as directory:
        share = files or Path(directory)
        (share / "command").write_text(f"{shlex.join(command)}\n")
        (share / "tmp").mkdir(exist_ok=True)
        status = share / "status"
        status.unlink(missing_ok=True)
        with Tools(share / "tools"):
            _boot(share, cpu, timeout, write, over or threading.Event())
        if not status.exists():
            raise GuestError("The guest ended, or its time was up, before the command did.")
        return int(status.read_text())


def _boot(
    share: Path, cpu: str, timeout: float, write: Callable[[bytes], object], over: threading.Event
) -> None:
    booted = image()
    shutil.copy(kernels(CHECKOUT, cache()), share / "kernels")
    for part in ("livepro", "tests"):
        compile_python(CHECKOUT / part)
    folders = {"checkout": (CHECKOUT, True), "packages": (packages(), True), "share": (share, False)}
    shares = [
        f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap" + ",readonly=on" * readonly
        for tag, (path, readonly) in folders.items()
    ]
    words = f"console=ttyAMA0 quiet panic=-1 nokaslr kpti=off checkout={CHECKOUT} share={share}"
    qemu = subprocess.Popen(
        ["qemu-system-aarch64", "-M", "virt", "-cpu", CPUS[cpu], "-accel", "tcg"]
        # A second processor would make ptrace several times slower.
        + ["-smp", "1", "-m", "1024", "-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio"]
        + ["-kernel", str(booted.kernel), "-initrd", str(booted.initramfs), "-append", words]
        + [word for one in shares for word in ("-virtfs", one)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    ended = threading.Event()

    def watch() -> None:
        until = time.monotonic() + timeout
        while not ended.wait(0.5):
            if over.is_set() or time.monotonic() > until:
                qemu.kill()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        assert qemu.stdout is not None
        while part := qemu.stdout.read1(4096):  # type: ignore[attr-defined]
            write(part.replace(b"\r\n", b"\n"))
        qemu.wait()
    finally:
        ended.set()
        qemu.kill()
        qemu.wait()
