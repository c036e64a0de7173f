"""Every vector instruction is classified, and as the manuals and capstone say."""

from __future__ import annotations

import capstone
import pytest
from iced_x86 import Decoder, InstructionInfoFactory, RegisterExt
from x86_64_encodings import encodings

from livepro.isa.x86_64.describe import describe
from livepro.isa.x86_64.form import decodable_forms
from livepro.isa.x86_64.simd import SETS, WIDTHS, introduced_by
from livepro.isa.x86_64.simd_types import operation
from livepro.model import SimdFacts, SimdType

ELEMENTS = ("", "f16", "bf16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "i128")


def facts(code: str) -> SimdFacts:
    found = describe(bytes.fromhex(code)).simd
    assert found is not None
    return found


def uses_vectors(code: bytes) -> bool:
    """Whether the instruction touches a vector, mask or tile register, implied ones too.

    Asked of iced's register usage, which the classification does not look at.
    """
    decoded = Decoder(64, code).decode()
    used = [r.register for r in InstructionInfoFactory().info(decoded).used_registers()]
    return any(
        RegisterExt.is_vector_register(r)
        or RegisterExt.is_k(r)
        or RegisterExt.is_tmm(r)
        or RegisterExt.is_mm(r)
        for r in used
    )


_NAMES = """
    prefetchnta prefetcht0 prefetcht1 prefetcht2 lfence mfence sfence movnti crc32
    ldmxcsr stmxcsr vldmxcsr vstmxcsr emms femms sttilecfg
    fxsave fxsave64 fxrstor fxrstor64 xsave xsave64 xrstor xrstor64 xsavec xsavec64 xsaveopt xsaveopt64
    xsaves xsaves64 xrstors xrstors64
"""

NO_REGISTERS = frozenset(_NAMES.split())
"""SIMD though no encoding of theirs touches a vector register."""

# The x87 state holds the MMX registers.
X87 = frozenset(("fnsave", "frstor"))


def test_there_is_an_encoding_of_every_form() -> None:
    # iced's own encoder and decoder disagree on the padlock instruction montmul.
    encoded = {form.code for form, _ in encodings()}
    assert {form.mnemonic for form in decodable_forms() if form.code not in encoded} == {"MONTMUL"}
    assert len(encoded) > 4300


def test_every_vector_instruction_is_classified_and_nothing_else() -> None:
    # By form, because the memory form of an instruction such as cvtsd2si touches no vector register.
    vector = {form.code for form, code in encodings() if uses_vectors(code)}
    assert len(vector) > 3000
    for form, code in encodings():
        name = form.mnemonic.lower()
        expected = name not in X87 and (form.code in vector or name in NO_REGISTERS)
        assert (describe(code).simd is not None) == expected, form.text
    assert not vector & {form.code for form, _ in encodings() if form.mnemonic.lower() in NO_REGISTERS}


def test_facts_are_legal() -> None:
    for form, code in encodings():
        simd = describe(code).simd
        if simd is None:
            continue
        assert operation(form) is not None, f"no rule for {form.text}"
        assert simd.set in SETS, form.text
        assert simd.type in SimdType, form.text
        assert simd.width in WIDTHS, form.text
        assert simd.element in ELEMENTS, form.text
        assert simd.extension, form.text
        assert simd.description, form.text
        if simd.scalar:
            assert simd.width == int(simd.element.lstrip("bfiu")) <= 64, form.text
        if simd.width == 0:
            assert simd.type is SimdType.STATE_MANAGEMENT, form.text
        for letter, width in (("Z", 512), ("Y", 256), ("T", 8192)):
            if letter in form.classes:
                assert simd.width >= width or simd.scalar, form.text


def test_every_set_has_instructions() -> None:
    assert {d.simd.set for _, code in encodings() if (d := describe(code)).simd} == set(SETS)


def test_a_form_names_one_feature_that_introduced_it() -> None:
    """Beside AVX512VL, AVX512F and AVX, which come with others, features do not combine."""
    for form, code in encodings():
        if describe(code).simd is not None:
            rest = form.features - {"AVX512VL", "AVX512F", "AVX"}
            if rest == {"AESKLE", "WIDE_KL"}:
                continue
            assert len(rest) <= 1, form.text
            assert introduced_by(form) in (rest or form.features), form.text


# What capstone's instruction groups allow. It gives many instructions no group of an extension.
GROUPS = {
    "mmx": {"MMX", "SSE1i", "SSE2i", "SSSE3"},
    "3dnow": {"3DNOW", "3DNOWEXT"},
    "sse1": {"SSE1f", "SSE1i"},
    "sse2": {"SSE2f", "SSE2i"},
    "sse3": {"SSE3"},
    "ssse3": {"SSSE3"},
    "sse41": {"SSE4.1"},
    "sse42": {"SSE4.2"},
    "sse4a": {"SSE4a"},
    "avx": {"AVX", "AES", "PCLMULQDQ"},
    "avx2": {"AVX2"},
    "aes": {"AES"},
    "pclmul": {"PCLMULQDQ"},
    "sha": {"SHA"},
    "fc16": {"F16C"},
    "fma4": {"FMA4"},
    "xop": {"XOP"},
    "avx512": {"AVX512F"},
    "cdi": {"AVX512CD"},
    "dqi": {"AVX512DQ"},
    "bwi": {"AVX512BW"},
    "pfi": {"AVX512PF"},
}

# capstone 5.0 has these in another subset than Intel's SDM, vol. 2.
MISPLACED = {"kshiftld": "AVX512BW", "kshiftrd": "AVX512BW", "vptestnmd": "AVX512F", "vptestnmq": "AVX512F"}

# capstone 5.0 puts these into the extension that they appeared with; they have a CPUID bit
# of their own, touch no vector and are no SIMD instructions here.
APART = {"clflush", "pause", "monitor", "mwait", "prefetch"}


def test_sets_agree_with_the_groups_of_capstone() -> None:
    disassembler = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    disassembler.detail = True
    compared = 0
    for form, code in encodings():
        found = next(disassembler.disasm(code, 0, 1), None)
        if found is None:
            continue
        name = form.mnemonic.lower()
        simd = describe(code).simd
        for group in (found.group_name(g) for g in found.groups):
            if group not in GROUPS or name in APART:
                continue
            assert simd is not None, form.text
            if name in MISPLACED:
                assert simd.set == MISPLACED[name]
            else:
                assert simd.set in GROUPS[group], form.text
            compared += 1
    assert compared > 2500


@pytest.mark.parametrize(
    ("code", "set_", "kind", "width", "scalar", "element", "extension"),
    [
        ("0f58c1", "SSE1f", "ARITHMETIC", 128, False, "f32", "SSE"),  # addps xmm0, xmm1
        ("f20f58c1", "SSE2f", "ARITHMETIC", 64, True, "f64", "SSE2"),  # addsd xmm0, xmm1
        ("f30f1000", "SSE1f", "LOAD", 32, True, "f32", "SSE"),  # movss xmm0, [rax]
        ("f30f10c1", "SSE1f", "DATA_TRANSFER", 32, True, "f32", "SSE"),  # movss xmm0, xmm1
        ("660f7f00", "SSE2i", "STORE", 128, False, "", "SSE2"),  # movdqa [rax], xmm0
        ("660fefc0", "SSE2i", "LOGICAL", 128, False, "", "SSE2"),  # pxor xmm0, xmm0
        ("0fefc0", "MMX", "LOGICAL", 64, False, "", "MMX"),  # pxor mm0, mm0
        ("0fe0c1", "SSE1i", "ARITHMETIC", 64, False, "u8", "SSE"),  # pavgb mm0, mm1
        ("660f6ec0", "SSE2i", "DATA_TRANSFER", 32, True, "u32", "SSE2"),  # movd xmm0, eax
        ("f2480f2ac0", "SSE2f", "CONVERSION", 64, True, "i64", "SSE2"),  # cvtsi2sd xmm0, rax
        ("0f5bc1", "SSE2f", "CONVERSION", 128, False, "i32", "SSE2"),  # cvtdq2ps xmm0, xmm1
        ("0f2ec1", "SSE1f", "COMPARISON", 32, True, "f32", "SSE"),  # ucomiss xmm0, xmm1
        ("660fd7c0", "SSE2i", "EXTRACT", 128, False, "u8", "SSE2"),  # pmovmskb eax, xmm0
        ("660fc4c001", "SSE2i", "INSERT", 128, False, "u16", "SSE2"),  # pinsrw xmm0, eax, 1
        ("660f63c1", "SSE2i", "PACK", 128, False, "i16", "SSE2"),  # packsswb xmm0, xmm1
        ("660f60c1", "SSE2i", "UNPACK", 128, False, "u8", "SSE2"),  # punpcklbw xmm0, xmm1
        ("660f73f801", "SSE2i", "SHIFT", 128, False, "i128", "SSE2"),  # pslldq xmm0, 1
        ("660f3800c1", "SSSE3", "SHUFFLE", 128, False, "u8", "SSSE3"),  # pshufb xmm0, xmm1
        ("f20f38f0c1", "SSE4.2", "ARITHMETIC", 8, True, "u8", "SSE4.2"),  # crc32 eax, cl
        ("0fae10", "SSE1f", "STATE_MANAGEMENT", 0, False, "", "SSE"),  # ldmxcsr [rax]
        ("0f1808", "SSE1i", "STATE_MANAGEMENT", 0, False, "", "SSE"),  # prefetcht0 [rax]
        ("0fae00", "FXSR", "STATE_MANAGEMENT", 0, False, "", "FXSR"),  # fxsave [rax]
        ("c5f877", "AVX", "STATE_MANAGEMENT", 0, False, "", "AVX"),  # vzeroupper
        ("c5f4c2c201", "AVX", "COMPARISON", 256, False, "f32", "AVX"),  # vcmpltps ymm0, ymm1, ymm2
        ("c4e2791800", "AVX", "LOAD", 128, False, "f32", "AVX"),  # vbroadcastss xmm0, [rax]
        ("c4e27918c0", "AVX2", "SHUFFLE", 128, False, "f32", "AVX2"),  # vbroadcastss xmm0, xmm0
        ("c4e275b8c2", "FMA", "ARITHMETIC", 256, False, "f32", "FMA"),  # vfmadd231ps ymm0, ymm1, ymm2
        ("c4e27913c1", "F16C", "CONVERSION", 128, False, "f16", "F16C"),  # vcvtph2ps xmm0, xmm1
        ("c4e271dcc2", "AES", "ARITHMETIC", 128, False, "i128", "AVX"),  # vaesenc xmm0, xmm1, xmm2
        ("c4e275dcc2", "VAES", "ARITHMETIC", 256, False, "i128", "VAES"),  # vaesenc ymm0, ymm1, ymm2
        (
            "c4e27550c2",
            "AVX-VNNI",
            "ARITHMETIC",
            256,
            False,
            "i8",
            "AVX-VNNI",
        ),  # {vex} vpdpbusd ymm0, ymm1, ymm2
        ("62f1742858c2", "AVX512F", "ARITHMETIC", 256, False, "f32", "AVX512EVEX"),  # vaddps ymm0, ymm1, ymm2
        ("62f1744858c2", "AVX512F", "ARITHMETIC", 512, False, "f32", "AVX512EVEX"),  # vaddps zmm0, zmm1, zmm2
        ("62f1f54858c2", "AVX512F", "ARITHMETIC", 512, False, "f64", "AVX512EVEX"),  # vaddpd zmm0, zmm1, zmm2
        ("62f5744858c2", "AVX512FP16", "ARITHMETIC", 512, False, "f16", "AVX512EVEX"),  # vaddph
        (
            "62f2764852c2",
            "AVX512BF16",
            "ARITHMETIC",
            512,
            False,
            "bf16",
            "AVX512EVEX",
        ),  # vdpbf16ps zmm0, zmm1, zmm2
        (
            "62f2754850c2",
            "AVX512VNNI",
            "ARITHMETIC",
            512,
            False,
            "i8",
            "AVX512EVEX",
        ),  # vpdpbusd zmm0, zmm1, zmm2
        ("c5f892c8", "AVX512F", "DATA_TRANSFER", 16, False, "u16", "AVX512VEX"),  # kmovw k1, eax
        ("c4e1ec41cb", "AVX512BW", "LOGICAL", 64, False, "u64", "AVX512VEX"),  # kandq k1, k2, k3
        ("c4e27b49c0", "AMX-TILE", "DATA_TRANSFER", 8192, False, "", "AMX-TILE"),  # tilezero
    ],
)
def test_examples(
    code: str, set_: str, kind: str, width: int, scalar: bool, element: str, extension: str
) -> None:
    simd = facts(code)
    assert (simd.set, simd.type, simd.width, simd.scalar, simd.element, simd.extension) == (
        set_,
        kind,
        width,
        scalar,
        element,
        extension,
    )


def test_masks() -> None:
    assert not facts("62f1744858c2").masked  # vaddps zmm0, zmm1, zmm2
    assert facts("62f1744958c2").masked  # vaddps zmm0{k1}, zmm1, zmm2
    assert facts("62f174c958c2").masked  # vaddps zmm0{k1}{z}, zmm1, zmm2
    assert facts("c4e2792e00").masked  # vmaskmovps [rax], xmm0, xmm0
    assert facts("660ff7c1").masked  # maskmovdqu xmm0, xmm1
    assert not facts("c5f892c8").masked  # kmovw k1, eax
    assert not facts("660f381000").masked  # pblendvb: a selector, no mask


def test_descriptions_read_well() -> None:
    assert facts("62f1744958c2").description == "add, packed 32-bit floats, masked"
    assert facts("f20f58c1").description == "add, one 64-bit float"
    assert facts("660f7f00").description == "store, 128 bits"
    assert facts("c4e2791800").description == "load and broadcast, packed 32-bit floats"
    assert facts("c4e1ec41cb").description == "bitwise and, a mask of 64 bits"
    assert facts("c5f877").description == "clear vector registers"
