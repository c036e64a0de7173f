"""AArch64 control flow: against the assembler, objdump, capstone and a real library."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from isa.aarch64_tools import assemble, capstone_with_detail, library_words, mnemonics, text_section

from livepro.isa import for_machine
from livepro.isa.aarch64.decoder import decode_block, decode_word, quirk_of
from livepro.isa.aarch64.form import text_of
from livepro.isa.base import Quirk
from livepro.model import Flow

ASSEMBLED = {
    "b .+16": (Flow.JUMP, 16),
    "b .-16": (Flow.JUMP, -16),
    "b .+0x7fffffc": (Flow.JUMP, 0x7FFFFFC),
    "bl .-0x8000000": (Flow.CALL, -0x8000000),
    "b.eq .+8": (Flow.BRANCH, 8),
    "b.al .-8": (Flow.BRANCH, -8),
    "bc.ne .+0xffffc": (Flow.BRANCH, 0xFFFFC),
    "cbz x3, .+4": (Flow.BRANCH, 4),
    "cbnz w3, .-0x100000": (Flow.BRANCH, -0x100000),
    "tbz w0, #31, .+0x7ffc": (Flow.BRANCH, 0x7FFC),
    "tbnz x30, #63, .-0x8000": (Flow.BRANCH, -0x8000),
    "br x16": (Flow.INDIRECT_JUMP, None),
    "braa x1, sp": (Flow.INDIRECT_JUMP, None),
    "brab x1, x2": (Flow.INDIRECT_JUMP, None),
    "braaz x1": (Flow.INDIRECT_JUMP, None),
    "brabz x1": (Flow.INDIRECT_JUMP, None),
    "blr x9": (Flow.INDIRECT_CALL, None),
    "blraa x1, x2": (Flow.INDIRECT_CALL, None),
    "blrab x1, sp": (Flow.INDIRECT_CALL, None),
    "blraaz x1": (Flow.INDIRECT_CALL, None),
    "blrabz x1": (Flow.INDIRECT_CALL, None),
    "ret": (Flow.RETURN, None),
    "ret x5": (Flow.RETURN, None),
    "retaa": (Flow.RETURN, None),
    "retab": (Flow.RETURN, None),
    "eret": (Flow.TRAP, None),
    "eretaa": (Flow.TRAP, None),
    "eretab": (Flow.TRAP, None),
    "drps": (Flow.TRAP, None),
    "svc #0": (Flow.SYSCALL, None),
    "svc #0xffff": (Flow.SYSCALL, None),
    "hvc #1": (Flow.TRAP, None),
    "smc #1": (Flow.TRAP, None),
    "brk #0": (Flow.TRAP, None),
    "brk #0xf000": (Flow.TRAP, None),
    "hlt #0": (Flow.TRAP, None),
    "dcps1 #3": (Flow.TRAP, None),
    "udf #0": (Flow.TRAP, None),
    "udf #0xffff": (Flow.TRAP, None),
    "nop": (Flow.NEXT, None),
    "bti c": (Flow.NEXT, None),
    "paciasp": (Flow.NEXT, None),
    "wfi": (Flow.NEXT, None),
    "isb": (Flow.NEXT, None),
    "mrs x0, tpidr_el0": (Flow.NEXT, None),
    "dc zva, x0": (Flow.NEXT, None),
    "add x0, x1, x2": (Flow.NEXT, None),
    "ldr x0, [x1]": (Flow.NEXT, None),
    "fadd v0.4s, v1.4s, v2.4s": (Flow.NEXT, None),
    "ld1w {z0.s}, p0/z, [x0]": (Flow.NEXT, None),
    "fmopa za0.s, p0/m, p1/m, z0.s, z1.s": (Flow.NEXT, None),
}


def test_control_flow_of_assembled_instructions(tmp_path: Path) -> None:
    march = "armv8.8-a+sve2+sme"  # armv8.8-a for BC.cond
    words = assemble(list(ASSEMBLED), tmp_path, march)
    assert dict(zip(ASSEMBLED, map(decode_word, words), strict=True)) == ASSEMBLED


@pytest.mark.parametrize(
    ("word", "flow", "distance"),
    [
        # Newer than binutils 2.40 and capstone 5; words as LLVM's assembler writes them.
        (0xF4023F61, Flow.BRANCH, -20),  # cbgt x1, x2
        (0x74423F41, Flow.BRANCH, -24),  # cbhi w1, w2
        (0x7402BEA1, Flow.BRANCH, -44),  # cbbgt w1, w2
        (0x74E2FE81, Flow.BRANCH, -48),  # cbhne w1, w2
        (0xF53FBE41, Flow.BRANCH, -56),  # cblt x1, #63
        (0x75DFBDE1, Flow.BRANCH, -68),  # cbeq w1, #63
        (0x5500003F, Flow.RETURN, None),  # retaasppc
        (0x5520005F, Flow.RETURN, None),  # retabsppc
        (0xD65F0BE3, Flow.RETURN, None),  # retaasppcr x3
        (0xD65F0FE3, Flow.RETURN, None),  # retabsppcr x3
        # Unallocated: fields of the branch space that no instruction has.
        (0xF402BEA1, Flow.INVALID, None),  # a byte comparison of doublewords
        (0x74827F61, Flow.INVALID, None),
        (0x7503FE41, Flow.INVALID, None),
        (0x56000000, Flow.INVALID, None),
        (0x76000000, Flow.INVALID, None),
        (0xD4000000, Flow.INVALID, None),
        (0xD4000005, Flow.INVALID, None),
        (0xD4A00000, Flow.INVALID, None),
        (0xD6000000, Flow.INVALID, None),
        (0xD61F0001, Flow.INVALID, None),
        (0xD61F0800, Flow.INVALID, None),
        (0xD69F0000, Flow.INVALID, None),
        (0xD6FF03E0, Flow.INVALID, None),
        # Main encoding table: reserved and unallocated spaces.
        (0x00010000, Flow.INVALID, None),
        (0x02000000, Flow.INVALID, None),
        (0x82000000, Flow.INVALID, None),
        (0x46000000, Flow.INVALID, None),
        (0x00000000, Flow.TRAP, None),
        # Allocated spaces: capstone 5 does not name these, a newer processor has them.
        (0xC1A01C00, Flow.NEXT, None),  # fadd za.s[w8, 0, vgx2], {z0.s-z1.s} (SME2)
        (0x04052000, Flow.NEXT, None),  # addqv v0.16b, p0, z0.b (SVE2.1)
        (0x0E00FC00, Flow.NEXT, None),  # fdot v0.2s, v0.8b, v0.8b (FP8)
        (0xD503201F, Flow.NEXT, None),
    ],
)
def test_control_flow_of_words(word: int, flow: Flow, distance: int | None) -> None:
    assert decode_word(word) == (flow, distance)


def code(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


NOP, RET, SVC, INVALID, BACK = 0xD503201F, 0xD65F03C0, 0xD4000001, 0x02000000, 0x17FFFFFF


def test_a_block_ends_behind_its_terminator() -> None:
    block = decode_block(code(NOP, SVC, BACK, NOP), 0x1000)
    assert block.code == code(NOP, SVC, BACK)
    assert block.addresses == (0x1000, 0x1004, 0x1008, 0x100C)
    assert block.flows == (Flow.NEXT, Flow.SYSCALL, Flow.JUMP)
    assert block.quirks == (Quirk.NONE, Quirk.SYSCALL, Quirk.NONE)
    assert block.reps == (False, False, False)
    assert (block.target, block.truncated, len(block)) == (0x1004, False, 3)


def test_a_block_without_terminator_is_truncated_at_its_last_whole_word() -> None:
    block = decode_block(code(NOP, NOP) + b"\xc0\x03\x5f", 0x1000)
    assert (block.code, block.addresses) == (code(NOP, NOP), (0x1000, 0x1004, 0x1008))
    assert (block.target, block.truncated) == (None, True)


def test_no_code_is_a_truncated_block_without_instructions() -> None:
    block = decode_block(b"", 0x1000)
    assert (block.code, block.addresses, block.flows, block.truncated) == (b"", (0x1000,), (), True)


def test_an_undecodable_word_ends_the_block_before_it() -> None:
    block = decode_block(code(NOP, INVALID, RET), 0x1000)
    assert (block.code, block.flows, block.truncated) == (code(NOP), (Flow.NEXT,), False)


def test_an_undecodable_word_that_comes_first_is_a_block() -> None:
    block = decode_block(code(INVALID, RET), 0x1000)
    assert (block.code, block.addresses) == (code(INVALID), (0x1000, 0x1004))
    assert (block.flows, block.truncated) == ((Flow.INVALID,), False)


def test_a_target_below_zero_wraps() -> None:
    assert decode_block(code(BACK), 0).target == 0xFFFF_FFFF_FFFF_FFFC


def test_the_registry_gives_this_instruction_set() -> None:
    isa = for_machine("aarch64")
    assert (isa.name, isa.max_instruction) == ("aarch64", 4)
    assert isa.decode_block(code(NOP, RET), 8) == decode_block(code(NOP, RET), 8)
    with pytest.raises(ValueError, match="rep"):
        isa.rep_count(code(NOP), None)


def test_exclusive_loads_are_marked(tmp_path: Path) -> None:
    begins = ["ldxr x0, [x1]", "ldaxr w0, [x1]", "ldxrb w0, [x1]", "ldaxrh w0, [x1]"]
    begins += ["ldxp x0, x1, [x2]", "ldaxp w0, w1, [x2]"]
    others = [
        "stxr w0, x1, [x2]",
        "stlxp w0, x1, x2, [x3]",
        "ldar x0, [x1]",
        "ldlar x0, [x1]",
        "stlr x0, [x1]",
    ]
    others += ["cas x0, x1, [x2]", "casp x0, x1, x2, x3, [x4]", "caspal w0, w1, w2, w3, [x4]", "clrex"]
    others += ["ldadd x0, x1, [x2]", "ldr x0, [x1]", "ld1 {v0.4s}, [x0]", "add x0, x1, x2"]
    words = assemble(begins + others, tmp_path)
    assert [quirk_of(w) for w in words] == [Quirk.EXCLUSIVE] * len(begins) + [Quirk.NONE] * len(others)
    assert decode_block(code(*words), 0).quirks == tuple(quirk_of(w) for w in words)


def test_targets_are_where_objdump_sees_them(tmp_path: Path) -> None:
    source, target = tmp_path / "labels.s", tmp_path / "labels.o"
    branches = [
        "b {0}",
        "bl {0}",
        "b.lt {0}",
        "cbz x1, {0}",
        "cbnz w2, {0}",
        "tbz x3, #40, {0}",
        "tbnz w4, #4, {0}",
    ]
    lines = ["first:"]
    for branch in branches:
        lines += [branch.format(label) for label in ("first", "middle", "last")]
    lines += ["middle:", ".skip 0x7000", *(b.format("middle") for b in branches), "last: nop"]
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(["aarch64-linux-gnu-as", "-o", target, source], check=True)
    command = ["aarch64-linux-gnu-objdump", "-d", "-z", target]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    row = re.compile(r"^\s*([0-9a-f]+):\t[0-9a-f]{8} \t(?:b|bl|b\.\w+|cbn?z|tbn?z)\t.*?\b([0-9a-f]+) <", re.M)
    seen = {int(at, 16): int(to, 16) for at, to in row.findall(text)}
    data = text_section(target)
    blocks = [decode_block(data[at : at + 4], at) for at in range(0, len(data), 4)]
    assert len(seen) == 4 * len(branches)
    assert {b.address: b.target for b in blocks if b.target is not None} == seen


# What capstone's groups and operands say, as livepro's flows. Capstone puts BLR into
# branch_relative, leaves BC.cond and every trap but SVC without a group, and gives ERET and DRPS none.
TRAPS = re.compile(r"brk|hlt|hvc|smc|udf|dcps[123]|tcancel|eret(aa|ab)?|drps")


def flow_by_capstone(instruction: Any) -> tuple[Flow, int | None]:
    groups = {instruction.group_name(group) for group in instruction.groups}
    name: str = instruction.mnemonic
    immediates = [operand.imm for operand in instruction.operands if operand.type == 2]
    direct = not name.startswith(("br", "blr"))
    if TRAPS.fullmatch(name):
        return Flow.TRAP, None
    if "int" in groups:
        return Flow.SYSCALL, None
    if "return" in groups or name.startswith("ret"):
        return Flow.RETURN, None
    if "call" in groups:
        return (Flow.CALL, immediates[-1]) if direct else (Flow.INDIRECT_CALL, None)
    if "jump" in groups or name.startswith("bc."):
        if not direct:
            return Flow.INDIRECT_JUMP, None
        return (Flow.JUMP if name == "b" else Flow.BRANCH), immediates[-1]
    return Flow.NEXT, None


CAPSTONE = capstone_with_detail()
BASE = 0x1000_0000


def assert_agreement(word: int) -> None:
    """Where capstone names a word, it is the same flow to the same target; where it does not, the
    word is invalid, or an instruction newer than capstone 5."""
    instruction = next(CAPSTONE.disasm(word.to_bytes(4, "little"), BASE), None)
    flow, distance = decode_word(word)
    if instruction is None:
        newer = word >> 24 & 0x7E == 0x74 or word >> 24 in (0x55, 0xD6)
        assert flow in (Flow.INVALID, Flow.NEXT) or newer
    else:
        assert (flow, None if distance is None else BASE + distance) == flow_by_capstone(instruction)


BRANCH_SPACE = st.integers(0, 2**29 - 1).map(lambda n: (n >> 26) << 29 | 0x14000000 | n & 0x3FFFFFF)
SPARSE = st.tuples(BRANCH_SPACE, st.integers(0, 2**26 - 1)).map(
    lambda p: p[0] & (p[1] | 0xFE000000) | 0x1F0000
)


@settings(max_examples=1500, deadline=None)
@given(st.one_of(st.integers(0, 2**32 - 1), BRANCH_SPACE, SPARSE))
@example(0xD71F0800)
@example(0xD73F0FFF)
def test_capstone_agrees_on_random_words(word: int) -> None:
    assert_agreement(word)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=64), st.integers(0, 2**48 - 1).map(lambda n: n * 4))
def test_any_bytes_decode_to_whole_blocks(data: bytes, address: int) -> None:
    at, blocks = 0, []
    while len(data) - at >= 4:
        blocks.append(decode_block(data[at:], address + at))
        assert len(blocks[-1]) > 0
        at += len(blocks[-1].code)
    assert b"".join(block.code for block in blocks) == data[: len(data) // 4 * 4]
    for block in blocks:
        words = np.frombuffer(block.code, "<u4").tolist()
        assert block.flows == tuple(decode_word(word)[0] for word in words)
        assert block.quirks == tuple(quirk_of(word) for word in words)
        assert not any(flow.ends_block for flow in block.flows[:-1])
        assert block.addresses == tuple(range(block.address, block.address + len(block.code) + 1, 4))


@pytest.fixture(scope="module")
def words(request: pytest.FixtureRequest) -> npt.NDArray[np.uint32]:
    cache = request.config.cache
    assert cache is not None
    return library_words(cache.mkdir("aarch64-libraries"))


def test_capstone_agrees_on_the_branches_of_a_real_library(words: npt.NDArray[np.uint32]) -> None:
    branches = words[(words & 0x1C000000) == 0x14000000]
    assert len(branches) > 100_000
    for word in branches[::10].tolist():  # all of them take a minute
        assert_agreement(word)


def test_nothing_else_in_a_real_library_leaves_the_straight_line(words: npt.NDArray[np.uint32]) -> None:
    """Outside the branch space, no word that capstone names changes control, but UDF."""
    others = words[(words & 0x1C000000) != 0x14000000]
    leaving = [word for word in others.tolist() if decode_word(word)[0] is not Flow.NEXT]
    assert {text_of(word.to_bytes(4, "little"), 0)[0] for word in leaving} <= {"", "udf"}
    names = mnemonics(others)
    control = re.compile(r"b|bl|bc?\.\w+|bl?r\w{0,3}|cbn?z|tbn?z|ret\w*|svc")
    assert {name for name in names if control.fullmatch(name) or TRAPS.fullmatch(name)} <= {"udf"}
    assert len(names) > 350
