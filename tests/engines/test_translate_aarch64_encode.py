"""The words that the AArch64 emitter is made of, and what it knows of registers: executed on an
emulated processor, and compared with an independent disassembler and assembler."""

from __future__ import annotations

from pathlib import Path

import capstone
import numpy as np
import numpy.typing as npt
import pytest
from engines.aarch64_machine import CACHE, DATA, GENERAL, PC, STACK, Machine, State
from isa.aarch64_tools import assemble, capstone_with_detail, library_words

from livepro.engines.translate.translator.aarch64 import BACKEND, encode
from livepro.engines.translate.translator.aarch64.facts import registers_of


def test_a_far_jump_arrives(tmp_path: Path) -> None:
    state = State()
    machine = Machine(b"", state)
    machine.lend(state)
    machine.uc.mem_write(CACHE, BACKEND.jump_far_away(STACK))
    machine.uc.mem_write(STACK, BACKEND.arrival + encode.pack([encode.NOP]))
    machine.run(CACHE, STACK + len(BACKEND.arrival))
    after = machine.state()
    after.pc = state.pc
    assert after == state


def test_a_branch_leads_128_mib_either_way() -> None:
    code = bytearray(4)
    for distance in (0, 4, -4, (1 << 27) - 4, -(1 << 27)):
        assert BACKEND.link(code, 0, distance)
        target = (PC + distance) & (1 << 64) - 1
        assert disassembled(bytes(code), PC) == [f"b #{target:#x}"]
    assert not BACKEND.link(code, 0, 1 << 27)
    assert not BACKEND.link(code, 0, -(1 << 27) - 4)


def disassembled(code: bytes, address: int = CACHE) -> list[str]:
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    listing = [f"{i.mnemonic} {i.op_str}".strip() for i in decoder.disasm(code, address)]
    assert len(listing) == len(code) // 4
    return listing


ENCODINGS = [
    (encode.load(3, 18, 32760), "ldr x3, [x18, #0x7ff8]"),
    (encode.store(3, 18, 8), "str x3, [x18, #8]"),
    (encode.load_pair(0, 1, 18, 504), "ldp x0, x1, [x18, #0x1f8]"),
    (encode.store_pair(0, 1, 18, 16), "stp x0, x1, [x18, #0x10]"),
    (encode.move(0, 30), "mov x0, x30"),
    (encode.add_immediate(1, 18, 4095, high=True), "add x1, x18, #0xfff, lsl #12"),
    (encode.subtract_immediate(1, 1, 7), "sub x1, x1, #7"),
    (encode.subtract(1, 0, 1), "sub x1, x0, x1"),
    (encode.branch_if_zero(1, 8), "cbz x1, #8"),
    (encode.branch_if_positive(1, 8), "tbz x1, #0x3f, #8"),
    (encode.branch_register(1), "br x1"),
    (encode.load_here(0, 12), "ldr x0, #0xc"),
    (encode.low_halfword(1, 8), "and x1, x8, #0xffff"),
    (encode.load_byte_indexed(0, 0, 1), "ldrb w0, [x0, x1]"),
    (encode.SVC, "svc #0"),
    (encode.BRK, "brk #0"),
    (encode.NOP, "nop"),
]


def test_encodings(tmp_path: Path) -> None:
    """As capstone reads them, and as the GNU assembler writes them."""
    words = [word for word, _ in ENCODINGS]
    assert [disassembled(encode.pack([word]), 0)[0].replace("#0x0", "#0") for word in words] == [
        text.replace("#0x0", "#0") for _, text in ENCODINGS
    ]
    relative = ("cbz", "tbz", "ldr x0, #")  # the assembler wants a dot before distances
    lines = [". + ".join(text.rsplit("#", 1)) if text.startswith(relative) else text for _, text in ENCODINGS]
    assert assemble(lines, tmp_path, "armv8-a") == words


@pytest.mark.parametrize("value", [0, 1, 0xFFFF_0000, PC, CACHE + 5, 0xFFFF_FFFF_FFFF_FFFF, PC + (3 << 32)])
def test_addresses_are_put_together(value: int) -> None:
    machine = Machine(b"", State())
    words = encode.address(7, CACHE, value)
    machine.uc.mem_write(CACHE, encode.pack([*words, encode.NOP]))
    machine.run(CACHE, CACHE + 4 * len(words))
    assert machine.state().general[7] == value


def test_a_misaligned_target_is_looked_up_without_harm() -> None:
    machine = Machine(b"", State())
    machine.uc.mem_write(CACHE, encode.pack(encode.lookup(DATA)))
    machine.uc.mem_write(DATA + (PC + 3 >> 2 & 0xFFFF) * 8, STACK.to_bytes(8, "little"))
    machine.uc.reg_write(GENERAL[0], PC + 3)
    machine.run(CACHE, STACK)


def test_mentioned_registers_are_no_fewer_than_a_real_librarys(words: npt.NDArray[np.uint32]) -> None:
    """Against capstone, which takes more registers for read than are (UBFM's destination) and
    loses some (ADDS): hence one way only."""
    decoder = capstone_with_detail()
    numbers = {getattr(capstone.arm64, f"ARM64_REG_{size}{n}"): n for n in range(31) for size in "WX"}
    chosen = np.random.default_rng(4).choice(words, 20_000, replace=False).tolist()
    wrong = []
    for word in chosen:
        for instruction in decoder.disasm(encode.pack([word]), 0):
            reads, writes = instruction.regs_access()
            accessed = sum({1 << numbers[r] for r in (*reads, *writes) if r in numbers})
            mentions, kills = registers_of(word)
            if accessed & ~mentions or kills & ~mentions:
                wrong.append(f"{word:08x} {instruction.mnemonic} {instruction.op_str}")
    assert wrong == []


@pytest.fixture(scope="module")
def words(request: pytest.FixtureRequest) -> npt.NDArray[np.uint32]:
    cache = request.config.cache
    assert cache is not None
    return library_words(cache.mkdir("aarch64-libraries"))
