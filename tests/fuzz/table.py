"""Which instructions can be generated: iced's table, less what a test cannot run.

Straight-line instructions are not written down one by one: every encoding that
iced knows, that this CPU has, and whose effect depends on nothing but its
operands is a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from iced_x86 import (
    Code,
    CpuidFeature,
    EncodingKind,
    FlowControl,
    Instruction,
    MemorySizeExt,
    Mnemonic,
    OpCodeInfo,
    OpCodeOperandKind,
)

from .code import words

_ALWAYS = words(
    "INTEL8086 INTEL186 INTEL286 INTEL386 INTEL486 X64 FPU FPU287 FPU387 CMOV CX8 MMX SSE SSE2 "
    "MULTIBYTENOP PAUSE FXSR CET_IBT"
)
"""What every x86-64 CPU has (CET_IBT: endbr64 is a nop on those without)."""

_FLAG_NAMES = {
    "SSE3": "pni",
    "LZCNT": "abm",
    "CMPXCHG16B": "cx16",
    "CLFSH": "clflush",
    "PREFETCHW": "3dnowprefetch",
    "SHA": "sha_ni",
    "SYSCALL": "syscall",
    "AVX512_IFMA": "avx512ifma",
    "AVX512_VBMI": "avx512vbmi",
}
"""iced's names of CPUID features that differ from /proc/cpuinfo's by more than case."""

_EXCLUDED = frozenset(
    words(
        # Depend on time, place or chance.
        "RDTSC RDTSCP RDPMC RDPID RDRAND RDSEED CPUID XGETBV LSL LAR VERR VERW SMSW SLDT STR SGDT SIDT "
        # Change the code or stack segment, the gs base or a segment register.
        "WRFSBASE WRGSBASE RDGSBASE LFS LGS LSS LDS LES SWAPGS "
        # Enable what the kernel has not enabled, fault by design, or run in transactions.
        "XABORT XBEGIN XEND XTEST XSUSLDTRK XRESLDTRK UD0 UD1 UD2 INT1 INT3 INTO HLT SYSCALL SYSENTER GETSEC "
        "XSETBV MONITOR MWAIT MONITORX MWAITX UMONITOR UMWAIT TPAUSE CLTS INVD WBINVD "
        # Store the address of the last x87 instruction, or need an image that is valid: see the generator.
        "FNSTENV FSTENV FLDENV FNSAVE FSAVE FRSTOR FXSAVE FXSAVE64 FXRSTOR FXRSTOR64 "
        "XSAVE XSAVE64 XSAVEC XSAVEC64 XSAVEOPT XSAVEOPT64 XSAVES XSAVES64 "
        "XRSTOR XRSTOR64 XRSTORS XRSTORS64 LDMXCSR VLDMXCSR FLDCW "
        # Move the stack pointer: see the generator.
        "PUSH POP PUSHFQ POPFQ PUSHF POPF ENTER LEAVE "
        # An address in an operand register: see the generator.
        "MOVDIR64B ENQCMD ENQCMDS CLZERO "
        # Repeat: see the generator.
        "MOVSB MOVSW MOVSQ STOSB STOSW STOSD STOSQ LODSB LODSW LODSD LODSQ SCASB SCASW SCASD SCASQ "
        "CMPSB CMPSW CMPSQ INSB INSW INSD OUTSB OUTSW OUTSD IN OUT "
        # Takes away the right to the program's own memory.
        "WRPKRU "
        # AMD's own, whose immediates come in pairs.
        "EXTRQ INSERTQ "
        # Divide: see the generator.
        "DIV IDIV "
        # Need the kernel's permission.
        "LDTILECFG STTILECFG TILERELEASE"
    )
)

_CODES_EXCLUDED = frozenset(
    name
    for name in dir(Code)
    if re.match(r"(MOVSD_M32_M32|CMPSD_M32_M32|MOV_SREG|POP_|PUSH_|NOP_|.*_CR|MOV_.*(DR|CR|TR)_)", name)
    or name.startswith("RESERVEDNOP")
) - {"NOP_RM16", "NOP_RM32", "NOP_RM64", "NOPW", "NOPD", "NOPQ"}

_UNSUITABLE_KINDS = frozenset(
    getattr(OpCodeOperandKind, name)
    for name in dir(OpCodeOperandKind)
    if re.match(r"(.*MPX|BND|BR|FAR|CR_|DR_|TR_|TMM|SIBMEM|XBEGIN|XMMP3|ZMMP3|MEM_MIB|DX$)", name)
)


@dataclass(frozen=True)
class Form:
    """One encoding: its `code`, the kinds of its operands and what it allows."""

    code: int
    name: str
    mnemonic: str
    kinds: tuple[int, ...]
    encoding: int
    family: str
    memory_size: int
    info: OpCodeInfo


@cache
def cpu_flags() -> frozenset[str]:
    """This CPU's feature flags, as /proc/cpuinfo spells them."""
    found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return frozenset(found[1].split() if found else ())


def vector_bits() -> int:
    """The width of the widest vector register: 128, 256 or 512."""
    if {"avx512f", "avx512bw", "avx512vl"} <= cpu_flags():
        return 512
    return 256 if "avx" in cpu_flags() else 128


def _names(enum: object) -> dict[int, str]:
    return {
        value: name
        for name in dir(enum)
        if not name.startswith("_") and isinstance(value := getattr(enum, name), int)
    }


@cache
def forms() -> Mapping[str, tuple[Form, ...]]:
    """All candidate encodings by family: integer, x87, mmx, sse, avx, avx512."""
    features = _names(CpuidFeature)
    mnemonics = _names(Mnemonic)
    flags = cpu_flags()
    have = {
        value
        for value, name in features.items()
        if name in _ALWAYS or _FLAG_NAMES.get(name, name.lower()) in flags
    }
    out: dict[str, list[Form]] = {}
    for code, name in _names(Code).items():
        info = OpCodeInfo(code)
        if not info.is_instruction or not info.mode64 or name in _CODES_EXCLUDED:
            continue
        instruction = Instruction()
        instruction.code = code
        mnemonic = mnemonics[instruction.mnemonic]
        if (
            mnemonic in _EXCLUDED
            or instruction.flow_control != FlowControl.NEXT
            or info.is_privileged
            or info.must_be_cpl0
            or info.is_input_output
            or info.is_reserved_nop
            or info.fwait  # two instructions: wait, and its form without
            or not info.intel_decoder64
            or info.encoding in (EncodingKind.MVEX, EncodingKind.XOP, EncodingKind.D3NOW)
            or not all(feature in have for feature in instruction.cpuid_features())
        ):
            continue
        kinds = tuple(info.op_kinds())
        if any(kind in _UNSUITABLE_KINDS for kind in kinds):
            continue
        names = [features[feature] for feature in instruction.cpuid_features()]
        family = _family(info.encoding, names)
        out.setdefault(family, []).append(
            Form(
                code=code,
                name=name,
                mnemonic=mnemonic,
                kinds=kinds,
                encoding=info.encoding,
                family=family,
                memory_size=MemorySizeExt.size(info.memory_size),
                info=info,
            )
        )
    return {family: tuple(found) for family, found in out.items()}


def _family(encoding: int, features: list[str]) -> str:
    if encoding == EncodingKind.EVEX:
        return "avx512"
    if any(name.startswith("AVX512") for name in features):
        return "avx512"  # mask registers
    if encoding == EncodingKind.VEX:
        return "integer" if any(name.startswith("BMI") for name in features) else "avx"
    if any(name.startswith("FPU") for name in features):
        return "x87"
    if any(name.startswith(("SSE", "SSSE", "AES", "PCLMUL", "SHA", "GFNI")) for name in features):
        return "sse"
    return "mmx" if "MMX" in features else "integer"


def coverage(codes: Set[int]) -> dict[str, tuple[int, int]]:
    """Of each family, how many of its encodings are among `codes`, and how many there are. ``control`` are
    those outside of the table: branches, calls, strings with repetition."""
    found = {
        family: (sum(form.code in codes for form in members), len(members))
        for family, members in forms().items()
    }
    others = len(codes - {form.code for members in forms().values() for form in members})
    return {**found, "control": (others, others)}


if __name__ == "__main__":  # what there is, for a look
    for group, found in forms().items():
        print(group, len(found), sorted({form.mnemonic for form in found}))
