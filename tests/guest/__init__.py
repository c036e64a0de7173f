"""An emulated AArch64 machine that runs commands of this checkout: `python -m tests.guest COMMAND`.

`image` builds the machine's root file system and `packages` its Python packages,
both kept in a cache directory; `machine` boots it for one command; `tools` does on
the host what the guest asks its `gcc` and `qemu-count` for. Needs the Debian packages
qemu-system-arm, qemu-user, mmdebstrap, cpio, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
"""
