"""AArch64 SIMD facts: by hand, by the assembler's feature gates, and over real libraries."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa.aarch64_tools import EVERYTHING, accepted, assemble, library_words, shapes

from livepro.isa.aarch64.describe import describe
from livepro.isa.aarch64.form import Form, form_of
from livepro.isa.aarch64.simd import SETS, WIDTHS
from livepro.isa.aarch64.simd_types import operation
from livepro.model import SimdFacts, SimdType

T = SimdType

# Text: set, type, width, scalar, element, masked, extension.
FACTS: dict[str, tuple[str, SimdType, int, bool, str, bool, str]] = {
    "fadd s0, s1, s2": ("FP", T.ARITHMETIC, 32, True, "f32", False, "FP"),
    "fmadd d0, d1, d2, d3": ("FP", T.ARITHMETIC, 64, True, "f64", False, "FP"),
    "fcmp d0, #0.0": ("FP", T.COMPARISON, 64, True, "f64", False, "FP"),
    "fcsel s0, s1, s2, eq": ("FP", T.DATA_TRANSFER, 32, True, "f32", False, "FP"),
    "fmov d0, x1": ("FP", T.DATA_TRANSFER, 64, True, "f64", False, "FP"),
    "fmov d0, #1.0": ("FP", T.DATA_TRANSFER, 64, True, "f64", False, "FP"),
    "fmov x0, v1.d[1]": ("FP", T.EXTRACT, 128, False, "f64", False, "FP"),
    "fmov v0.d[1], x1": ("FP", T.INSERT, 128, False, "f64", False, "FP"),
    "fcvt d0, s1": ("FP", T.CONVERSION, 32, True, "f32", False, "FP"),
    "fcvt h0, d1": ("FP", T.CONVERSION, 64, True, "f64", False, "FP"),
    "fcvt s0, h1": ("FP", T.CONVERSION, 16, True, "f16", False, "FP"),
    "fcvtzs w0, d1": ("FP", T.CONVERSION, 64, True, "f64", False, "FP"),
    "scvtf d0, w1": ("FP", T.CONVERSION, 32, True, "i32", False, "FP"),
    "ucvtf s0, xzr": ("FP", T.CONVERSION, 64, True, "u64", False, "FP"),
    "fjcvtzs w0, d1": ("JSCVT", T.CONVERSION, 64, True, "f64", False, "FP"),
    "frint32z d0, d1": ("FRINT", T.ARITHMETIC, 64, True, "f64", False, "FP"),
    "frintm d0, d1": ("FP", T.ARITHMETIC, 64, True, "f64", False, "FP"),
    "fadd h0, h1, h2": ("FP16", T.ARITHMETIC, 16, True, "f16", False, "FP"),
    "bfcvt h0, s1": ("BF16", T.CONVERSION, 32, True, "f32", False, "FP"),
    "ldr b0, [x0]": ("FP", T.LOAD, 8, True, "i8", False, "FP"),
    "ldr h0, [x0]": ("FP", T.LOAD, 16, True, "f16", False, "FP"),
    "ldr s0, .": ("FP", T.LOAD, 32, True, "f32", False, "FP"),
    "ldp d8, d9, [sp], #16": ("FP", T.LOAD, 64, True, "f64", False, "FP"),
    "ldr q0, [x0]": ("NEON", T.LOAD, 128, False, "", False, "ASIMD"),
    "ldr q0, .": ("NEON", T.LOAD, 128, False, "", False, "ASIMD"),
    "stp q0, q1, [x0]": ("NEON", T.STORE, 128, False, "", False, "ASIMD"),
    "stur q0, [x0, #1]": ("NEON", T.STORE, 128, False, "", False, "ASIMD"),
    "ld1 {v0.16b, v1.16b}, [x0]": ("NEON", T.LOAD, 128, False, "i8", False, "ASIMD"),
    "ld1r {v0.2s}, [x0]": ("NEON", T.LOAD, 64, False, "i32", False, "ASIMD"),
    "st1 {v0.s}[1], [x0], x1": ("NEON", T.STORE, 128, False, "i32", False, "ASIMD"),
    "mrs x0, fpcr": ("FP", T.STATE_MANAGEMENT, 0, False, "", False, "FP"),
    "add v0.4s, v1.4s, v2.4s": ("NEON", T.ARITHMETIC, 128, False, "i32", False, "ASIMD"),
    "add d0, d1, d2": ("NEON", T.ARITHMETIC, 64, True, "i64", False, "ASIMD"),
    "uqadd v0.8b, v1.8b, v2.8b": ("NEON", T.ARITHMETIC, 64, False, "u8", False, "ASIMD"),
    "uaddl v0.8h, v1.8b, v2.8b": ("NEON", T.ARITHMETIC, 128, False, "u8", False, "ASIMD"),
    "addhn2 v0.16b, v1.8h, v2.8h": ("NEON", T.ARITHMETIC, 128, False, "i16", False, "ASIMD"),
    "addv b0, v1.8b": ("NEON", T.ARITHMETIC, 64, False, "i8", False, "ASIMD"),
    "faddp d0, v1.2d": ("NEON", T.ARITHMETIC, 128, False, "f64", False, "ASIMD"),
    "fmla v0.2d, v1.2d, v2.d[1]": ("NEON", T.ARITHMETIC, 128, False, "f64", False, "ASIMD"),
    "fmla d0, d1, v2.d[1]": ("NEON", T.ARITHMETIC, 64, True, "f64", False, "ASIMD"),
    "pmull v0.8h, v1.8b, v2.8b": ("NEON", T.ARITHMETIC, 128, False, "i8", False, "ASIMD"),
    "frecpe v0.4s, v1.4s": ("NEON", T.ARITHMETIC, 128, False, "f32", False, "ASIMD"),
    "cnt v0.16b, v1.16b": ("NEON", T.ARITHMETIC, 128, False, "i8", False, "ASIMD"),
    "cmhi v0.4s, v1.4s, v2.4s": ("NEON", T.COMPARISON, 128, False, "u32", False, "ASIMD"),
    "fcmgt v0.4s, v1.4s, #0.0": ("NEON", T.COMPARISON, 128, False, "f32", False, "ASIMD"),
    "cmtst v0.8h, v1.8h, v2.8h": ("NEON", T.COMPARISON, 128, False, "i16", False, "ASIMD"),
    "and v0.16b, v1.16b, v2.16b": ("NEON", T.LOGICAL, 128, False, "", False, "ASIMD"),
    "bsl v0.8b, v1.8b, v2.8b": ("NEON", T.LOGICAL, 64, False, "", False, "ASIMD"),
    "orr v0.4s, #1": ("NEON", T.LOGICAL, 128, False, "i32", False, "ASIMD"),
    "mov v0.16b, v1.16b": ("NEON", T.DATA_TRANSFER, 128, False, "", False, "ASIMD"),
    "movi v0.4s, #1": ("NEON", T.DATA_TRANSFER, 128, False, "i32", False, "ASIMD"),
    "mov w0, v1.s[2]": ("NEON", T.EXTRACT, 128, False, "i32", False, "ASIMD"),
    "umov w0, v1.b[2]": ("NEON", T.EXTRACT, 128, False, "u8", False, "ASIMD"),
    "mov s0, v1.s[2]": ("NEON", T.EXTRACT, 128, False, "i32", False, "ASIMD"),
    "mov v0.h[1], w0": ("NEON", T.INSERT, 128, False, "i16", False, "ASIMD"),
    "mov v0.h[1], v1.h[2]": ("NEON", T.INSERT, 128, False, "i16", False, "ASIMD"),
    "dup v0.2s, w1": ("NEON", T.SHUFFLE, 64, False, "i32", False, "ASIMD"),
    "tbl v0.16b, {v1.16b, v2.16b}, v3.16b": ("NEON", T.SHUFFLE, 128, False, "i8", False, "ASIMD"),
    "ext v0.16b, v1.16b, v2.16b, #3": ("NEON", T.SHUFFLE, 128, False, "i8", False, "ASIMD"),
    "uzp1 v0.4s, v1.4s, v2.4s": ("NEON", T.SHUFFLE, 128, False, "i32", False, "ASIMD"),
    "rev64 v0.16b, v1.16b": ("NEON", T.SHUFFLE, 128, False, "i8", False, "ASIMD"),
    "zip1 v0.4s, v1.4s, v2.4s": ("NEON", T.UNPACK, 128, False, "i32", False, "ASIMD"),
    "uxtl v0.8h, v1.8b": ("NEON", T.UNPACK, 128, False, "u8", False, "ASIMD"),
    "sshll v0.8h, v1.8b, #1": ("NEON", T.SHIFT, 128, False, "i8", False, "ASIMD"),
    "ushr v0.2d, v1.2d, #3": ("NEON", T.SHIFT, 128, False, "u64", False, "ASIMD"),
    "shrn v0.8b, v1.8h, #4": ("NEON", T.SHIFT, 128, False, "i16", False, "ASIMD"),
    "sqxtn v0.8b, v1.8h": ("NEON", T.PACK, 128, False, "i16", False, "ASIMD"),
    "xtn2 v0.16b, v1.8h": ("NEON", T.PACK, 128, False, "i16", False, "ASIMD"),
    "fcvtl v0.4s, v1.4h": ("NEON", T.CONVERSION, 128, False, "f16", False, "ASIMD"),
    "scvtf v0.4s, v1.4s": ("NEON", T.CONVERSION, 128, False, "i32", False, "ASIMD"),
    "fadd v0.8h, v1.8h, v2.8h": ("FP16", T.ARITHMETIC, 128, False, "f16", False, "ASIMD"),
    "fmul v0.4h, v1.4h, v2.h[1]": ("FP16", T.ARITHMETIC, 128, False, "f16", False, "ASIMD"),
    "sdot v0.4s, v1.16b, v2.16b": ("DOTPROD", T.ARITHMETIC, 128, False, "i8", False, "ASIMD"),
    "udot v0.2s, v1.8b, v2.4b[1]": ("DOTPROD", T.ARITHMETIC, 128, False, "u8", False, "ASIMD"),
    "usmmla v0.4s, v1.16b, v2.16b": ("I8MM", T.ARITHMETIC, 128, False, "u8", False, "ASIMD"),
    "bfdot v0.4s, v1.8h, v2.8h": ("BF16", T.ARITHMETIC, 128, False, "bf16", False, "ASIMD"),
    "bfmmla v0.4s, v1.8h, v2.8h": ("BF16", T.ARITHMETIC, 128, False, "bf16", False, "ASIMD"),
    "sqrdmlah v0.4s, v1.4s, v2.4s": ("RDM", T.ARITHMETIC, 128, False, "i32", False, "ASIMD"),
    "fcmla v0.4s, v1.4s, v2.4s, #90": ("FCMA", T.ARITHMETIC, 128, False, "f32", False, "ASIMD"),
    "fmlal v0.4s, v1.4h, v2.4h": ("FHM", T.ARITHMETIC, 128, False, "f16", False, "ASIMD"),
    "aese v0.16b, v1.16b": ("AES", T.ARITHMETIC, 128, False, "i8", False, "CRYPTO"),
    "pmull v0.1q, v1.1d, v2.1d": ("PMULL", T.ARITHMETIC, 128, False, "i64", False, "CRYPTO"),
    "sha1c q0, s1, v2.4s": ("SHA1", T.ARITHMETIC, 128, False, "i32", False, "CRYPTO"),
    "sha256h q0, q1, v2.4s": ("SHA2", T.ARITHMETIC, 128, False, "i32", False, "CRYPTO"),
    "sha512h q0, q1, v2.2d": ("SHA512", T.ARITHMETIC, 128, False, "i64", False, "CRYPTO"),
    "eor3 v0.16b, v1.16b, v2.16b, v3.16b": ("SHA3", T.LOGICAL, 128, False, "", False, "CRYPTO"),
    "sm3partw1 v0.4s, v1.4s, v2.4s": ("SM3", T.ARITHMETIC, 128, False, "i32", False, "CRYPTO"),
    "sm4e v0.4s, v1.4s": ("SM4", T.ARITHMETIC, 128, False, "i32", False, "CRYPTO"),
    "fmla z0.s, p1/m, z1.s, z2.s": ("SVE", T.ARITHMETIC, 0, False, "f32", True, "SVE"),
    "add z0.d, z1.d, z2.d": ("SVE", T.ARITHMETIC, 0, False, "i64", False, "SVE"),
    "faddv s0, p0, z1.s": ("SVE", T.ARITHMETIC, 0, False, "f32", True, "SVE"),
    "ld1w {z0.d}, p0/z, [x0, z1.d]": ("SVE", T.LOAD, 0, False, "i64", True, "SVE"),
    "st2d {z0.d, z1.d}, p0, [x0]": ("SVE", T.STORE, 0, False, "i64", True, "SVE"),
    "ldr z0, [x0]": ("SVE", T.LOAD, 0, False, "", False, "SVE"),
    "str p0, [x0]": ("SVE", T.STORE, 0, False, "", False, "SVE"),
    "prfb pldl1keep, p0, [x0]": ("SVE", T.STATE_MANAGEMENT, 0, False, "", True, "SVE"),
    "cmphi p0.h, p1/z, z0.h, z1.h": ("SVE", T.COMPARISON, 0, False, "u16", True, "SVE"),
    "whilelo p0.s, x0, x1": ("SVE", T.COMPARISON, 0, False, "u32", False, "SVE"),
    "ptrue p0.s": ("SVE", T.DATA_TRANSFER, 0, False, "i32", False, "SVE"),
    "and z0.d, z1.d, z2.d": ("SVE", T.LOGICAL, 0, False, "", False, "SVE"),
    "and p0.b, p1/z, p2.b, p3.b": ("SVE", T.LOGICAL, 0, False, "i8", True, "SVE"),
    "zip1 p0.b, p1.b, p2.b": ("SVE", T.UNPACK, 0, False, "i8", False, "SVE"),
    "mov z0.s, w0": ("SVE", T.SHUFFLE, 0, False, "i32", False, "SVE"),
    "mov z0.s, z1.s[2]": ("SVE", T.SHUFFLE, 0, False, "i32", False, "SVE"),
    "mov z0.d, z1.d": ("SVE", T.DATA_TRANSFER, 0, False, "", False, "SVE"),
    "lastb x0, p0, z1.d": ("SVE", T.EXTRACT, 0, False, "i64", True, "SVE"),
    "insr z0.s, w0": ("SVE", T.INSERT, 0, False, "i32", False, "SVE"),
    "cntd x0": ("SVE", T.ARITHMETIC, 64, True, "i64", False, "SVE"),
    "setffr": ("SVE", T.STATE_MANAGEMENT, 0, False, "", False, "SVE"),
    "smmla z0.s, z1.b, z2.b": ("SVEI8MM", T.ARITHMETIC, 0, False, "i8", False, "SVE"),
    "bfdot z0.s, z1.h, z2.h": ("SVEBF16", T.ARITHMETIC, 0, False, "bf16", False, "SVE"),
    "sqdmulh z0.s, z1.s, z2.s": ("SVE2", T.ARITHMETIC, 0, False, "i32", False, "SVE"),
    "sqxtnb z0.b, z1.h": ("SVE2", T.PACK, 0, False, "i16", False, "SVE"),
    "match p0.b, p1/z, z0.b, z1.b": ("SVE2", T.COMPARISON, 0, False, "i8", True, "SVE"),
    "aese z0.b, z0.b, z1.b": ("SVEAES", T.ARITHMETIC, 0, False, "i8", False, "SVE"),
    "bdep z0.d, z1.d, z2.d": ("SVEBITPERM", T.ARITHMETIC, 0, False, "i64", False, "SVE"),
    "fmopa za0.s, p0/m, p1/m, z0.s, z1.s": ("SME", T.ARITHMETIC, 0, False, "f32", True, "SME"),
    "fmopa za0.d, p0/m, p1/m, z0.d, z1.d": ("SMEF64F64", T.ARITHMETIC, 0, False, "f64", True, "SME"),
    "smopa za0.d, p0/m, p1/m, z0.h, z1.h": ("SMEI16I64", T.ARITHMETIC, 0, False, "i16", True, "SME"),
    "ld1d {za0v.d[w12, 1]}, p0/z, [x0]": ("SME", T.LOAD, 0, False, "i64", True, "SME"),
    "smstart": ("SME", T.STATE_MANAGEMENT, 0, False, "", False, "SME"),
    "zero {za}": ("SME", T.DATA_TRANSFER, 0, False, "", False, "SME"),
}

NO_SIMD = ["add x0, x1, x2", "ldr x0, [x1]", "mrs x0, tpidr_el0", "nop", "b .", "cas x0, x1, [x2]"]


def facts_of(word: int) -> SimdFacts | None:
    return describe(word.to_bytes(4, "little")).simd


def test_facts_of_assembled_instructions(tmp_path: Path) -> None:
    found = {}
    for line, word in zip(FACTS, assemble(list(FACTS), tmp_path), strict=True):
        simd = facts_of(word)
        assert simd is not None, line
        found[line] = (
            simd.set,
            simd.type,
            simd.width,
            simd.scalar,
            simd.element,
            simd.masked,
            simd.extension,
        )
    assert found == FACTS
    assert {simd_set for simd_set, *_ in FACTS.values()} >= set(SETS) - {*NEWER, *UNTYPED}


NEWER = {"FP8", "SVE2P1", "SME2"}
"""Sets that neither binutils 2.40 nor capstone 5 knows."""

UNTYPED = {"SVEF32MM", "SVEF64MM", "SVEPMULL", "SVESHA3", "SVESM4"}
"""Sets without a line of their own in FACTS; the assembler's gates cover them."""


def test_other_instructions_have_no_facts(tmp_path: Path) -> None:
    assert [facts_of(word) for word in assemble(NO_SIMD, tmp_path)] == [None] * len(NO_SIMD)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("fadd v0.4s, v1.4s, v2.4s", "add, packed 32-bit floats"),
        ("fmul d0, d1, d2", "multiply, one 64-bit float"),
        ("ldr q0, [x0]", "load, 128 bits"),
        ("uqadd z0.b, p0/m, z0.b, z1.b", "add, packed 8-bit integers, masked"),
        ("mov z0.d, z1.d", "move, a scalable register"),
        ("smstop", "enter or leave a streaming mode"),
    ],
)
def test_descriptions_are_sentences(text: str, description: str, tmp_path: Path) -> None:
    facts = facts_of(assemble([text], tmp_path)[0])
    assert facts is not None
    assert facts.description == description


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # As LLVM's assembler writes them; capstone 5 does not name them.
        (0xC1A01C00, ("SME2", T.ARITHMETIC, 0, False, "SME")),  # fadd za.s[w8, 0, vgx2], {z0.s-z1.s}
        (0xA0408000, ("SME2", T.LOAD, 0, False, "SME")),  # ld1b {z0.b-z3.b}, pn8/z, [x0]
        (0x04052000, ("SVE2P1", T.ARITHMETIC, 0, False, "SVE")),  # addqv v0.16b, p0, z0.b
        (0x4E40FC00, ("FP8", T.ARITHMETIC, 128, False, "ASIMD")),  # fdot v0.8h, v0.16b, v0.16b
    ],
)
def test_facts_of_what_capstone_does_not_name(
    word: int, expected: tuple[str, SimdType, int, bool, str]
) -> None:
    simd = facts_of(word)
    assert simd is not None
    assert (simd.set, simd.type, simd.width, simd.scalar, simd.extension) == expected
    assert describe(word.to_bytes(4, "little")).opcode == "UNKNOWN"


VECTOR_SPACES = (
    st.integers(0, 2**32 - 1).map(lambda n: n | 0x0E000000),  # scalar floating point, Advanced SIMD
    st.integers(0, 2**32 - 1).map(lambda n: n & 0xE1FFFFFF | 0x04000000),  # SVE
    st.integers(0, 2**32 - 1).map(lambda n: n & 0xE1FFFFFF | 0x80000000),  # SME
)


@settings(max_examples=1500, deadline=None)
@given(st.one_of(*VECTOR_SPACES))
def test_every_word_of_the_vector_spaces_has_facts(word: int) -> None:
    simd = facts_of(word)
    assert simd is not None
    assert_sound(form_of(word), simd)


def assert_sound(form: Form, simd: SimdFacts) -> None:
    assert simd.set in SETS
    assert simd.width in WIDTHS
    scalable = simd.extension in ("SVE", "SME")
    if form.known or simd.element:  # the type field of an unallocated word may name no type
        assert not simd.scalar or simd.width == int(simd.element.lstrip("bfiu"))
        assert simd.width > 0 or scalable or simd.type is T.STATE_MANAGEMENT
    assert scalable or not simd.masked
    assert simd.description
    if form.known:
        ruled = form.known and operation(form) is not None  # by a rule, not a default
        assert ruled or simd.type in (T.LOAD, T.STORE), f"{form.mnemonic} {form.operands}"


@pytest.fixture(scope="module")
def library_shapes(request: pytest.FixtureRequest) -> list[Form]:
    cache = request.config.cache
    assert cache is not None
    words: npt.NDArray[np.uint32] = library_words(cache.mkdir("aarch64-libraries"))
    return shapes(words.tolist())


def test_no_vector_instruction_of_a_real_library_is_unclassified(library_shapes: list[Form]) -> None:
    found = defaultdict(set)
    for form in library_shapes:
        simd = facts_of(form.word)
        touches = any(register.kind in ("V", "Z", "ZA", "LANE", "FP", "P") for register in form.registers)
        assert simd is not None or not touches, f"{form.mnemonic} {form.operands}"
        if simd is not None:
            assert_sound(form, simd)
            found[simd.set].add(form.mnemonic)
    assert set(found) >= {"FP", "NEON", "AES", "PMULL", "SHA1", "SHA2", "SHA512", "SHA3", "SM3", "SM4", "SVE"}
    assert len(found["NEON"]) > 100


GATES = {
    "NEON": "armv8-a",
    "FP": "armv8-a",
    "AES": "armv8-a+crypto",
    "PMULL": "armv8-a+crypto",
    "SHA1": "armv8-a+crypto",
    "SHA2": "armv8-a+crypto",
    "SHA3": "armv8.2-a+sha3",
    "SHA512": "armv8.2-a+sha3",
    "SM3": "armv8.2-a+sm4",
    "SM4": "armv8.2-a+sm4",
    "FP16": "armv8.2-a+fp16",
    "RDM": "armv8-a+rdma",
    "DOTPROD": "armv8.2-a+dotprod",
    "FCMA": "armv8-a+fp16+compnum",
    "JSCVT": "armv8.3-a",
    "FHM": "armv8.2-a+fp16fml",
    "FRINT": "armv8.5-a",
    "BF16": "armv8.2-a+bf16",
    "I8MM": "armv8.2-a+i8mm",
    "SVE": "armv8-a+sve",
    "SVEI8MM": "armv8.2-a+sve+i8mm",
    "SVEBF16": "armv8.2-a+sve+bf16",
    "SVEF32MM": "armv8.2-a+f32mm",
    "SVEF64MM": "armv8.2-a+f64mm",
    "SVE2": "armv8-a+sve2",
    "SVEAES": "armv8-a+sve2-aes",
    "SVEPMULL": "armv8-a+sve2-aes",
    "SVESHA3": "armv8-a+sve2-sha3",
    "SVESM4": "armv8-a+sve2-sm4",
    "SVEBITPERM": "armv8-a+sve2-bitperm",
    "SVE2P1": "armv9-a+sme",  # what SME shares with SVE2.1: SCLAMP, UCLAMP, PSEL, REVD
    "SME": "armv9-a+sme",
    "SMEF64F64": "armv9-a+sme-f64",
    "SMEI16I64": "armv9-a+sme-i64",
}
"""Set: the architecture that has it, for the assembler."""

WITHOUT = {
    **dict.fromkeys(GATES, "armv8-a"),
    **dict.fromkeys(("DOTPROD", "FHM", "BF16", "I8MM"), "armv8.2-a+fp16"),
    **dict.fromkeys(("SHA3", "SM3", "SM4"), "armv8.2-a+crypto"),  # binutils 2.40 gives SHA512 to +sha2
    "FRINT": "armv8.4-a",
    "JSCVT": "armv8.2-a+fp16",
    **{name: "armv8-a+sve" for name in GATES if name.startswith("SVE") and name != "SVE"},
    **dict.fromkeys(("SVEAES", "SVEPMULL", "SVESHA3", "SVESM4", "SVEBITPERM", "SVE2P1"), "armv8-a+sve2"),
    **dict.fromkeys(("SME", "SMEF64F64", "SMEI16I64"), "armv9-a"),
}
"""Set: an architecture that lacks it, but has what it builds on."""

GARBLED = {"and", "orr", "eor", "dupm", "mov", "prfb", "prfh", "prfw", "prfd"}
"""Names whose SVE forms capstone 5 prints with immediates or without operations that no assembler takes."""


def test_sets_are_where_the_assembler_gates_them(tmp_path: Path, library_shapes: list[Form]) -> None:
    """Every shape among random vector words is taken by an assembler that has its set, and
    by none that lacks it."""
    random = np.random.default_rng(1)
    words = random.integers(0, 2**32, 40_000, np.uint32)
    spaces = [(words & 0xE1FFFFFF) | 0x04000000, words | 0x0E000000, (words & 0x61FFFFFF) | 0x80000000]
    forms = shapes(np.concatenate(spaces).tolist()) + library_shapes
    forms.append(form_of(0x1E7E0020))  # fjcvtzs w0, d1: random words miss this one opcode
    by_set: dict[str, list[str]] = defaultdict(list)
    lines = [f"{form.mnemonic} {form.operands}" for form in forms]
    for form, line, known in zip(forms, lines, accepted(lines, tmp_path, EVERYTHING), strict=True):
        simd = facts_of(form.word)
        literal = form.mnemonic == "ldr" and "[" not in line  # capstone writes an address, not a label
        if simd is None or literal:
            continue
        if not known:
            assert form.mnemonic in GARBLED, line
        else:
            by_set[simd.set].append(line)
    assert set(by_set) == set(GATES)
    for name, members in by_set.items():
        taken = accepted(members, tmp_path, GATES[name])
        assert [line for line, ok in zip(members, taken, strict=True) if not ok] == [], name
        if name not in ("NEON", "FP"):
            refused = accepted(members, tmp_path, WITHOUT[name])
            assert [line for line, ok in zip(members, refused, strict=True) if ok] == [], name
