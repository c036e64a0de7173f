"""What /proc/cpuinfo says of the processor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

SIMD_FLAG = re.compile(
    # x86 flags (arch/x86/include/asm/cpufeatures.h) and AArch64 features (arch/arm64/kernel/cpuinfo.c)
    r"mmx(ext)?|sse.*|pni|ssse3|avx.*|fma4?|f16c|v?aes|v?pclmulqdq|sha_ni|sha512|sm[34](_ni)?|gfni|amx.*|xop|3dnow(ext)?"
    r"|asimd.*|fp(hp)?|sve.*|sme(?!p$).*|pmull|sha[123]|bf16|i8mm|fcma|jscvt|frint"
)
NAMES = {"pni": "sse3"}
"""Flags whose name hides what they are."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """`model` as the kernel prints it (empty if it does not), `simd` the SIMD flags in the
    kernel's order, `hypervisor` whether a virtual machine says so."""

    model: str
    simd: tuple[str, ...]
    hypervisor: bool


def cpu(path: Path = Path("/proc/cpuinfo")) -> Cpu:
    """Read the first processor of /proc/cpuinfo; empty where it cannot be read."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        text = ""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    simd = tuple(NAMES.get(flag, flag) for flag in flags if SIMD_FLAG.fullmatch(flag))
    return Cpu(fields.get("model name", ""), simd, "hypervisor" in flags)
