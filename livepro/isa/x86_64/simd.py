"""SIMD facts of x86-64 instructions, from iced-x86's tables.

An instruction is SIMD when it has a vector, mask or tile operand, when a SIMD
extension introduced it (`prefetchnta`, `sfence`, `crc32`), or when it saves or
restores vector state (`fxsave`, `xsave`). x87 is not SIMD.

`set` is the extension that introduced the form. The 128- and 256-bit forms of
AVX-512 instructions belong to the subset of their 512-bit sibling: their CPUID
rule adds AVX512VL, which says only that the shorter forms exist, and their
width tells them apart. A VEX form of an older extension (AES, GFNI,
PCLMULQDQ) stays in that extension; `extension` names its encoding.
"""

from __future__ import annotations

import re
from functools import cache

from livepro.isa.x86_64.form import MASK, TILE, Form
from livepro.isa.x86_64.simd_types import operation, stem
from livepro.model import SimdFacts, SimdType

SETS = (
    *(
        "MMX",
        "3DNOW",
        "3DNOWEXT",
        "SSE1f",
        "SSE1i",
        "SSE2f",
        "SSE2i",
        "SSE3",
        "SSSE3",
        "SSE4.1",
        "SSE4.2",
        "SSE4a",
    ),
    *("FXSR", "XSAVE", "AES", "VAES", "PCLMULQDQ", "VPCLMULQDQ", "SHA", "SHA512", "SM3", "SM4", "GFNI", "KL"),
    *("AVX", "AVX2", "F16C", "FMA", "FMA4", "XOP"),
    *("AVX-VNNI", "AVX-VNNI-INT8", "AVX-VNNI-INT16", "AVX-IFMA", "AVX-NE-CONVERT"),
    *("AVX512F", "AVX512BW", "AVX512DQ", "AVX512CD", "AVX512ER", "AVX512PF", "AVX512VBMI", "AVX512VBMI2"),
    *("AVX512VNNI", "AVX512BF16", "AVX512FP16", "AVX512IFMA", "AVX512BITALG", "AVX512VPOPCNTDQ"),
    *("AVX512VP2INTERSECT", "AVX512_4FMAPS", "AVX512_4VNNIW"),
    *("AMX-TILE", "AMX-INT8", "AMX-BF16", "AMX-FP16", "AMX-COMPLEX"),
)
"""Every value of `SimdFacts.set` on x86-64, roughly in order of appearance."""

WIDTHS = (0, 8, 16, 32, 64, 128, 256, 512, 8192)
"""Every value of `SimdFacts.width`: 0 where state is managed, 8 to 64 for scalars,
masks and MMX, 8192 (16 rows of 64 bytes) for a tile."""

_WIDTH = {"MM": 64, "X": 128, "Y": 256, "Z": 512, TILE: 8192}

_INTRODUCED = frozenset(
    (
        *("MMX", "SSE", "SSE2", "SSE3", "SSSE3", "SSE4_1", "SSE4_2", "SSE4A", "D3NOW", "D3NOWEXT", "AES"),
        *("SHA", "GFNI", "PCLMULQDQ", "KL", "AESKLE", "WIDE_KL", "FXSR", "AVX", "AMX_TILE"),
    )
)

_XSAVE = frozenset(("XSAVE", "XSAVEC", "XSAVEOPT", "XSAVES"))

_SET_NAMES = {
    "SSE4_1": "SSE4.1",
    "SSE4_2": "SSE4.2",
    "SSE4A": "SSE4a",
    "D3NOW": "3DNOW",
    "D3NOWEXT": "3DNOWEXT",
    "AESKLE": "KL",
    **dict.fromkeys(_XSAVE, "XSAVE"),
}

_PREREQUISITES = ("AVX512VL", "WIDE_KL", "AVX512F", "AVX")
"""Features that a form may name beside the one that introduced it."""


def is_simd(form: Form) -> bool:
    """Whether `form` is a SIMD instruction."""
    if form.encoding == "D3NOW" or form.classes:
        return True
    if form.features & _XSAVE:
        return bool(form.operands)  # not xgetbv and xsetbv, which access a control register
    return bool(form.features & _INTRODUCED) and "FPU" not in form.features


def introduced_by(form: Form) -> str:
    """The CPUID feature, as iced names it, that introduced the SIMD instruction `form`."""
    features = set(form.features)
    for prerequisite in _PREREQUISITES:
        if len(features) > 1:
            features.discard(prerequisite)
    return min(features)


@cache
def simd_facts(form: Form, in_memory: bool, writes_memory: bool, masked: bool) -> SimdFacts | None:
    """SIMD facts of an encoding of `form`, None if it is no SIMD instruction.

    `in_memory` tells whether the encoding has a memory operand,
    `writes_memory` whether it writes there, `masked` whether it names a mask
    register other than k0.
    """
    if not is_simd(form):
        return None
    # A form newer than the rules has to be something; the tests tell when that happens.
    kind, phrase = operation(form) or (SimdType.ARITHMETIC, "operate")
    element = _element(form, kind)
    scalar = _is_scalar(form)
    masked = masked or "MASKMOV" in form.mnemonic or (form.encoding == "VEX" and form.has_gather)
    if in_memory:
        kind, phrase = _directed(form, kind, phrase, writes_memory)
    return SimdFacts(
        set=_set_name(form, kind, element),
        type=kind,
        width=_bits(element) if scalar else _width(form, element),
        scalar=scalar,
        element=element,
        masked=masked,
        extension=_extension(form),
        description=_describe(phrase, kind, element, scalar, form, masked),
    )


def _directed(form: Form, kind: SimdType, phrase: str, writes: bool) -> tuple[SimdType, str]:
    """Moves, and the shuffles that read or write memory as moves do, by direction."""
    if kind is SimdType.DATA_TRANSFER or phrase in ("broadcast", "compress", "expand"):
        verb = "" if kind is SimdType.DATA_TRANSFER else " and " + phrase
        return (SimdType.STORE, "store" + verb) if writes else (SimdType.LOAD, "load" + verb)
    return kind, phrase


def _set_name(form: Form, kind: SimdType, element: str) -> str:
    feature = introduced_by(form)
    if feature in ("SSE", "SSE2"):
        floating = kind is SimdType.CONVERSION or element.startswith("f") or form.mnemonic.endswith("MXCSR")
        return ("SSE1" if feature == "SSE" else "SSE2") + ("f" if floating else "i")
    if feature.startswith("AVX512_") and feature[7].isalpha():
        return "AVX512" + feature[7:]
    if feature.startswith(("AVX_", "AMX_")):
        return feature.replace("_", "-")
    return _SET_NAMES.get(feature, feature)


def _extension(form: Form) -> str:
    """The encoding family: AVX512EVEX and AVX512VEX as XED names them, else the
    feature of the oldest extension that has the encoding."""
    if form.encoding == "EVEX":
        return "AVX512EVEX"
    feature = introduced_by(form)
    if form.encoding == "VEX":
        if feature.startswith("AVX512"):
            return "AVX512VEX"
        if "AVX" in form.features:
            return "AVX"
    return _SET_NAMES.get(feature, feature.replace("_", "-"))


_WHOLE = re.compile(r"V?(MOVDQ[AU]|LDDQU|MOVNTDQA?)|MOVNTQ|(LD|ST)MXCSR|MOVQ2DQ|MOVDQ2Q")
"""Moves and such that do not see elements, though their memory operand has a type."""

_TYPES = {
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "FLOAT32": "f32",
    "FLOAT64": "f64",
    "FLOAT128": "i128",  # halves of a 256-bit register, whatever they hold
    "INT128": "i128",
    "UINT128": "i128",
    "UINT52": "u64",  # 52-bit products in 64-bit elements
    **{f"{sign}{bits}": f"{sign[0].lower()}{bits}" for sign in ("INT", "UINT") for bits in (8, 16, 32, 64)},
}

_SUFFIX_TYPES = {"PS": "f32", "SS": "f32", "PD": "f64", "SD": "f64", "PH": "f16", "SH": "f16"}


def _element(form: Form, kind: SimdType) -> str:
    """Element type: that of the operand that may be in memory, which iced knows for
    the register form too; of a conversion, what it reads. Where no operand may be
    in memory, the mnemonic's suffix tells."""
    if kind is SimdType.STATE_MANAGEMENT or _WHOLE.fullmatch(form.mnemonic):
        return ""
    if form.memory == "UNKNOWN":
        return _suffix_element(form, kind)
    if kind in (SimdType.LOGICAL, SimdType.COMPARISON) and form.memory.endswith(
        ("INT128", "INT256", "INT512")
    ):
        return ""  # pand, ptest
    if form.mnemonic in ("PAND", "PANDN", "POR", "PXOR"):
        return ""  # the MMX forms: 64 bits, but no number
    if "MASKMOV" in form.mnemonic and kind is SimdType.DATA_TRANSFER and form.memory in ("UINT64", "UINT128"):
        return "u8"
    name = form.memory.rpartition("_")[2]
    return _TYPES.get(name, "")


def _suffix_element(form: Form, kind: SimdType) -> str:
    name = form.mnemonic
    if TILE in form.classes:
        return _tile_element(name)
    if not name.startswith(("P", "VP")) and name[-2:] in _SUFFIX_TYPES:
        return _SUFFIX_TYPES[name[-2:]]
    if re.fullmatch(r"V?PS[LR]LDQ", name):
        return "i128"
    if name.startswith("VSHA512") or name in ("EXTRQ", "INSERTQ"):
        return "u64"
    size = {"B": "8", "W": "16", "D": "32", "Q": "64"}.get(_element_letter(name))
    if size is None:
        return ""
    return ("i" if "SRA" in name or "BROADCAST" in name else "u") + size


def _element_letter(name: str) -> str:
    if match := re.fullmatch(r"VPMOV([BWDQ])2M", name):
        return match[1]
    return name[-1] if re.fullmatch(r"(V?P|K).*[BWDQ]", name) else ""


def _tile_element(name: str) -> str:
    if name.startswith("TDPB"):
        return "bf16" if name.startswith("TDPBF16") else "i8" if name[4] == "S" else "u8"
    return "f16" if "FP16" in name else ""


_SCALAR = re.compile(r"(?!P|BROADCAST|BCST|TDP|SHA)\w*(S[SDH](2\w+)?|SI2S[SDH])|MOV[DQW]|MOVNTI|CRC32")


def _is_scalar(form: Form) -> bool:
    """Whether one element is computed or moved, the rest of the register aside."""
    if form.classes == {"MM"} and any(kind.startswith("MM_OR_MEM") for kind in form.operands):
        return False  # movq mm, mm/m64 moves the whole register
    return bool(_SCALAR.fullmatch(stem(form)))


def _bits(element: str) -> int:
    return int(element.lstrip("bfiu") or 0)


def _width(form: Form, element: str) -> int:
    vectors = [_WIDTH[name] for name in form.classes if name != MASK]
    if vectors:
        return max(vectors)
    if form.classes:
        return _bits(element)  # instructions between mask registers: as many bits as they use
    if introduced_by(form) in ("KL", "AESKLE") and "LOADIWKEY" not in form.mnemonic:
        return 128  # xmm registers that are implied
    return 0


_WORDS = {"f": "{}-bit floats", "bf": "{}-bit bfloats", "i": "signed {}-bit integers", "u": "{}-bit integers"}


def _describe(phrase: str, kind: SimdType, element: str, scalar: bool, form: Form, masked: bool) -> str:
    """In words, such as ``add, packed 32-bit floats, masked``."""
    words = [phrase]
    if kind is not SimdType.STATE_MANAGEMENT:
        words.append(_operand_words(element, scalar, form))
    return ", ".join(words + ["masked"] * masked)


def _operand_words(element: str, scalar: bool, form: Form) -> str:
    if TILE in form.classes and not element:
        return "a tile"
    if form.classes and form.classes <= {MASK}:
        return f"a mask of {_bits(element)} bits"
    if not element:
        return f"{_width(form, element)} bits"
    words = _WORDS[element.rstrip("0123456789")].format(_bits(element))
    return "one " + words.removesuffix("s") if scalar else "packed " + words
