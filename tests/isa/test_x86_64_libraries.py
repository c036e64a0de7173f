"""Real vectorised libraries: every vector instruction in them is classified, and
iced and capstone find every instruction equally long.

A linear sweep may run into data between functions (libcrypto has tables in its
text section) and then decodes what is no code; both claims hold for any bytes.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy
import pytest
from capstone_referee import capstone_length, known_defect
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from iced_x86 import Decoder, InstructionInfoFactory, RegisterExt

from livepro.isa.x86_64.describe import describe
from livepro.isa.x86_64.simd import SETS

NUMPY = Path(numpy.__file__).parent

LIBRARIES = {
    "libc": (Path("/usr/lib/x86_64-linux-gnu"), "libc.so.6"),
    "numpy": (NUMPY, "_core/*.so"),
    "openblas": (NUMPY.parent, "numpy.libs/*openblas*.so*"),
    "libcrypto": (Path("/usr/lib/x86_64-linux-gnu"), "libcrypto.so.*"),
    "libjvm": (Path("/usr/lib/jvm"), "java-17-openjdk*/lib/server/libjvm.so"),
}

# Vector registers that the x87 state shares; x87 is not SIMD.
X87 = ("fnsave", "frstor")


@cache
def encodings(path: Path) -> frozenset[bytes]:
    """The distinct encodings in the executable sections of a library."""
    found = set()
    with path.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if section["sh_type"] != "SHT_PROGBITS" or not section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
                continue
            code, at = section.data(), 0
            for decoded in Decoder(64, code):
                size = decoded.len
                if not decoded.is_invalid:
                    found.add(code[at : at + size])
                at += size
    return frozenset(found)


@cache
def sample(name: str) -> frozenset[bytes]:
    """The distinct encodings in library `name` (which may be several files)."""
    directory, pattern = LIBRARIES[name]
    paths = {path.resolve() for path in directory.glob(pattern)}
    assert paths, f"no {pattern} in {directory}: install what .ci/run installs"
    return frozenset().union(*(encodings(path) for path in paths))


@cache
def distinct_forms(name: str) -> tuple[bytes, ...]:
    """One encoding for each form and kind of operands and mask: what the description depends on,
    where registers, displacements and immediates do not matter."""
    kinds: dict[tuple[int, ...], bytes] = {}
    for code in sorted(sample(name)):  # the same ones in each run
        decoded = Decoder(64, code).decode()
        operands = tuple(decoded.op_kind(i) for i in range(decoded.op_count))
        kinds.setdefault((decoded.code, decoded.op_mask, decoded.has_rep_prefix, *operands), code)
    return tuple(kinds.values())


def uses_vectors(code: bytes) -> bool:
    used = InstructionInfoFactory().info(Decoder(64, code).decode()).used_registers()
    registers = [access.register for access in used]
    return any(
        RegisterExt.is_vector_register(r) or RegisterExt.is_k(r) or RegisterExt.is_mm(r) for r in registers
    )


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_vector_instruction_is_classified(name: str) -> None:
    described = [(code, describe(code)) for code in distinct_forms(name)]
    unclassified = [
        (code.hex(), i.form)
        for code, i in described
        if i.simd is None and uses_vectors(code) and i.mnemonic not in X87
    ]
    assert unclassified == []
    assert all(i.simd.set in SETS for _, i in described if i.simd)
    sets = Counter(i.simd.set for _, i in described if i.simd)
    assert sets["SSE2i"] > 10


def test_the_libraries_hold_what_the_test_is_about() -> None:
    sets = {i.simd.set for name in LIBRARIES for i in map(describe, distinct_forms(name)) if i.simd}
    assert {"AVX512F", "AVX512BW", "AVX512DQ", "AVX2", "FMA", "AES", "SHA", "PCLMULQDQ"} <= sets


@pytest.mark.parametrize("name", LIBRARIES)
def test_decoders_agree_on_lengths(name: str) -> None:
    differ = []
    for code in sample(name):
        length = capstone_length(code)
        if length is not None and length != len(code) and not known_defect(code):
            differ.append(code.hex())
    assert differ == []
