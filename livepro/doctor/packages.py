"""What livepro's own tests need besides Python: programs and files, and the packages that bring them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple

from livepro.ui.console import open_console
from livepro.ui.findings import Finding, State, print_findings


class Tool(NamedTuple):
    """A `program`, or the path of a file, that some tests need: the Debian 12 `package`, and what for."""

    program: str
    package: str
    purpose: str

    @property
    def there(self) -> bool:
        """Whether this machine has it."""
        if self.program.startswith("/"):
            return os.path.exists(self.program)
        return shutil.which(self.program) is not None


TOOLS = tuple(
    Tool(*row)
    for row in (
        ("git", "git", "a program to measure"),
        ("perl", "perl", "a program to measure"),
        ("xz", "xz-utils", "a program to measure"),
        ("gzip", "gzip", "a program to measure"),
        ("ps", "procps", "a program to measure"),
        ("/usr/bin/python3", "python3", "a program to measure"),
        ("/usr/lib/python3.11/ensurepip", "python3-venv", "the environment"),
        ("gcc", "gcc", "fixtures"),
        ("/usr/include/stdio.h", "libc6-dev", "fixtures"),
        ("as", "binutils", "fixtures"),
        ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", "AArch64 fixtures"),
        ("aarch64-linux-gnu-as", "binutils-aarch64-linux-gnu", "AArch64 fixtures"),
        ("/usr/aarch64-linux-gnu/include/stdio.h", "libc6-dev-arm64-cross", "AArch64 fixtures"),
        ("qemu-aarch64", "qemu-user", "the referee of AArch64 fixtures"),
        ("qemu-system-aarch64", "qemu-system-arm", "the emulated AArch64 machine"),
        ("mmdebstrap", "mmdebstrap", "the emulated AArch64 machine"),
        ("cpio", "cpio", "the emulated AArch64 machine"),
        ("valgrind", "valgrind", "the referee of counts and of caches"),
        ("g++", "g++", "C++ programs"),
        ("rustfilt", "rustfilt", "the referee of Rust's names"),
        ("perf", "linux-perf", "profiles to take blocks from"),
        ("llvm-mca", "llvm", "predictions of blocks"),
        ("node", "nodejs", "a JIT compiler with perf maps"),
        ("zsh", "zsh", "completion"),
        ("fish", "fish", "completion"),
        ("man", "man-db", "manual pages"),
        ("chromium", "chromium", "reports in the browser"),
        ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core", "reports in the browser"),
        ("javac", "openjdk-17-jdk-headless", "Java virtual machines"),
        ("luajit", "luajit", "a language runtime"),
        ("php", "php8.2-cli", "a language runtime"),
        ("/etc/php/8.2/cli/conf.d/10-opcache.ini", "php8.2-opcache", "a language runtime"),
        ("ruby", "ruby", "a language runtime"),
        ("pypy3", "pypy3", "a language runtime"),
        ("go", "golang-go", "a language runtime"),
        ("sqlite3", "sqlite3", "a shell whose work is compared"),
        ("rg", "ripgrep", "threads written in Rust"),
        ("kcachegrind", "kcachegrind", "the reader of Cachegrind's files"),
        ("Xvfb", "xvfb", "a window for it"),
        ("xdotool", "xdotool", "a look at that window"),
        ("dbus-run-session", "dbus-daemon", "a session for it"),
        ("stress-ng", "stress-ng", "programs that do what few programs do"),
        ("npm", "npm", "speedscope, which opens exported profiles"),
    )
)
"""All that the whole suite needs on Debian 12."""


def missing(tools: Sequence[Tool] = TOOLS) -> int:
    """Print which packages are there, by what is looked for of each, and how to get the others; returns
    how many are missing."""
    console = open_console(sys.stdout)
    absent = [tool for tool in tools if not tool.there]
    findings = [
        Finding(tool.package, State.NOTE, f"missing: no {tool.program}, for {tool.purpose}")
        if tool in absent
        else Finding(tool.package, State.OK, tool.purpose)
        for tool in tools
    ]
    print_findings(console, "Packages for the tests", findings)
    if absent:
        console.print(f"\nTests that need what is missing are skipped; on Debian 12:\n{install(absent)}")
    else:
        console.print("\nNo test is skipped for want of a package.")
    return len(absent)


def install(tools: Sequence[Tool]) -> str:
    """The command that installs the packages of `tools`."""
    return "apt install --no-install-recommends " + " ".join(tool.package for tool in tools)
