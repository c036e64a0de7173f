"""iced-x86, which livepro relies on, against capstone: on every form, on noise, on damaged code."""

from __future__ import annotations

from capstone_referee import capstone_length, iced_length, known_defect
from hypothesis import example, given, settings
from hypothesis import strategies as st
from x86_64_encodings import encodings

from livepro.isa.x86_64.describe import describe, disassemble
from livepro.model import Flow
from livepro.model.itypes import DEFAULT_GROUPS

PREFIXES = bytes((0x66, 0xF2, 0xF3, 0xF0, 0x2E, 0x64, 0x67, 0x41, 0x48))

noise = st.binary(min_size=1, max_size=15)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A real encoding with up to four prefixes before it, up to three bytes replaced, noise behind it."""
    code = bytearray(draw(st.sampled_from(encodings()))[1])
    for _ in range(draw(st.integers(0, 3))):
        code[draw(st.integers(0, len(code) - 1))] = draw(st.integers(0, 255))
    before = bytes(draw(st.lists(st.sampled_from(PREFIXES), max_size=4)))
    return (before + bytes(code) + draw(st.binary(min_size=15, max_size=15)))[:15]


def lengths_agree(code: bytes) -> bool:
    """Whether both decoders, if both know the instruction, find it equally long."""
    ours, theirs = iced_length(code), capstone_length(code)
    return None in (ours, theirs) or ours == theirs or known_defect(code) != ""


def test_lengths_agree_on_every_form() -> None:
    differ = [code.hex() for _, code in encodings() if not lengths_agree(code)]
    assert differ == []
    compared = [code for _, code in encodings() if capstone_length(code) == iced_length(code)]
    assert len(compared) > 9000


@given(noise)
@settings(max_examples=500, deadline=None)
def test_lengths_agree_on_noise(code: bytes) -> None:
    assert lengths_agree(code)


@given(damaged())
@settings(max_examples=500, deadline=None)
@example(bytes.fromhex("660f8108013b5d900502bbb29b31e1"))  # jno rel32 behind an operand-size prefix
@example(bytes.fromhex("666648c20bbada01b8fc331d3512ba"))  # ret imm16 behind operand-size prefixes
@example(bytes.fromhex("0fff6851"))  # ud0
def test_lengths_agree_on_damaged_code(code: bytes) -> None:
    assert lengths_agree(code)


def test_the_known_defects_are_defects() -> None:
    for code in ("660f8108013b5d900502bbb29b31e1", "666648c20bbada01b8fc331d3512ba", "0fff6851"):
        assert iced_length(bytes.fromhex(code)) != capstone_length(bytes.fromhex(code))
    for code in ("0f8108013b5d", "660f58c1", "c3", "6690"):
        assert known_defect(bytes.fromhex(code)) == ""


@given(st.one_of(noise, damaged()))
@settings(max_examples=500, deadline=None)
def test_anything_can_be_described(code: bytes) -> None:
    described = describe(code)
    assert code.startswith(described.code)
    assert described.length == (iced_length(code) or len(code))
    assert (described.flow is Flow.INVALID) == (iced_length(code) is None)
    assert (described.mnemonic == "(bad)") == (described.flow is Flow.INVALID)
    assert described.itypes
    assert list(described.itypes) == sorted(described.itypes, key=DEFAULT_GROUPS.index)
    assert described == describe(described.code)
    assert disassemble(code, 0x401000)
