"""The guest's root file system: Debian packages for arm64, unpacked into an initramfs."""

from __future__ import annotations

import compileall
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SUITE = "bookworm"
PACKAGES = (
    "python3-minimal",
    "python3.11",
    "libpython3.11-stdlib",
    "busybox",
    "coreutils",
    "bash",
    "dash",
    "libc-bin",
    "libstdc++6",  # NumPy
    "linux-image-arm64",  # the cloud kernel has no 9p
)
MODULES = (  # in the order in which they must be loaded
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "netfs",
    "fscache",
    "9pnet",
    "9pnet_virtio",
    "9p",
)
_UNUSED = (
    "boot",
    "lib/modules",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/zoneinfo",
    "usr/lib/klibc",
    "var/lib/apt",
    "var/lib/dpkg",
    "usr/lib/aarch64-linux-gnu/gconv",
)
_HERE = Path(__file__).parent
_WRAPPERS = {
    "pytest": '#!/bin/sh\nexec python3 -m pytest -p no:cacheprovider "$@"\n',
    "livepro": '#!/bin/sh\nexec python3 -m livepro "$@"\n',
    "python": '#!/bin/sh\nexec python3 "$@"\n',
}


@dataclass(frozen=True)
class Image:
    """What is booted: a kernel and an initramfs."""

    kernel: Path
    initramfs: Path


def cache() -> Path:
    """Where built things are kept: $LIVEPRO_GUEST_CACHE, or livepro-guest in the user's cache directory."""
    own = os.environ.get("LIVEPRO_GUEST_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "livepro-guest"


def keep(made: Path, kept: Path) -> None:
    """Move what has been built to its place, where another run may have put the same meanwhile."""
    try:
        made.rename(kept)
    except OSError:
        if not kept.exists():
            raise


def compile_python(directory: Path) -> None:
    """Compile Python files for the guest, which would take minutes to do it itself: if this Python
    is of the guest's version (bytecode is the same on all machines)."""
    if sys.version_info[:2] == (3, 11):
        mode = py_compile.PycInvalidationMode.TIMESTAMP
        compileall.compile_dir(directory, quiet=2, workers=0, invalidation_mode=mode)


def image() -> Image:
    """The image that this code describes: from the cache, or built (about a minute)."""
    parts = [Path(__file__), _HERE / "init.sh", _HERE / "tool.sh"]
    key = hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()[:16]
    kept = cache() / f"image-{key}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix="building.") as directory:
            made = Path(directory) / "image"
            made.mkdir()
            _build(Path(directory) / "root", made)
            keep(made, kept)
    return Image(kept / "kernel", kept / "initramfs")


def _build(root: Path, made: Path) -> None:
    print(f"Building the guest's file system from Debian packages in {made.parent} ...", flush=True)
    subprocess.run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=extract",  # nothing is run, so no emulator is needed on this side
            "--architectures=arm64",
            f"--include={','.join(PACKAGES)}",
            SUITE,
            str(root),
        ],
        check=True,
    )
    (kernel,) = (root / "boot").glob("vmlinuz-*")
    shutil.copyfile(kernel, made / "kernel")
    found = {path.stem: path for path in (root / "lib/modules").rglob("*.ko")}
    modules = root / "drivers"
    modules.mkdir()
    for name in MODULES:
        shutil.copyfile(found[name], modules / f"{name}.ko")
    for path in _UNUSED:
        shutil.rmtree(root / path, ignore_errors=True)
    for name, text in {
        "modules": "".join(f"/drivers/{name}.ko\n" for name in MODULES),
        "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        "etc/group": "root:x:0:\nnogroup:x:65534:\n",
        "etc/hosts": "127.0.0.1 localhost\n",
    }.items():
        (root / name).write_text(text)
    for path, text in {
        "init": (_HERE / "init.sh").read_text(),
        **{f"usr/local/bin/{name}": (_HERE / "tool.sh").read_text() for name in ("gcc", "qemu-count")},
        **{f"usr/local/bin/{name}": text for name, text in _WRAPPERS.items()},
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    for path, target in {"bin/sh": "dash", "usr/bin/awk": "mawk"}.items():
        if not (root / path).is_symlink():
            (root / path).symlink_to(target)
    compile_python(root / "usr/lib/python3.11")
    names = b"\0".join(str(path.relative_to(root)).encode() for path in sorted(root.rglob("*")))
    with (made / "initramfs").open("wb") as file:  # not compressed: to unpack it takes the guest seconds
        subprocess.run(
            ["cpio", "--quiet", "--null", "--create", "--format=newc", "--owner=0:0"],
            input=names,
            cwd=root,
            check=True,
            stdout=file,
        )
