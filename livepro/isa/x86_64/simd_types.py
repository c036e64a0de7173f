"""What a SIMD instruction does, by the stem of its mnemonic.

A stem is the mnemonic without the leading V of its VEX, EVEX or XOP encoding,
and a rule covers it with whatever element suffix follows. The names are
Intel's (SDM vol. 2) and AMD's (APM vol. 4 and 5).
"""

from __future__ import annotations

import re
from functools import cache

from livepro.isa.x86_64.form import Form
from livepro.model import SimdType

T = SimdType


def _rules(*rows: tuple[str, SimdType, str]) -> tuple[tuple[re.Pattern[str], SimdType, str], ...]:
    return tuple((re.compile(pattern), kind, phrase) for pattern, kind, phrase in rows)


_FLOAT = r"(?:[PS][SDH])"  # ps, pd, ph, ss, sd, sh
_INT = r"(?:[BWDQ]|DQ|QDQ)"

_RULES = _rules(
    # State of the unit, not of its elements.
    (r"(LD|ST)MXCSR", T.STATE_MANAGEMENT, "move the control and status register"),
    (r"F?EMMS", T.STATE_MANAGEMENT, "leave MMX state"),
    (r"ZERO(ALL|UPPER)", T.STATE_MANAGEMENT, "clear vector registers"),
    (r"(FXSAVE|XSAVE[CS]?|XSAVEOPT)(64)?", T.STATE_MANAGEMENT, "save extended state"),
    (r"(FXRSTOR|XRSTORS?)(64)?", T.STATE_MANAGEMENT, "restore extended state"),
    (r"PREFETCH.*|(GATHER|SCATTER)PF[01].*", T.STATE_MANAGEMENT, "prefetch into a cache"),
    (r"[LMS]FENCE", T.STATE_MANAGEMENT, "order memory accesses"),
    (r"(LD|ST)TILECFG|TILERELEASE", T.STATE_MANAGEMENT, "configure tiles"),
    (r"LOADIWKEY", T.STATE_MANAGEMENT, "load the wrapping key"),
    # Elements to and from other places.
    (r"P?MOVMSK.*|PMOV[BWDQ]2M", T.EXTRACT, "gather sign bits"),
    (r"PEXTR[BWDQ]|EXTRACT[FI]?.*|EXTRQ", T.EXTRACT, "extract"),
    (r"PINSR[BWDQ]|INSERT[FI]?.*", T.INSERT, "insert"),
    (r"MOV(SL|SH|D)DUP", T.SHUFFLE, "duplicate"),
    (r"PMOV[SZ]X.*", T.CONVERSION, "widen"),
    (r"PMOVM2[BWDQ]", T.CONVERSION, "expand a mask"),
    (r"PMOV(US|S)?(QD|QW|QB|DW|DB|WB)", T.CONVERSION, "narrow"),
    (r"CVT.*|BCSTNE.*|PF2I[DW]|PI2F[DW]", T.CONVERSION, "convert"),
    (r"P?BROADCAST.*", T.SHUFFLE, "broadcast"),
    (r"P?COMPRESS.*", T.SHUFFLE, "compress"),
    (r"P?EXPAND.*", T.SHUFFLE, "expand"),
    (r"P?GATHER.*", T.LOAD, "gather"),
    (r"P?SCATTER.*", T.STORE, "scatter"),
    (r"TILEZERO", T.DATA_TRANSFER, "clear a tile"),
    (r"MOV.*|LDDQU|P?MASKMOV.*|KMOV[BWDQ]|TILE(LOAD|STORE)D(T1)?", T.DATA_TRANSFER, "move"),
    # Elements to elements.
    (rf"PACK(SS|US){_INT}{_INT}", T.PACK, "narrow two registers into one"),
    (r"P?UNPCK[LH].*|KUNPCK.*", T.UNPACK, "interleave"),
    (r"PSHUF[BDHL]?W?|P?SHUF([FI](32|64)X[24]|PS|PD|BITQMB)", T.SHUFFLE, "shuffle"),
    (r"PERM.*|PPERM", T.SHUFFLE, "permute"),
    (r"P?BLEND.*", T.SHUFFLE, "blend"),
    (r"PALIGNR|ALIGN[DQ]|PSWAPD", T.SHUFFLE, "align"),
    (r"PS(LL|RL|RA)V?[WDQ]|PS[LR]LDQ|KSHIFT[LR][BWDQ]", T.SHIFT, "shift"),
    (r"PSH[LR]DV?[WDQ]|PSH[LA][BWDQ]|PMULTISHIFTQB", T.SHIFT, "shift"),
    (r"PRO[LR]V?[DQ]|PROT[BWDQ]", T.SHIFT, "rotate"),
    (r"K?(OR)?TEST[BWDQ]|PTESTN?M[BWDQ]|PTEST|TESTP[SD]", T.COMPARISON, "test bits"),
    (rf"P?CMP.*|U?COMI{_FLOAT}|PCOMU?{_INT}|PFCMP(EQ|GE|GT)", T.COMPARISON, "compare"),
    (rf"FPCLASS{_FLOAT}", T.COMPARISON, "classify"),
    (r"PCONFLICT[DQ]|P2INTERSECT[DQ]", T.COMPARISON, "find equal elements"),
    (r"[PK]?AND(P[SD]|[BWDQ])?", T.LOGICAL, "bitwise and"),
    (r"[PK]?ANDN(P[SD]|[BWDQ])?", T.LOGICAL, "bitwise and with complement"),
    (r"[PK]?OR(P[SD]|[BWDQ])?", T.LOGICAL, "bitwise or"),
    (r"[PK]?XOR(P[SD]|[BWDQ])?", T.LOGICAL, "bitwise exclusive or"),
    (r"K(XNOR|NOT)[BWDQ]", T.LOGICAL, "bitwise complement"),
    (r"PTERNLOG[DQ]", T.LOGICAL, "bitwise function of three"),
    (r"PCMOV", T.LOGICAL, "bitwise select"),
    # Arithmetic.
    (rf"4?FN?M(ADD|SUB)(ADD|SUB)?(132|213|231)?{_FLOAT}", T.ARITHMETIC, "multiply and add"),
    (r"FC?M(ADD|UL)C[PS]H", T.ARITHMETIC, "complex multiply"),
    (r"P4?DPW.*|PDPB.*|DPBF16PS|DPP[SD]|TDP.*|TCMM.*", T.ARITHMETIC, "dot product"),
    (r"PMADD.*|PMAC?S.*|PMADCS.*", T.ARITHMETIC, "multiply and add"),
    (r"ADDSUBP[SD]|P?H(ADD|SUB).*|PFP?N?ACC", T.ARITHMETIC, "add or subtract neighbours"),
    (rf"(PF?|K)?ADD(U?S)?({_FLOAT}|{_INT})?", T.ARITHMETIC, "add"),
    (rf"(PF?)?SUBR?(U?S)?({_FLOAT}|{_INT})?", T.ARITHMETIC, "subtract"),
    (r"PCLMULQDQ", T.ARITHMETIC, "carry-less multiply"),
    (r"(PF?)?MUL.*", T.ARITHMETIC, "multiply"),
    (rf"DIV{_FLOAT}", T.ARITHMETIC, "divide"),
    (rf"SQRT{_FLOAT}", T.ARITHMETIC, "square root"),
    (rf"RSQRT(14|28)?{_FLOAT}|PFRSQ.*", T.ARITHMETIC, "reciprocal square root"),
    (rf"RCP(14|28)?{_FLOAT}|PFRCP.*", T.ARITHMETIC, "reciprocal"),
    (rf"(PF?)?MIN({_FLOAT}|[SU]?[BWDQ])?|PHMINPOSUW", T.ARITHMETIC, "minimum"),
    (rf"(PF?)?MAX({_FLOAT}|[SU]?[BWDQ])?", T.ARITHMETIC, "maximum"),
    (rf"RANGE{_FLOAT}", T.ARITHMETIC, "minimum or maximum"),
    (r"PAVG(B|W|USB)", T.ARITHMETIC, "average"),
    (r"PABS[BWDQ]|PSIGN[BWD]", T.ARITHMETIC, "absolute value or sign"),
    (r"M?PSADBW|DBPSADBW", T.ARITHMETIC, "sum of absolute differences"),
    (rf"(ROUND|RNDSCALE|REDUCE|FRCZ){_FLOAT}", T.ARITHMETIC, "round"),
    (rf"(GETEXP|GETMANT|SCALEF|FIXUPIMM|EXP2){_FLOAT}", T.ARITHMETIC, "exponent and mantissa"),
    (r"PPOPCNT[BWDQ]|PLZCNT[DQ]|POPCNT[BWDQ]", T.ARITHMETIC, "count bits"),
    (r"AES.*|ENCODEKEY.*", T.ARITHMETIC, "AES"),
    (r"SHA(1|256|512).*|SM3.*", T.ARITHMETIC, "secure hash"),
    (r"SM4.*", T.ARITHMETIC, "SM4"),
    (r"GF2P8.*", T.ARITHMETIC, "Galois field"),
    (r"CRC32", T.ARITHMETIC, "checksum"),
)


def stem(form: Form) -> str:
    """The mnemonic without the V that VEX, EVEX and XOP encodings put before it."""
    return form.mnemonic if form.encoding == "LEGACY" else form.mnemonic.removeprefix("V")


@cache
def operation(form: Form) -> tuple[SimdType, str] | None:
    """Return the type of SIMD operation that `form` is and a verb phrase for it.

    Moves are DATA_TRANSFER here, whichever way they go. None if no rule knows
    the mnemonic.
    """
    name = stem(form)
    for pattern, kind, phrase in _RULES:
        if pattern.fullmatch(name):
            return kind, phrase
    return None
