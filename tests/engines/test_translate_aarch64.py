"""What the AArch64 emitter makes: executed beside the original on an emulated processor, and
disassembled by an independent disassembler."""

from __future__ import annotations

import random
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
import unicorn
from engines.aarch64_machine import (
    AREA,
    CACHE,
    DATA,
    FAR_SLOT,
    GENERAL,
    MEMORY,
    PC,
    SLOT,
    Machine,
    State,
    chained,
    copied,
    emit,
    native,
)
from isa.aarch64_tools import assemble

from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import BACKEND, encode
from livepro.engines.translate.translator.aarch64 import machine as machine_facts
from livepro.engines.translate.translator.aarch64.emitter import Emitter
from livepro.engines.translate.translator.aarch64.source import Reader, Text
from livepro.engines.translate.translator.emitted import Check
from livepro.engines.translate.translator.source import SourceBlock
from livepro.isa.aarch64.registers import Registers

ELSEWHERE = PC + 0x1840
"""Where indirect branches lead."""

BLOCKS = {
    "arithmetic": "add x0, x1, x2; mov x3, #7; b .+0x40",
    "flags alive": "adcs x0, x1, x2; b.cs .+0x40",
    "falls": "cmp x1, x1; b.ne .+0x40",
    "every condition": "b.vs .+0x100",
    "always": "b.al .+0x80",
    "not zero": "cbnz w5, .-0x40",
    "zero": "cbz x5, .+0x40",
    "bit set": "tbnz x5, #33, .+0x40",
    "bit clear": "tbz w5, #3, .+0x40",
    "bit of the lent register": "tbz x18, #0, .+0x40",
    "the lent register is not zero": "cbnz x18, .+0x40",
    "the lent register is zero": "mov x18, #0; cbnz w18, .+0x40",
    "call": "mov x0, x7; bl .+0x40",
    "adr": "adr x3, .+0x123; adr x30, .-5; b .+8",
    "adr of the lent register": "adr x18, .+0x123; add x1, x18, #1; b .+8",
    "adr to nothing": "adr xzr, .+4; b .+8",
    "adrp": "adrp x3, .+0x3000; adrp x4, .-0x80000000; adrp x5, .+0x70000000; b .+8",
    "literals": "ldr x3, .+0x100; ldr w4, .+0x104; ldrsw x5, .+0x108; ldr x18, .+0x110; ldr xzr, .+8; b .+8",
    "vector literals": "ldr s3, .+0x100; ldr d4, .+0x104; ldr q5, .+0x108; prfm pldl1keep, .+0x10; b .+8",
    "return": "ret",
    "return through another": "ret x9",
    "return through the lent register": "mov x18, x9; ret x18",
    "jump": "br x9",
    "jump through x0": "mov x0, x9; br x0",
    "jump through x1": "mov x1, x9; br x1",
    "indirect call": "blr x9",
    "call through the link register": "mov x30, x9; blr x30",
    "call through x1": "mov x1, x9; blr x1",
    "the lent register": "add x18, x18, x3; str x18, [x10]; ldr x4, [x10]; mov w5, w18; b .+8",
    "the lent register as a base": "mov x18, x10; stp x0, x1, [x18, #16]!; ldr q3, [x18], #32; b .+8",
    "the lent register indexes": "mov x18, #8; ldr x0, [x10, x18, lsl #3]; str w0, [x10, w18, uxtw]; b .+8",
    "the lent register in vectors": "fmov d3, x18; scvtf s4, w18; dup v5.4s, w18; umov w18, v3.h[1]; b .+8",
    "the lent register in pairs": "casp x18, x19, x4, x5, [x10]; b .+8",
    "the lent register in an atomic": "ldadd x18, x17, [x10]; swp x3, x18, [x10]; b .+8",
    "exclusive": "ldxr x1, [x10]; add x1, x1, #1; stxr w2, x1, [x10]; cbnz w2, .-12",
    "exclusive begun": "ldaxr w1, [x10]; cmp w1, w3; b.ne .+16",
    "exclusive, lent register": "ldxr x18, [x10]; add x18, x18, #1; stxr w2, x18, [x10]; cbnz w2, .-12",
    "cut": "ldr x0, [x10]; add x0, x0, x1; str x0, [x10, #8]",
    "nothing free": "ldr x0, [x10]; ldr x1, [x10, #8]; b .+8",
    "one free": "ldr x0, [x10]; mov x5, #3; b .+8",
    "stores": "stp x0, x30, [sp, #-16]!; mov x29, sp; bl .+0x100",
    "vector": "fadd v0.4s, v1.4s, v2.4s; st1 {v0.4s}, [x10], #16; ld1 {v3.2d, v4.2d}, [x10]; b .+8",
    "flags written": "subs x0, x1, x2; csel x3, x4, x5, hi; ccmp x3, #4, #2, ne; b.hi .+16",
}


def code_of(text: str, directory: Path) -> bytes:
    return encode.pack(assemble(text.split("; "), directory, "armv8.5-a+crypto"))


def start_state(seed: int = 0) -> State:
    state = State()
    if seed:
        chance = random.Random(seed)
        state.general = [chance.getrandbits(64) for _ in range(31)]
        state.vectors = [chance.getrandbits(128) for _ in range(32)]
        state.flags = chance.getrandbits(4) << 28
        state.memory = chance.randbytes(4096)
    state.general[9] = state.general[30] = ELSEWHERE
    state.general[10] = MEMORY + 64
    return state


def ends_of(code: bytes) -> tuple[int, ...]:
    block = Reader().decode(Text(PC, code), PC)
    return tuple({block.end, block.target or block.end, ELSEWHERE})


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_copy_does_what_the_block_does(name: str, seed: int, tmp_path: Path) -> None:
    """And at each boundary between the program's instructions all is the program's own."""
    code = code_of(BLOCKS[name], tmp_path)
    ends = ends_of(code)
    state = start_state(seed)
    if not Reader().decode(Text(PC, code), PC).cut:
        code += random.Random(5).randbytes(0x200)  # data, for literals
    reference = native(code, state, *ends)
    for slot, budgeted, check in (
        (SLOT, False, Check.NEVER),
        (SLOT, True, Check.ENTRY),
        (FAR_SLOT, False, Check.WRITES),
        (FAR_SLOT, True, Check.NEVER),
    ):
        copy = copied(code, state, *ends, slot=slot, budgeted=budgeted, check=check)
        assert copy.state == reference.state
        for mine, its in zip(copy.before, reference.before, strict=True):
            assert mine in (None, its)
        assert copy.count(slot) == 1
        if budgeted:
            length = len(reference.before)
            assert copy.machine.word(AREA + layout.BUDGET) == 1000 - length


EXCLUSIVES = [name for name in BLOCKS if "exclusive" in name and "lent" not in name]


@pytest.mark.parametrize("name", EXCLUSIVES)
def test_nothing_stands_within_an_exclusive_sequence(name: str, tmp_path: Path) -> None:
    code = code_of(BLOCKS[name], tmp_path)
    count = len(code) // 4 - 1  # without the branch
    assert code[: 4 * count] in bytes(emit(code, budgeted=True).code)


def test_what_follows_an_open_exclusive_sequence_is_urgent(tmp_path: Path) -> None:
    emitted = emit(code_of(BLOCKS["exclusive begun"], tmp_path))
    assert set(emitted.urgent) == {PC + 12, PC + 8 + 16}
    assert emit(code_of(BLOCKS["exclusive"], tmp_path)).urgent == ()


def test_a_store_exclusive_is_counted_behind(tmp_path: Path) -> None:
    code = code_of("mov w5, w6; stlxr w3, w4, [x10]; cbnz w3, .+8", tmp_path)
    emitted = emit(code)
    assert bytes(emitted.code[:8]) == code[:8]
    assert emitted.counted > 8


PAIR = (
    "ldxp x0, x1, [x10]; cmp x0, x4; b.ne .+20; cmp x1, x5; b.ne .+12; stxp w2, x5, x4, [x10]; cbnz w2, .-24"
)


@pytest.mark.parametrize("budgeted", [False, True])
@pytest.mark.parametrize("matching", [0, 1, 2])
def test_blocks_within_an_exclusive_sequence_are_counted_behind(
    matching: int, budgeted: bool, tmp_path: Path
) -> None:
    """A pair that does not match, in its first word, in its second, or does."""
    code = code_of(PAIR, tmp_path)
    end = PC + len(code)
    state = start_state()
    words = [int.from_bytes(state.memory[at : at + 8], "little") for at in (64, 72)]
    state.general[4] = words[0] + (matching == 0)
    state.general[5] = words[1] + (matching == 1)

    def decode(pc: int) -> SourceBlock:
        return Reader().decode(Text(PC, code), pc)

    emitter = Emitter(DATA, frozenset(), budgeted)
    text, stops, copies = chained(emitter, [decode(PC), *Reader.rest_of_sequence(decode, PC + 12)])
    assert copies[-1].within is None
    machine = Machine(code, state)
    machine.uc.mem_write(CACHE, text)
    machine.uc.mem_write(AREA + layout.BUDGET, (1000).to_bytes(8, "little"))
    machine.lend(state)
    machine.run(CACHE, *stops)
    after = machine.state()
    after.pc = stops[after.pc]
    assert after == native(code, state, end).state
    counts = [machine.word(AREA + layout.COUNTERS + 8 * slot) for slot in range(3)]
    assert counts == [1, int(matching > 0), int(matching > 1)]
    if budgeted:
        assert machine.word(AREA + layout.BUDGET) == 1000 - (3, 5, 7)[matching]


FAULTS = {
    "the lent register": "mov x18, #0; ldr x0, [x18]; b .+8",
    "the lent register stored": "mov x1, #0; str x18, [x1, #8]; b .+8",
    "a literal of the lent register": "ldr x18, .+0x80000; b .+8",
    "a vector literal": "ldr q0, .+0x80000; b .+8",
}


@pytest.mark.parametrize("name", FAULTS)
def test_registers_can_be_given_back_at_a_fault(name: str, tmp_path: Path) -> None:
    code = code_of(FAULTS[name], tmp_path)
    state = start_state()
    native_machine, machine = Machine(code, state), Machine(code, state)
    with pytest.raises(unicorn.UcError):
        native_machine.run(PC)
    emitted = emit(code)
    machine.uc.mem_write(CACHE, bytes(emitted.code))
    machine.lend(state)
    with pytest.raises(unicorn.UcError):
        machine.run(CACHE)
    at = machine.state().pc - CACHE
    assert at in emitted.borrowed
    marks = emitted.marks(Reader().decode(Text(PC, code), PC))
    index = bisect_right(marks, at) - 1
    registers = Registers()
    for number, value in enumerate(machine.state().general):
        setattr(registers, f"x{number}", value)
    words = np.frombuffer(bytes(machine.uc.mem_read(AREA, layout.COUNTERS)), np.uint64)
    machine_facts.restore_spills(registers, words, emitted.borrowed[at])
    registers.x18 = int(words[machine_facts.OWN_BASE // 8])
    reference = native_machine.state()
    assert [getattr(registers, f"x{number}") for number in range(31)] == reference.general
    assert PC + 4 * index == reference.pc


@pytest.mark.parametrize(
    ("text", "number", "stops"),
    [
        ("mov x8, #222; svc #0; nop; b .+8", 222, True),
        ("mov x8, #64; svc #0; nop; b .+8", 64, False),
        ("svc #0; nop; b .+8", 222, True),
        ("svc #0; nop; b .+8", 64, False),
        ("mov x8, #64; mov x8, x7; svc #0; nop; b .+8", 222, True),
    ],
)
def test_watched_system_calls_stop(text: str, number: int, stops: bool, tmp_path: Path) -> None:
    code = code_of(text, tmp_path)
    state = start_state()
    state.general[7] = state.general[8] = number
    emitted = emit(code)
    calls: list[int] = []
    machine = Machine(code, state)
    machine.uc.mem_write(CACHE, bytes(emitted.code) + encode.pack([encode.NOP]))
    machine.uc.mem_write(DATA + layout.WATCHED + 222, b"\1")
    machine.lend(state)
    machine.uc.hook_add(unicorn.UC_HOOK_INTR, lambda uc, what, data: (calls.append(what), uc.emu_stop()))
    machine.uc.emu_start(CACHE, CACHE + len(emitted.code))
    (what,) = calls
    at = machine.state().pc - CACHE
    if stops:
        ((stop, index, behind),) = emitted.natives
        assert at in (stop, stop + 4)  # unicorn leaves the pc on a breakpoint, or behind
        assert emitted.code[stop : stop + 4] == encode.pack([encode.BRK])
        assert code[4 * index : 4 * index + 4] == encode.pack([encode.SVC])
        assert behind == len(emitted.code) - 4
    else:
        assert bytes(emitted.code[at - 4 : at]) == encode.pack([encode.SVC])
    del what
    assert machine.state().general == state.general


def test_a_thread_behind_a_system_call_has_made_it(tmp_path: Path) -> None:
    """Though the counter comes next, where registers are dead."""
    code = code_of("mov x8, #93; nop; svc #0; mov x0, #1; mov x1, #2; b .+8", tmp_path)
    emitted = emit(code)
    behind = bytes(emitted.code).index(encode.pack([encode.SVC])) + 4
    assert emitted.counted > behind
    assert emitted.behind_syscall == {behind: 3}
    assert emitted.entered == {behind - 4: 2}


def test_a_jump_behind_a_system_call_has_a_place_of_its_own(tmp_path: Path) -> None:
    """Else a thread that exits there would be in the next block, having jumped."""
    emitted = emit(code_of("mov x8, #93; svc #0; b .-8", tmp_path))
    ((behind, index),) = emitted.behind_syscall.items()
    assert (index, behind) == (2, len(emitted.code) - 4)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_tracer_does_what_the_processor_would(name: str, tmp_path: Path) -> None:
    """With whatever of a copy it carries out: it must know a counter and its budget whole."""
    code = code_of(BLOCKS[name], tmp_path)
    words = np.zeros(layout.COUNTERS // 8 + 2 * FAR_SLOT, np.uint64)
    for slot, left in ((SLOT, 1000), (FAR_SLOT, 0)):
        emitted = emit(code, slot=slot, budgeted=True)
        machine = Machine(code, start_state())
        machine.uc.mem_write(CACHE, bytes(emitted.code))
        machine.uc.mem_write(AREA + layout.BUDGET, left.to_bytes(8, "little"))
        machine.lend(start_state())
        done = set()
        for offset in range(0, len(emitted.code), 4):
            registers = registers_of(machine)
            registers.pc = CACHE + offset
            words[:] = np.frombuffer(machine.uc.mem_read(AREA, words.nbytes), np.uint64)
            if BACKEND.roll_forward(registers, words, AREA, machine.uc.mem_read):
                done.add(offset)
                machine.uc.emu_start(CACHE + offset, 0, count=1)
                assert bytes(registers) == bytes(registers_of(machine))
                assert words.tobytes() == machine.uc.mem_read(AREA, words.nbytes)
        assert emitted.budget is not None
        stop, resume = emitted.budget
        assert set(range(emitted.tallied - 12, stop, 4)) <= done
        assert resume in done  # what was borrowed is given back


def registers_of(machine: Machine) -> Registers:
    """What ptrace would say."""
    state, registers = machine.state(), Registers()
    for number, register in enumerate(GENERAL):
        setattr(registers, f"x{number}", machine.uc.reg_read(register))
    registers.sp, registers.pc, registers.pstate = state.sp, state.pc, state.flags
    return registers
