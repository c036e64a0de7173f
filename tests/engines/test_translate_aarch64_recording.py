"""What the AArch64 emitter makes to record the event stream: executed beside the original on an emulated
processor, whose registers say what is to be recorded."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import pytest
import unicorn
from engines.aarch64_machine import (
    AREA,
    CACHE,
    CHUNK,
    DATA,
    FAR_SLOT,
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
from engines.test_translate_aarch64 import BLOCKS, code_of, ends_of, start_state

from livepro import isa
from livepro.engines.stream.blocks import StreamBlocks
from livepro.engines.translate import layout
from livepro.engines.translate.translator.aarch64 import encode
from livepro.engines.translate.translator.aarch64.emitter import Emitter
from livepro.engines.translate.translator.aarch64.events.effects import SP, effects_of
from livepro.engines.translate.translator.aarch64.facts import Kind, learn
from livepro.engines.translate.translator.aarch64.source import Reader, Text
from livepro.engines.translate.translator.emitted import Check
from livepro.isa.access import ALL_64

AARCH64 = isa.for_machine("aarch64")

ADDRESSES = {
    "a base that has moved": "ldr x1, [x10, #8]!; ldr x2, [x10], #-16; add x10, x10, #24; str x3, [x10]",
    "a base that is loaded": "str x10, [x10, #32]; ldr x1, [x10, #32]; ldr x2, [x1, #8]; ldrb w3, [x1, #1]!",
    "the stack": "sub sp, sp, #64; stp x29, x30, [sp, #-16]!; mov x29, sp; str q3, [x29, #32]; "
    "ldp x29, x30, [sp], #16; ldr x4, [sp, #8]; add sp, sp, #64",
    "the stack elsewhere": "mov x3, sp; sub x3, x3, #256; mov sp, x3; str x4, [sp, #16]",
    "the stack aligned": "mov x12, #32; and x5, x10, #-64; mov sp, x5; ldr x6, [sp]; "
    "sub sp, sp, x12, uxtw; ldr x7, [sp]",
    "indices": "mov x12, #3; ldr x1, [x10, x12, lsl #3]; ldr w2, [x10, w12, uxtw #2]; add x12, x12, #1; "
    "ldrb w3, [x10, x12]; str q4, [x10, x12, lsl #4]",
    "negative indices": "mov x12, #-3; ldr x1, [x10, x12, lsl #3]; ldr w2, [x10, w12, sxtw #2]; "
    "sub x12, x12, #1; ldrb w3, [x10, x12, sxtx]; ldrh w4, [x10, w12, sxtw]",
    "an index that is nothing": "ldr x1, [x10, xzr]; str x1, [x10, wzr, uxtw]",
    "an index of 32 bits that has moved": "mov x12, #-1; add x12, x12, #9; ldr x1, [x10, w12, uxtw]",
    "pairs": "ldp w1, w2, [x10, #-8]; ldpsw x3, x4, [x10]; ldp q0, q1, [x10], #32; stnp x5, x6, [x10]",
    "a pair over its base": "str x10, [x10]; ldp x10, x3, [x10]; ldr x4, [x10]",
    "structures": "ld1 {v1.16b, v2.16b}, [x10], #32; st2 {v3.8b, v4.8b}, [x10], x12; ld1r {v5.4s}, [x9]",
    "a block is cleared": "add x3, x10, #70; dc zva, x3; dc zva, x10",
    "atomics": "ldadd x3, x4, [x10]; swp w5, w6, [x10]; cas x7, x8, [x10]; ldar x11, [x10]; stlr w3, [x10]",
    "atomics over their base": "str x10, [x10]; swp x3, x10, [x10]; ldr x4, [x10]",
    "the lent register": "mov x18, x10; ldr x1, [x18, #8]!; mov x12, #8; ldr x2, [x18, x12]; "
    "mov x18, #2; ldr x3, [x10, x18, lsl #3]; ldr w4, [x10, w18, sxtw #2]",
    "the lent register twice": "lsr x3, x10, #1; mov x18, x3; ldr x4, [x18, x18]; ldr x18, [x10]",
    "far": "ldr x1, [x10, #32]; ldr q2, [x10, #16]; add x10, x10, #1, lsl #12; sub x10, x10, #1, lsl #12; "
    "ldr x3, [x10, #4088]; ldurb w4, [x10, #-64]",
    "as many registers as there are": "; ".join(
        [f"mov x{n}, x10" for n in (*range(9), *range(11, 18), *range(19, 31))]
        + [f"ldrb w9, [x{n}, #{n}]" for n in (*range(9), *range(11, 18), *range(19, 31))]
    ),
    "a word far from the record's end": "mov x13, x10; "
    + "; ".join(f"mov x10, x13; ldr x12, [x10, #{8 * n}]" for n in range(60)),
    "a call from the kernel": "ldr x1, [x10]; mov x8, #172; nop",
}

SEQUENCES = {
    "within one block": "ldxr x1, [x10]; add x1, x1, #1; stxr w2, x1, [x10]; cbnz w2, .-12",
    "the store in a second block": "ldaxr w1, [x10]; cbnz w3, .+12; mov w4, w5; stlxr w2, w4, [x10]; b .+4",
    "a load before the store": "ldxr x1, [x10]; cbnz x3, .+20; ldr x4, [x10, #8]; stxr w2, x4, [x10]; "
    "ldr x6, [x10, x2]; b .+4",
    "in a third block": "ldxr x1, [x10]; cbnz x3, .+20; cbnz x3, .+16; add x10, x10, #8; "
    "sub x10, x10, #8; stxr w2, x4, [x10]; b .+4",
    "with the lent register": "ldxr x1, [x10]; cbnz x3, .+16; mov x18, x10; stxr w2, x4, [x18]; b .+4",
    "nothing is stored": "ldxr x1, [x10]; cbnz x3, .+16; clrex; ldr x2, [x10]; b .+4",
}


def expected(states: list[State], blocks: StreamBlocks, number: int = 0) -> list[int]:
    """The words of a record, by what the registers were before each instruction."""
    words = [number]
    for state, accesses in zip(states, blocks.blocks[number].accesses, strict=True):
        general = SimpleNamespace(
            sp=state.sp, **{f"x{number}": value for number, value in enumerate(state.general)}
        )
        for access in accesses:
            words += AARCH64.access_words(access, SimpleNamespace(general=general))
    return words


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", [*ADDRESSES, *BLOCKS])
def test_what_is_recorded_is_what_is_accessed(name: str, seed: int, tmp_path: Path) -> None:
    """And all else is as it is without."""
    text = ADDRESSES.get(name, BLOCKS.get(name, ""))
    code = code_of(text, tmp_path)
    ends = ends_of(code)
    state = start_state(seed)
    if name in ADDRESSES:
        state.general[9] = MEMORY + 128
    if not Reader().decode(Text(PC, code), PC).cut:
        code += random.Random(5).randbytes(0x200)  # data, for literals
    reference = native(code, state, *ends)
    for slot, budgeted, check in (
        (SLOT, False, Check.NEVER),
        (SLOT, True, Check.ENTRY),
        (FAR_SLOT, False, Check.WRITES),
        (FAR_SLOT, True, Check.NEVER),
    ):
        blocks = StreamBlocks(AARCH64)
        copy = copied(code, state, *ends, slot=slot, budgeted=budgeted, check=check, blocks=blocks)
        assert copy.state == reference.state
        for mine, its in zip(copy.before, reference.before, strict=True):
            assert mine in (None, its)
        assert copy.count(slot) == 1
        assert copy.record() == expected(reference.before, blocks)
        if budgeted:
            assert copy.machine.word(AREA + layout.BUDGET) == 1000 - len(reference.before)


@pytest.mark.parametrize("budgeted", [False, True])
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("name", SEQUENCES)
def test_exclusive_sequences_are_recorded(name: str, out: bool, budgeted: bool, tmp_path: Path) -> None:
    """Blocks in order, whether or not the first one branches `out` of the sequence; and nothing is stored
    before the store-exclusive where that can be."""
    code = code_of(SEQUENCES[name], tmp_path)
    state = start_state()
    state.general[3] = int(out and "x3" in SEQUENCES[name])
    chain, pc = [], PC
    reference = []
    machine = Machine(code, state)
    while True:
        block = Reader().decode(Text(PC, code), pc)
        seen: dict[int, list[State]] = {pc + offset: [] for offset in block.offsets[:-1]}
        ends = {block.end, block.target or block.end}
        machine.run(pc, *ends, seen=seen)
        chain.append(block)
        reference.append([states[0] for states in seen.values()])
        pc = machine.state().pc
        if pc != block.end or pc == PC + len(code):
            break
    blocks = StreamBlocks(AARCH64)
    emitter = Emitter(DATA, frozenset(), budgeted)
    emitter.record(blocks, None)
    text, stops, copies = chained(emitter, chain)
    if name.startswith("the store") and len(chain) > 1:
        assert chain[1].code[:8] in bytes(copies[1].code)
    copy = Machine(code, state)
    copy.uc.mem_write(CACHE, text)
    copy.uc.mem_write(AREA + layout.BUDGET, (1000).to_bytes(8, "little"))
    copy.uc.mem_write(AREA + layout.RECORD, CHUNK.to_bytes(8, "little"))
    copy.lend(state)
    copy.run(CACHE, *stops)
    after = copy.state()
    after.pc = stops[after.pc] or 0
    assert after == machine.state()
    words = [word for number, states in enumerate(reference) for word in expected(states, blocks, number)]
    end = copy.word(AREA + layout.RECORD)
    assert [copy.word(AREA + at) for at in range(CHUNK, end, 8)] == words
    assert [copy.word(AREA + layout.COUNTERS + 8 * slot) for slot in range(len(chain))] == [1] * len(chain)
    if budgeted:
        assert copy.word(AREA + layout.BUDGET) == 1000 - sum(map(len, reference))


@pytest.mark.parametrize("behind", [0, 1])
def test_a_full_chunk_stops(behind: int, tmp_path: Path) -> None:
    """When the next record would begin behind the chunk, whose record has been begun."""
    blocks = StreamBlocks(AARCH64)
    code = code_of("ldr x1, [x10]; ldr x2, [x10]; b .+8", tmp_path)
    emitted = emit(code, blocks=blocks)
    assert emitted.full is not None
    stop, resume = emitted.full
    assert emitted.code[stop:resume] == encode.pack([encode.BRK])
    assert emitted.recorded <= stop < emitted.tallied
    machine = Machine(code, start_state())
    machine.uc.mem_write(CACHE, bytes(emitted.code) + encode.pack([encode.NOP]))
    at = layout.RECORDS_END - 8 * (3 + 1 - behind)
    machine.uc.mem_write(AREA + layout.RECORD, at.to_bytes(8, "little"))
    machine.lend(start_state())
    machine.run(CACHE, CACHE + stop, CACHE + len(emitted.code))
    assert machine.state().pc == CACHE + (stop if behind else len(emitted.code))
    assert [machine.word(AREA + at + 8 * n) for n in range(3)] == [0, MEMORY + 64, MEMORY + 64]


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(8))
def test_effects_are_at_least_those_that_there_are(seed: int) -> None:
    """Of random instructions, by what a processor does with them: no register changes of which it is not
    said, and one that is said to move does by so much."""
    chance = random.Random(seed)
    executed = 0
    while executed < 400:
        word = chance.choice(_SPACES)(chance)
        facts = learn(word)
        if facts.kind not in (Kind.PLAIN, Kind.LENT, Kind.ADDRESS):
            continue
        state = start_state(1)
        state.general = [MEMORY + 0x800 + 16 * chance.randrange(16) for _ in range(31)]
        state.sp = MEMORY + 0xA00
        machine = Machine(word.to_bytes(4, "little"), state)
        try:
            machine.run(PC, PC + 4)
        except unicorn.UcError:
            continue
        executed += 1
        after, effects = machine.state(), effects_of(facts)
        was, now = [*state.general, state.sp], [*after.general, after.sp]
        for register in range(SP + 1):
            by = effects.by if register == effects.moved else 0
            if not effects.written >> register & 1:
                assert now[register] - was[register] & ALL_64 == by & ALL_64, f"{word:08x}"


def _memory(chance: random.Random) -> int:
    return chance.getrandbits(32) & ~0x0A000000 | 0x08000000


def _immediate(chance: random.Random) -> int:
    return chance.getrandbits(32) & ~0x1C000000 | 0x10000000


def _register(chance: random.Random) -> int:
    return chance.getrandbits(32) & ~0x0E000000 | 0x0A000000


_SPACES = (_memory, _memory, _immediate, _register)
"""Loads and stores, operations with immediates and with registers. (Some vector instructions are too much for
the emulated processor.)"""
