"""Operation names and categories as Intel XED gives them, derived from iced-x86's data.

Instruction-type specifications name XED's iclasses (JZ, CALL_NEAR, VADDPS) and
categories (BINARY, COND_BR, SSE). XED's instruction tables (`datafiles/*-isa*.txt`
of the XED sources) are the reference for both; what is written here are the
rules behind them, so that an instruction of a known family and encoding needs
no entry of its own.
"""

from __future__ import annotations

import re

from livepro.isa.x86_64.form import MASK, Form

_CONDITIONS = {"A": "NBE", "AE": "NB", "E": "Z", "G": "NLE", "GE": "NL", "NE": "NZ"}
"""XED names a condition by its first name in opcode order, iced by the comparison it tests."""

_RENAMED = {
    "SAL": "SHL",
    "WAIT": "FWAIT",
    "XLATB": "XLAT",
    "RETF": "RET_FAR",
    "RET": "RET_NEAR",
    "SYSRETQ": "SYSRET64",
    "SYSEXITQ": "SYSEXIT",
    "GETSECQ": "GETSEC",
    "RESERVEDNOP": "NOP",
    "NOPW": "NOP",
    "NOPD": "NOP",
    "NOPQ": "NOP",
}

_CONDITIONAL = re.compile(r"(J|CMOV|SET)(AE?|GE?|N?E)")


def opcode_name(form: Form) -> str:
    """XED's iclass of `form`, without the prefixes that recent XED versions write
    into it: `rep movsb` is MOVSB as `movsb` is, `lock add` is ADD."""
    name = form.mnemonic
    if match := _CONDITIONAL.fullmatch(name):
        return match[1] + _CONDITIONS[match[2]]
    if name in ("CALL", "JMP"):
        far = any(kind.startswith("FARBR") for kind in form.operands) or form.memory.startswith("SEG_PTR")
        return name + ("_FAR" if far else "_NEAR" if name == "CALL" else "")
    if name in ("MOVSD", "CMPSD") and not form.string:
        return name + "_XMM"
    if name == "MOV":
        return next((f"MOV_{kind[:2]}" for kind in form.operands if kind in ("CR_REG", "DR_REG")), name)
    if name == "PEXTRW" and "SSE4_1" in form.features:
        return "PEXTRW_SSE4"
    if name == "BEXTR" and form.encoding == "XOP":
        return "BEXTR_XOP"
    return _RENAMED.get(name, name)


def category(form: Form) -> str:
    """XED's category of `form`."""
    if form.string:
        return "IOSTRINGOP" if form.mnemonic.startswith(("INS", "OUTS")) else "STRINGOP"
    if form.features & _X87 or form.mnemonic == "WAIT":
        return "FCMOV" if form.mnemonic.startswith("FCMOV") else "X87_ALU"
    if form.features == {"MULTIBYTENOP"} or form.mnemonic == "NOP":
        return "WIDENOP" if form.operands and form.operands[0].endswith("_OR_MEM") else "NOP"
    if form.encoding == "LEGACY" and not form.classes:
        for pattern, name in _GENERAL:
            if pattern.fullmatch(form.mnemonic):
                return name
    if form.mnemonic == "VPCLMULQDQ" and "AVX" in form.features:
        return "AVX"
    for feature, name in _BY_FEATURE:
        if feature in form.features:
            return name
    return _vector_category(form) if _is_vector(form) else "SYSTEM" if form.privileged else "MISC"


_X87 = frozenset(("FPU", "FPU287", "FPU387"))

_CC = r"(N?[OBZSPL]|N?[BL]E|AE?|GE?|N?E)"


def _table(*rows: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), name) for pattern, name in rows)


# Families of general-purpose mnemonics.
_GENERAL = _table(
    (r"ADD|ADC|SUB|SBB|INC|DEC|NEG|CMP|I?MUL|I?DIV", "BINARY"),
    (r"AND|OR|XOR|NOT|TEST|XTEST", "LOGICAL"),
    (r"MOV|MOV[SZ]X|MOVSXD|MOVBE|MOVNTI|BSWAP|XCHG", "DATAXFER"),
    (rf"J({_CC}|[ER]?CXZ)|LOOP(N?E)?|XBEGIN|XEND", "COND_BR"),
    (r"JMP|XABORT", "UNCOND_BR"),
    (r"CALL", "CALL"),
    (r"I?RET[FDQ]?", "RET"),
    (r"PUSH(F?[DQ]?)", "PUSH"),
    (r"POP(F?[DQ]?)", "POP"),
    (r"S[AH][LR]|SH[LR]D", "SHIFT"),
    (r"R[OC][LR]", "ROTATE"),
    (r"BS[FR]|BT[CRS]?", "BITBYTE"),
    (rf"CMOV{_CC}", "CMOV"),
    (rf"SET{_CC}", "SETCC"),
    (r"CMPXCHG(8B|16B)?|XADD", "SEMAPHORE"),
    (r"CBW|CWDE|CDQE|CWD|CDQ|CQO", "CONVERT"),
    (r"(CL|ST)[CDI]|CMC|[LS]AHF", "FLAGOP"),
    (r"INT[13O]?", "INTERRUPT"),
    (r"IN|OUT", "IO"),
    (r"L[FGS]S", "SEGOP"),
    (r"SYSCALL|SYSENTER", "SYSCALL"),
    (r"SYSRETQ?|SYSEXITQ?|RSM", "SYSRET"),
    (r"PREFETCHWT1", "PREFETCHWT1"),
    (r"PREFETCH.*", "PREFETCH"),
    (r"CLFLUSH|CPUID|ENTER|LEAVE|LEA|INVPCID|[LMS]FENCE|MONITORX?|MWAITX?|PAUSE|UD[012]|XLATB", "MISC"),
    (
        r"ARPL|CLTS|GETSECQ?|HLT|INVD|INVLPG.?|LAR|[LS][GI]DT|[LS]LDT|[LS]MSW|LSL|LTR|STR|RDPMC|RDTSCP?|"
        r"SWAPGS|VERR|VERW|WB(NO)?INVD|(RD|WR)MSR|TLBSYNC|VM(RUN|MCALL|LOAD|SAVE|GEXIT)|STGI|CLGI|SKINIT|"
        r"PSMASH|PVALIDATE|RMP.*",
        "SYSTEM",
    ),
)

# Extensions whose instructions all share a category, the more telling feature first.
_BY_FEATURE = (
    ("WIDE_KL", "KEYLOCKER_WIDE"),
    ("AESKLE", "KEYLOCKER"),
    ("KL", "KEYLOCKER"),
    ("ADX", "ADOX_ADCX"),
    ("CET_IBT", "CET"),
    ("CET_SS", "CET"),
    ("FSGSBASE", "RDWRFSGS"),
    ("MOVDIRI", "MOVDIR"),
    ("MOVDIR64B", "MOVDIR"),
    ("SGX1", "SGX"),
    ("TSXLDTRK", "TSX_LDTRK"),
    ("VMX", "VTX"),
    ("XSAVES", "XSAVE"),
    ("XSAVEC", "XSAVE"),
    ("CMPCCXADD", "VEX"),
    ("RAO_INT", "LEGACY"),
    ("TDX", "LEGACY"),
    ("FXSR", "SSE"),
    ("POPCNT", "SSE"),
    ("D3NOW", "3DNOW"),
    ("D3NOWEXT", "3DNOW"),
    ("OSS", "SGX"),
    ("TSE", "PBNDKB"),
    ("LWP", "XOP"),
    ("PADLOCK_ACE", "VIA_PADLOCK"),
    ("PADLOCK_GMI", "VIA_PADLOCK"),
    ("PADLOCK_PHE", "VIA_PADLOCK"),
    ("PADLOCK_PMM", "VIA_PADLOCK"),
    ("PADLOCK_RNG", "VIA_PADLOCK"),
    ("PADLOCK_UNDOC", "VIA_PADLOCK"),
    ("VAES", "VAES"),
    ("FMA", "VFMA"),
    ("AVX512_4FMAPS", "AVX512_4FMAPS"),
    ("AVX512_4VNNIW", "AVX512_4VNNIW"),
    ("AVX512_IFMA", "IFMA"),
    ("SM3", "VEX"),
    ("SM4", "VEX"),
    ("AVX_VNNI", "VEX"),
    ("AVX_VNNI_INT8", "VEX"),
    ("AVX_VNNI_INT16", "VEX"),
    ("AMX_BF16", "AMX_TILE"),
    ("AMX_COMPLEX", "AMX_TILE"),
    ("AMX_FP16", "AMX_TILE"),
    ("AMX_INT8", "AMX_TILE"),
    *(
        (name, name)
        for name in (
            *("AES", "AMX_TILE", "AVX512_VP2INTERSECT", "AVX_IFMA", "BMI1", "BMI2", "CLDEMOTE"),
            *("CLFLUSHOPT", "CLWB", "CLZERO", "ENQCMD", "FMA4", "FRED", "GFNI", "HRESET", "LKGS", "LZCNT"),
            *("MCOMMIT", "MPX", "MSRLIST", "PCLMULQDQ", "PCONFIG", "PKU", "PTWRITE", "RDPID", "RDPRU"),
            *("RDRAND", "RDSEED", "SERIALIZE", "SHA", "SHA512", "SMAP", "TBM", "UINTR", "VPCLMULQDQ"),
            *("WAITPKG", "WRMSRNS", "XOP", "XSAVE", "XSAVEOPT"),
        )
    ),
)

# Families of vector mnemonics that have a category of their own, whatever the extension.
_VECTOR = _table(
    (r"V?CVT.*", "CONVERT"),
    (r"V?P(AND|ANDN|OR|XOR)[DQ]?|V?PTEST|VPTESTN?M[BWDQ]|VPTERNLOG[DQ]", "LOGICAL"),
    (r"V?(AND|ANDN|OR|XOR)P[SD]|VTESTP[SD]", "LOGICAL_FP"),
    (r"MOV(?!NTDQA).*|VMOV.*|MASKMOV.*", "DATAXFER"),
    (r"VP?BROADCAST.*|VBCST.*", "BROADCAST"),
)

_EVEX = _table(
    (r"VP?BLENDM.*", "BLEND"),
    (r"VP?COMPRESS.*", "COMPRESS"),
    (r"VP?EXPAND.*", "EXPAND"),
    (r"VPCONFLICT[DQ]|VPLZCNT[DQ]", "CONFLICT"),
    (r"VPMOV.*", "DATAXFER"),
    (r"VP?SCATTER.*", "SCATTER"),
    (r"VP?GATHER.*", "GATHER"),
    (r"VFN?M(ADD|SUB)(ADD|SUB)?(132|213|231)[PS][SD]", "VFMA"),
)


def _is_vector(form: Form) -> bool:
    return form.encoding != "LEGACY" or bool(form.classes or form.features & _LEGACY_VECTOR)


_LEGACY_VECTOR = frozenset(("MMX", "SSE", "SSE2", "SSE3", "SSSE3", "SSE4_1", "SSE4_2", "SSE4A"))


def _vector_category(form: Form) -> str:
    if "SSE4A" in form.features:
        return "DATAXFER" if form.mnemonic.startswith("MOV") else "BITBYTE"
    for pattern, name in _VECTOR + (_EVEX if form.encoding == "EVEX" else ()):
        if pattern.fullmatch(form.mnemonic):
            return name
    if form.encoding == "LEGACY":
        return "MMX" if "MM" in form.classes or form.features == {"MMX"} else "SSE"
    if form.encoding == "VEX":
        if form.classes and form.classes <= {MASK}:
            return "KMASK"
        if form.has_gather:
            return "AVX2GATHER"
        if re.fullmatch(r"VPCMP[EI]STR[IM](64)?", form.mnemonic):
            return "STTNI"
        return "AVX2" if "AVX2" in form.features else "AVX"
    for feature, name in _AVX512:
        if feature in form.features:
            return name
    return "AVX512"


_AVX512 = (
    ("AVX512_FP16", "FP16"),
    ("AVX512_VBMI2", "VBMI2"),
    ("AVX512_VBMI", "AVX512_VBMI"),
    ("AVX512_BITALG", "AVX512_BITALG"),
)
