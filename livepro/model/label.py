"""What a block of a virtual machine's process is: who made its code, for which method."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Origin(StrEnum):
    """Where the code of a process that runs a virtual machine comes from."""

    C1 = "C1"  # HotSpot's first compiler: tiers 1 to 3
    C2 = "C2"  # HotSpot's optimising compiler: tier 4
    INTERPRETER = "interpreter"
    STUB = "stub"  # what the VM generates for itself: intrinsics, adapters, calls into the runtime
    WRAPPER = "native wrapper"  # from Java to a native method
    VM = "VM"  # libjvm
    NATIVE = "native"  # everything else that is mapped from files: libc, JNI libraries
    GENERATED = "generated"  # made while it ran, by whom is not known


class CodeLabel(NamedTuple):
    """Who made a block's code. `tier` is the compilation tier (0: not compiled from Java),
    `name` the Java method (as ``java.lang.String.hashCode()I``) or what the VM calls its code."""

    origin: Origin
    tier: int = 0
    name: str = ""

    @property
    def maker(self) -> str:
        """Who made the code, with the tier where it could be one of several: ``C2``, ``C1 tier 3``."""
        return f"{self.origin} tier {self.tier}" if self.origin is Origin.C1 else str(self.origin)


_KERNELS = ("[vdso]", "[vsyscall]")
"""Modules that are no files, and not made while the program runs."""


def outside(module: str) -> CodeLabel:
    """The label of a module's code that is neither a virtual machine's nor labelled otherwise."""
    native = module.startswith("/") or module in _KERNELS
    return CodeLabel(Origin.NATIVE if native else Origin.GENERATED)


def generated(module: str) -> bool:
    """Whether the code of a module is made while the program runs: in anonymous memory, or in files that
    JIT compilers map twice, once to write and once to execute."""
    if module.startswith("/"):
        return module.startswith("/memfd:") or module.endswith(" (deleted)")
    return module not in _KERNELS
