"""Which extension introduced a vector or floating-point encoding.

Rows are taken from the tables of the Arm ARM (DDI 0487): C4.1 "Data Processing
-- Scalar Floating-Point and Advanced SIMD", "SVE encodings", "SME encodings".
Names are those of the kernel's hwcaps (Documentation/arch/arm64/elf_hwcaps.rst)
in upper case, with NEON for asimd. Only what differs from the plain NEON, FP,
SVE or SME of its space has a row.
"""

from __future__ import annotations

from typing import Final

from livepro.isa.aarch64.encoding import Row, first_match

NEWER_SVE: Final = "SVE2P1"
NEWER_SME: Final = "SME2"

_ASIMD: Final[tuple[Row, ...]] = (
    # "Cryptographic AES", "... three-register SHA", "... two-register SHA"
    (0xFF3E0C00, 0x4E280800, "AES"),
    (0xFF20CC00, 0x5E000000, "SHA1"),
    (0xFF20CC00, 0x5E004000, "SHA2"),
    (0xFF3FEC00, 0x5E280800, "SHA1"),  # SHA1H, SHA1SU1
    (0xFF3FFC00, 0x5E282800, "SHA2"),  # SHA256SU0
    (0xBFE0FC00, 0x0EE0E000, "PMULL"),  # PMULL .1Q
    # "Cryptographic four-register", "... three-register, imm2", "... SHA 512", "XAR"
    (0xFFC08000, 0xCE000000, "SHA3"),  # EOR3, BCAX
    (0xFFE08000, 0xCE400000, "SM3"),  # SM3SS1
    (0xFFE0C000, 0xCE408000, "SM3"),  # SM3TT1A ... SM3TT2B
    (0xFFE0FC00, 0xCE608C00, "SHA3"),  # RAX1
    (0xFFE0F000, 0xCE608000, "SHA512"),
    (0xFFE0F800, 0xCE60C000, "SM3"),  # SM3PARTW1, SM3PARTW2
    (0xFFE0FC00, 0xCE60C800, "SM4"),  # SM4EKEY
    (0xFFE00000, 0xCE800000, "SHA3"),  # XAR
    (0xFFFFFC00, 0xCEC08000, "SHA512"),  # SHA512SU0
    (0xFFFFFC00, 0xCEC08400, "SM4"),  # SM4E
    # "Advanced SIMD three-register extension" and its scalar twin
    (0x9FE0FC00, 0x0E809400, "DOTPROD"),
    (0xBFE0FC00, 0x0E809C00, "I8MM"),  # USDOT
    (0xDFE0F400, 0x4E80A400, "I8MM"),  # SMMLA, UMMLA, USMMLA
    (0xBF20F400, 0x2E008400, "RDM"),
    (0xFF20F400, 0x7E008400, "RDM"),
    (0xBFE0FC00, 0x2E40FC00, "BF16"),  # BFDOT
    (0xFFE0FC00, 0x6E40EC00, "BF16"),  # BFMMLA
    (0xBFE0FC00, 0x2EC0FC00, "BF16"),  # BFMLALB, BFMLALT
    (0xBF20E400, 0x2E00C400, "FCMA"),
    (0xBF20EC00, 0x2E00E400, "FCMA"),
    (0xBF20C400, 0x0E00C400, "FP8"),
    # "Advanced SIMD three same": FMLAL, FMLSL and their upper halves
    (0xBF60FC00, 0x0E20EC00, "FHM"),
    (0xBF60FC00, 0x2E20CC00, "FHM"),
    # Half precision: "three same (FP16)", "two-register miscellaneous (FP16)", pairwise, across lanes
    (0x9F60C400, 0x0E400400, "FP16"),
    (0xDF60C400, 0x5E400400, "FP16"),
    (0x9FFE0C00, 0x0EF80800, "FP16"),
    (0xDFFE0C00, 0x5EF80800, "FP16"),
    (0x9FFE0C00, 0x0E780800, "FP16"),
    (0xDFFE0C00, 0x5E780800, "FP16"),
    (0xFF7F0C00, 0x5E300800, "FP16"),
    (0xBF7FFC00, 0x0E30C800, "FP16"),
    (0xBF7FFC00, 0x0E30F800, "FP16"),
    # Half precision: FMOV (vector, immediate); SCVTF, UCVTF, FCVTZS, FCVTZU (fixed-point)
    (0xBFF8FC00, 0x0F00FC00, "FP16"),
    (0x9FF0FC00, 0x0F10E400, "FP16"),
    (0x9FF0FC00, 0x0F10FC00, "FP16"),
    (0xDFF0FC00, 0x5F10E400, "FP16"),
    (0xDFF0FC00, 0x5F10FC00, "FP16"),
    # "Advanced SIMD vector x indexed element" and its scalar twin
    (0x9FC0F400, 0x0F80E000, "DOTPROD"),
    (0xBF40F400, 0x0F00F000, "I8MM"),  # SUDOT, USDOT
    (0xBF40F400, 0x0F40F000, "BF16"),  # BFDOT, BFMLALB, BFMLALT
    (0xBFC0B400, 0x0F800000, "FHM"),
    (0xBFC0B400, 0x2F808000, "FHM"),
    (0xBF80F400, 0x0F000000, "FP8"),
    (0xBF00D400, 0x2F00D000, "RDM"),
    (0xFF00D400, 0x7F00D000, "RDM"),
    (0xBF009400, 0x2F001000, "FCMA"),
    (0x9FC0F400, 0x0F009000, "FP16"),
    (0xBFC0B400, 0x0F001000, "FP16"),
    (0xDFC0F400, 0x5F009000, "FP16"),
    (0xFFC0B400, 0x5F001000, "FP16"),
    # Single instructions of "two-register miscellaneous"
    (0x9FBFEC00, 0x0E21E800, "FRINT"),  # FRINT32Z, FRINT32X, FRINT64Z, FRINT64X
    (0xBFFFFC00, 0x0EA16800, "BF16"),  # BFCVTN
)

_SCALAR_FP: Final[tuple[Row, ...]] = (
    (0xFFFFFC00, 0x1E634000, "BF16"),  # BFCVT
    (0xFFFFFC00, 0x1E7E0000, "JSCVT"),  # FJCVTZS
    (0xFF3E7C00, 0x1E284000, "FRINT"),
    (0xFFFF7C00, 0x1EE24000, "FP"),  # FCVT from half precision is older than half-precision arithmetic
    (0x5EC00000, 0x1EC00000, "FP16"),
)

_SVE: Final[tuple[Row, ...]] = (
    # 0x04: predicated shifts by immediate that saturate or round; unpredicated multiplies; ternary logic
    (0xFF3EE000, 0x04068000, "SVE2"),  # SQSHL, UQSHL
    (0xFF3EE000, 0x040C8000, "SVE2"),  # SRSHR, URSHR
    (0xFF3FE000, 0x040F8000, "SVE2"),  # SQSHLU
    (0xFF20F000, 0x04206000, "SVE2"),  # MUL, PMUL, SMULH, UMULH
    (0xFF20F800, 0x04207000, "SVE2"),  # SQDMULH, SQRDMULH
    (0xFF20FC00, 0x04203400, "SVE2"),  # XAR
    (0xFF20F800, 0x04203800, "SVE2"),  # EOR3, BCAX, BSL, BSL1N, BSL2N, NBSL
    # 0x05: constructive EXT and SPLICE, two-register TBL, TBX; permutes of quadwords
    (0xFFE0E000, 0x05600000, "SVE2"),
    (0xFF20F800, 0x05202800, "SVE2"),
    (0xFF3FE000, 0x052D8000, "SVE2"),
    (0xFFE0E000, 0x05A00000, "SVEF64MM"),
    (0xFFFFE000, 0x052E8000, "SVE2P1"),  # REVD
    # 0x25: WHILE of decreasing counters and of pointer conflicts
    (0xFF20E400, 0x25200000, "SVE2"),
    (0xFF20FC00, 0x25203000, "SVE2"),
    (0xFF20C210, 0x25204000, "SVE2P1"),  # PSEL
    # 0x44, 0x45: integer multiply-add; all SVE2 but the first dot products and matrix multiplies
    (0xFFA0F800, 0x44800000, "SVE"),  # SDOT, UDOT
    (0xFFA0F800, 0x44A00000, "SVE"),  # SDOT, UDOT (indexed)
    (0xFFE0FC00, 0x44807800, "SVEI8MM"),  # USDOT
    (0xFFE0F800, 0x44A01800, "SVEI8MM"),  # USDOT, SUDOT (indexed)
    (0xFF20F800, 0x4400C000, "SVE2P1"),  # SCLAMP, UCLAMP
    (0xFF20FC00, 0x45009800, "SVEI8MM"),  # SMMLA, UMMLA, USMMLA
    (0xFFE0F800, 0x45006800, "SVEPMULL"),  # PMULLB, PMULLT of doublewords
    (0xFFFEF800, 0x4522E000, "SVEAES"),
    (0xFFFFF800, 0x4520E000, "SVEAES"),
    (0xFFFFFC00, 0x4523E000, "SVESM4"),
    (0xFFE0FC00, 0x4520F000, "SVESM4"),
    (0xFFE0FC00, 0x4520F400, "SVESHA3"),
    (0xFF20F000, 0x4500B000, "SVEBITPERM"),
    (0xFE000000, 0x44000000, "SVE2"),
    # 0x64, 0x65: floating point
    (0xFF38E000, 0x64108000, "SVE2"),  # FADDP and the other pairwise operations
    (0xFFFFE000, 0x648AA000, "SVEBF16"),  # BFCVTNT
    (0xFF3CE000, 0x6408A000, "SVE2"),  # FCVTNT, FCVTLT, FCVTXNT
    (0xFFE0D800, 0x64A08000, "SVE2"),  # FMLALB, FMLALT, FMLSLB, FMLSLT
    (0xFFE0D000, 0x64A04000, "SVE2"),  # the same, indexed
    (0xFFE0D800, 0x64E08000, "SVEBF16"),  # BFMLALB, BFMLALT
    (0xFFE0D000, 0x64E04000, "SVEBF16"),  # the same, indexed
    (0xFFE0FC00, 0x64608000, "SVEBF16"),  # BFDOT
    (0xFFE0FC00, 0x64604000, "SVEBF16"),  # BFDOT (indexed)
    (0xFFE0FC00, 0x6460E400, "SVEBF16"),  # BFMMLA
    (0xFFE0FC00, 0x64A0E400, "SVEF32MM"),  # FMMLA
    (0xFFE0FC00, 0x64E0E400, "SVEF64MM"),  # FMMLA
    (0xFFFFE000, 0x658AA000, "SVEBF16"),  # BFCVT
    (0xFFFFE000, 0x650AA000, "SVE2"),  # FCVTX
    (0xFFF9E000, 0x6518A000, "SVE2"),  # FLOGB
    # Memory: non-temporal gathers and scatters, LD1RO
    (0xFE60C000, 0x84008000, "SVE2"),
    (0xFE60A000, 0xC4008000, "SVE2"),
    (0xFE20E000, 0xE4002000, "SVE2"),
    (0xFE60E000, 0xA4200000, "SVEF64MM"),
    (0xFE70E000, 0xA4202000, "SVEF64MM"),
)

_SME: Final[tuple[Row, ...]] = (
    (0xFFE00008, 0x80C00000, "SMEF64F64"),  # FMOPA, FMOPS of doubles
    (0xFEC00008, 0xA0C00000, "SMEI16I64"),  # integer outer products of halfwords
    (0xFFFE0000, 0xC0D00000, "SMEI16I64"),  # ADDHA, ADDVA of doublewords
)


def extension_of(word: int) -> str | None:
    """The encoding family of `word`: FP (scalar floating point, its loads and stores),
    ASIMD, CRYPTO (the space of Advanced SIMD with 1100 in bits 31:28, AES and SHA), SVE,
    SME; None for an instruction of the base set.

    Loads and stores of a whole 128-bit register and of structures are ASIMD, those of
    smaller registers FP. Instructions that move floating-point or SME state to and from
    system registers belong to FP and SME.
    """
    op0 = word >> 25 & 15
    if op0 == 2:
        return "SVE"
    if op0 == 0:
        return "SME" if word >> 31 else None
    if op0 & 7 == 7:
        if word & 0x50000000 == 0x10000000:
            return "FP"
        return "CRYPTO" if first_match(_ASIMD, word) in _CRYPTO else "ASIMD"
    if op0 & 5 == 4 and word >> 26 & 1:
        return _memory_extension(word)
    return _SYSTEM.get(word & ~0x1F) or ("SME" if word & 0xFFFFF0FF == 0xD503407F else None)


_CRYPTO: Final = frozenset(("AES", "PMULL", "SHA1", "SHA2", "SHA3", "SHA512", "SM3", "SM4"))

_SYSTEM: Final = {
    **dict.fromkeys((0xD53B4400, 0xD51B4400, 0xD53B4420, 0xD51B4420), "FP"),  # MRS, MSR of FPCR, FPSR
    **dict.fromkeys((0xD53B4240, 0xD51B4240), "SME"),  # SVCR
}


def _memory_extension(word: int) -> str | None:
    """Family of a load or store with bit 26 (V) set."""
    kind, size = word >> 28 & 3, word >> 30
    if kind == 0:
        return "ASIMD"  # structures
    if kind == 1:
        if not word >> 24 & 1:
            return "ASIMD" if size == 2 else "FP"  # "Load register (literal)"
        if word >> 21 & 1 or word >> 10 & 3 != 2:
            return None  # "Memory Copy and Memory Set", whose bit 26 is no V
    if kind == 2:
        return "ASIMD" if size == 2 else "FP"  # pairs
    if kind == 3 and not word >> 24 & 1 and word >> 21 & 1 and word >> 10 & 3 == 0:
        return "FP"  # floating-point atomics (FEAT_LSFE)
    return "ASIMD" if size == 0 and word >> 23 & 1 else "FP"


def set_of(word: int, extension: str, known: bool) -> str:
    """The instruction set that introduced `word`, of the family `extension`.

    `known` says that capstone 5 names the word. It knows the whole of SVE, SVE2
    and SME; what it does not name there is newer: SVE2P1 or SME2 (or unallocated).
    """
    if extension in ("ASIMD", "CRYPTO"):
        return (first_match(_ASIMD, word) if word & 0x0E000000 == 0x0E000000 else None) or "NEON"
    if extension == "FP":
        return (first_match(_SCALAR_FP, word) if word & 0x0E000000 == 0x0E000000 else None) or "FP"
    if extension == "SVE":
        return first_match(_SVE, word) or "SVE" if known else NEWER_SVE
    return first_match(_SME, word) or "SME" if known or word >> 24 == 0xD5 else NEWER_SME
