"""SIMD facts of AArch64 instructions.

An instruction is SIMD when its encoding lies in the scalar floating-point,
Advanced SIMD, SVE or SME space, when it loads or stores a SIMD&FP register, or
when it accesses their control state (FPCR, FPSR, SVCR). Family and set come
from the encoding, the operation from capstone's mnemonic, and the element from
the arrangement specifiers of its operands.

Widths: SVE and SME vectors are as long as the processor makes them, and the
same code runs at any length; their `width` is 0. So is that of state
management. A scalar instruction's width is that of its element, any other's
that of its widest vector operand: 64 or 128; one that names a lane (`v0.s[1]`)
but no whole vector works on 128.
"""

from __future__ import annotations

import re
from typing import Final

from livepro.isa.aarch64.encoding.extensions import extension_of, set_of
from livepro.isa.aarch64.encoding.memory import Access
from livepro.isa.aarch64.form import Form, Register
from livepro.isa.aarch64.simd_types import operation, operation_by_space
from livepro.model import SimdFacts, SimdType

SETS: Final = (
    *("FP", "NEON", "AES", "PMULL", "SHA1", "SHA2", "SHA3", "SHA512", "SM3", "SM4"),
    *("FP16", "RDM", "DOTPROD", "FCMA", "JSCVT", "FHM", "FRINT", "BF16", "I8MM", "FP8"),
    *("SVE", "SVEI8MM", "SVEF32MM", "SVEF64MM", "SVEBF16"),
    *("SVE2", "SVEAES", "SVEPMULL", "SVESHA3", "SVESM4", "SVEBITPERM", "SVE2P1"),
    *("SME", "SMEF64F64", "SMEI16I64", "SME2"),
)
"""Every value of `SimdFacts.set` on AArch64, roughly in order of appearance."""

WIDTHS: Final = (0, 8, 16, 32, 64, 128)
"""Every value of `SimdFacts.width`: 0 where it depends on the processor's vector length."""

_SCALABLE: Final = frozenset(("SVE", "SME"))
_VECTORS: Final = frozenset(("V", "Z", "ZA", "LANE", "FP"))

_UNSIGNED = re.compile(r"u(?!zp)\w*|f?cm(hi|hs)|cmp(hi|hs|lo|ls)|while(hi|hs|lo|ls)")


def simd_facts(form: Form, access: Access) -> SimdFacts | None:
    """SIMD facts of `form`, which accesses memory as `access` says; None if it is no SIMD instruction."""
    extension = extension_of(form.word)
    if extension is None:
        return None
    known = operation(form) if form.known else None
    kind, phrase = known or (operation_by_space(form.word), "operate")
    if any(access):
        kind, phrase = (SimdType.LOAD, "load") if access[0] else (SimdType.STORE, "store")
    element = _element(form, kind, extension)
    scalar = _is_scalar(form, kind, extension)
    masked = _is_masked(form)
    width = _width(form, kind, extension, element, scalar)
    return SimdFacts(
        set=set_of(form.word, extension, form.known),
        type=kind,
        width=width,
        scalar=scalar,
        element=element,
        masked=masked,
        extension=extension,
        description=_describe(phrase, kind, width, element, scalar, masked, extension),
    )


def _vectors(form: Form) -> list[Register]:
    return [register for register in form.registers if register.kind in _VECTORS]


def _is_scalar(form: Form, kind: SimdType, extension: str) -> bool:
    """Whether one element is computed or moved, the rest of the register aside."""
    if kind in (SimdType.STATE_MANAGEMENT, SimdType.EXTRACT, SimdType.INSERT):
        return False
    if not form.known:  # bit 28 tells scalar from vector operations, bit 24 loads nothing of it
        return extension == "FP" or (extension == "ASIMD" and form.word & 0x5E000000 == 0x5E000000)
    kinds = {register.kind for register in form.registers}
    if any(register.kind == "FP" and register.lane == 128 for register in form.registers):
        return False
    return not kinds & {"V", "Z", "ZA", "P"} and ("FP" in kinds or kinds == {"R"})


def _width(form: Form, kind: SimdType, extension: str, element: str, scalar: bool) -> int:
    if kind is SimdType.STATE_MANAGEMENT:
        return 0
    if scalar:
        return _bits(element)
    if extension in _SCALABLE:
        return 0
    if not form.known:
        return 128 if form.word >> 30 & 1 or extension == "CRYPTO" else 64  # bit 30 is Q
    return max((register.bits for register in _vectors(form)), default=0)


def _element(form: Form, kind: SimdType, extension: str) -> str:
    """Element type: that of the first vector operand that is read, which for widening,
    narrowing and converting instructions is what they start from."""
    if kind is SimdType.STATE_MANAGEMENT:
        return ""
    if not form.known:
        return _element_by_space(form.word, extension)
    register = _read_first(form, kind)
    lane = register.lane if register else 0
    if not lane or (lane == 128 and register is not None and register.kind == "FP"):
        return ""  # movprfx, ldr z0: whole registers; ldr q0: 128 bits of whatever
    if _ignores_elements(form, kind, lane):
        return ""
    return _type_of(form, kind, register, lane)


def _read_first(form: Form, kind: SimdType) -> Register | None:
    vectors = _vectors(form)
    if kind is SimdType.CONVERSION and form.registers[-1].kind == "R":
        return form.registers[-1]  # scvtf s0, w0
    if vectors:
        arranged = [register for register in vectors[1:] if (register.kind, register.lane) != ("FP", 128)]
        return (arranged or vectors)[0]
    lanes = [register for register in form.registers if register.kind == "P" and register.lane]
    return lanes[0] if lanes else form.registers[0] if form.registers else None


def _ignores_elements(form: Form, kind: SimdType, lane: int) -> bool:
    """Whether the arrangement is only a way to write "the whole register"."""
    whole = all(register.kind in ("V", "Z") for register in form.registers) and len(form.registers) > 1
    if kind is SimdType.LOGICAL:
        return whole if lane in (8, 64) else False
    return kind is SimdType.DATA_TRANSFER and form.mnemonic == "mov" and whole


def _type_of(form: Form, kind: SimdType, register: Register | None, lane: int) -> str:
    name = form.mnemonic
    if name.startswith("bf") and lane == 16:
        return "bf16"
    moved = kind in (SimdType.LOAD, SimdType.STORE) and register is not None and register.kind == "FP"
    if lane >= 16 and (name.startswith(("f", "bf")) or moved) and not (register and register.kind == "R"):
        return f"f{lane}"
    return f"{'u' if _UNSIGNED.fullmatch(name) else 'i'}{lane}"


def _element_by_space(word: int, extension: str) -> str:
    """Element of a word that capstone does not name, from its size field (bits 23:22)."""
    size = word >> 22 & 3
    if extension == "FP" and word & 0x0E000000 == 0x0E000000:
        return ("f32", "f64", "", "f16")[size]
    if extension == "FP":
        return ("i8", "f16", "f32", "f64")[word >> 30]
    return f"i{8 << size}" if extension == "ASIMD" else ""


def _is_masked(form: Form) -> bool:
    """Whether a predicate governs: it is written without lanes (`p0/m`, `p0`), unlike one that
    is a result or an argument (`p0.b`)."""
    if form.mnemonic in ("ldr", "str"):
        return False
    return any(register.kind == "P" and not register.lane for register in form.registers)


def _bits(element: str) -> int:
    return int(element.lstrip("bfiu") or 0)


_WORDS: Final = {
    "f": "{}-bit floats",
    "bf": "{}-bit bfloats",
    "i": "signed {}-bit integers",
    "u": "{}-bit integers",
}


def _describe(
    phrase: str, kind: SimdType, width: int, element: str, scalar: bool, masked: bool, extension: str
) -> str:
    """In words, such as ``add, packed 32-bit floats, masked``."""
    words = [phrase]
    if kind is not SimdType.STATE_MANAGEMENT:
        if element:
            text = _WORDS[element.rstrip("0123456789")].format(_bits(element))
            words.append("one " + text.removesuffix("s") if scalar else "packed " + text)
        else:
            words.append("a scalable register" if extension in _SCALABLE else f"{width} bits")
    return ", ".join(words + ["masked"] * masked)
