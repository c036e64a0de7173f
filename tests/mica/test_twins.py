"""The compiled analyses against their twins in plain Python."""

from __future__ import annotations

import platform
import random
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("numba", reason="numba is not installed: pip install 'livepro[events]'")
if platform.machine() != "x86_64":
    pytest.skip("written for x86-64 programs", allow_module_level=True)

from events.test_kernels import MACHINE, stream
from mica.twins import Twin, events

from livepro import isa
from livepro.engines.stream.blocks import StreamBlocks
from livepro.events.spans.crew import Crew
from livepro.events.spans.feeding import CONDITIONAL
from livepro.events.spans.flattening import Turns
from livepro.events.spans.region import Regions
from livepro.mica.builtin import BUILT_IN
from livepro.mica.facts import Facts
from livepro.mica.reading import READERS, ReadingThread, reads_alone
from livepro.mica.settings import ANALYSES, MicaDialect, Settings
from livepro.mica.thread import Characterised

CODES = tuple(
    bytes.fromhex(text)
    for text in (
        "488b07488907c3",  # mov rax, [rdi]; mov [rdi], rax; ret
        "f3a4f3aa90",  # rep movsb; rep stosb; nop
        "f3a67505",  # repe cmpsb; jne
        "62f17c492806c4e2792c0e74fe",  # vmovaps zmm0{k1}, [rsi]; vmaskmovps xmm1, xmm0, [rsi]; je
        "62f27d498b06ffe0",  # vpcompressd [rsi]{k1}, zmm0; jmp rax
        "62f27d4992048eff10",  # vpgatherdd zmm0{k1}, [rsi + zmm1 * 4]; call [rax]
        "480fc70ef0010eebfe",  # cmpxchg8b; lock add [rsi], ecx; jmp
        "0fae060fae26e8fbffffff",  # fxsave; xsave; call
        "ff30c8100001cc",  # push [rax]; enter 16, 1; int3
        "b00188c389d8f7e1e2f4",  # mov al, 1; mov bl, al; mov eax, ebx; mul ecx; loop
        "31c0d9c9660fefc00fafc17cf7",  # xor eax, eax; fxch; pxor xmm0, xmm0; imul; jl
        "488b0424c5fdefc0c4e1fb93c17fee",  # mov rax, [rsp]; vpxor ymm0; kmovq rax, k1; jg
    )
)


AARCH64 = isa.for_machine("aarch64")
AARCH64_CODES = tuple(
    b"".join(int(word, 16).to_bytes(4, "little") for word in text.split())
    for text in (
        "f9400020 f9000040 d65f03c0",  # ldr x0, [x1]; str x0, [x2]; ret
        "a9bf7bfd a8c107e0 54000041",  # stp x29, x30, [sp, #-16]!; ldp x0, x1, [sp], #16; b.ne
        "3dc00020 4e22cc20 b4000040",  # ldr q0, [x1]; fmla v0.4s, v1.4s, v2.4s; cbz x0
        "4c407000 91000400 37000040",  # ld1 {v0.16b}, [x0]; add x0, x0, #1; tbnz w0, #0
        "c85f7c20 c8027c20 d61f0060",  # ldxr x0, [x1]; stxr w2, x0, [x1]; br x3
        "f8200041 c8a07c41 94000002",  # ldadd x0, x1, [x2]; cas x0, x1, [x2]; bl
        "2b020020 9a820020 14000002",  # adds w0, w1, w2; csel x0, x1, x2, eq; b
        "2518e3e0 a540a000 54000044",  # ptrue p0.b; ld1w {z0.s}, p0/z, [x0]; b.mi
    )
)


def blocks(machine: Any = MACHINE, codes: tuple[bytes, ...] = CODES) -> StreamBlocks:
    out = StreamBlocks(machine)
    for number, code in enumerate(codes):
        block = machine.decode_block(code, 0x401000 + (0x27 if machine is MACHINE else 0x40) * number)
        assert block.code == code
        sizes = bytes(b - a for a, b in zip(block.addresses, block.addresses[1:], strict=False))
        out.block(block.address, block.code, sizes, block.flows, block.target or 0)
    return out


def measured(
    known: StreamBlocks, chunks: list[Any], asked: Settings, room: int = 1 << 15, machine: Any = MACHINE
) -> Characterised:
    spec = BUILT_IN if asked.dialect is MicaDialect.MICA else None
    # Side by side where there are more than a few events.
    facts, turns, regions = Facts(machine, known, asked.dialect, spec), Turns(room), Regions()
    thread: Any = object()
    kind = ReadingThread if reads_alone(asked) else Characterised
    out = kind(
        *(asked, facts, Crew(2, worth=64)),
        lambda taker: regions.feed(thread, taker, facts.listing, turns, CONDITIONAL, asked.interval_size),
    )
    for chunk in chunks:
        out.see(chunk.view(np.int64), known.tables())
    out.finish(known.tables())
    return out


def compare(
    known: StreamBlocks, chunks: list[Any], asked: Settings, room: int = 1 << 15, machine: Any = MACHINE
) -> None:
    """That both tell the same of a stream."""
    spec = BUILT_IN if asked.dialect is MicaDialect.MICA else None
    words = [int(word) for chunk in chunks for word in chunk]
    mica = asked.dialect is MicaDialect.MICA
    twin = Twin(machine, asked, spec).run(events(machine, known, words, mica))
    mine = measured(known, chunks, asked, room, machine)
    if asked.interval_size:
        assert [(i.instructions, i.events) for i in mine.intervals] == [t[:2] for t in twin.intervals]
        for interval, (_, _, values) in zip(mine.intervals, twin.intervals, strict=True):
            for name in asked.analyses:
                assert interval.values[name] == values[name], name
        assert all(i.instructions == asked.interval_size for i in mine.intervals[:-1])
    else:
        values = twin.values()
        for name in asked.analyses:
            assert mine.current()[name] == values[name], name
        assert mine.events == twin.count
        assert mine.instructions == twin.retired


def one(seed: int, known: StreamBlocks, room: int = 1 << 15) -> None:
    generator = random.Random(seed)
    asked = Settings(
        analyses=generator.choice((ANALYSES, ANALYSES, *((name,) for name in READERS))),
        interval_size=generator.choice((0, 0, 1, 2, 7, 50, 1000)),
        block_size=generator.choice((0, 3, 6, 9)),
        page_size=generator.choice((4, 12)),
        ilp_size=generator.choice((1, 2, 3, 10, 300)),
        dialect=generator.choice(tuple(MicaDialect)),
        ppm_initial=generator.choice((None, 0)),
    )
    chunks = [stream(known, generator.randrange(1, 25), seed + n) for n in range(generator.randrange(1, 4))]
    compare(known, chunks, asked, room)


@pytest.mark.some(5)
@pytest.mark.parametrize("dialect", list(MicaDialect))
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("size", [0, 6])
def test_equal_where_an_analysis_reads_by_itself(name: str, size: int, dialect: MicaDialect) -> None:
    """With blocks of a byte there are enough for tables to grow in the midst of it."""
    known = blocks()
    asked = Settings((name,), block_size=size, dialect=dialect)
    compare(known, [stream(known, 300, seed) for seed in range(6)], asked)


def test_footprints_by_instruction_while_their_table_grows() -> None:
    """Large areas that are saved have the table grow, between records that go on where they were."""
    known, words, turn = blocks(), [], 25
    for n in range(200):
        words += [7, 0x10000000 + n * 16384, 0x20000000 + n * 16384, 16384, 0x700000]
        for _ in range(300):
            turn += 1
            words += [0, *(base + 8 * (turn // 50) for base in (0x500000, 0x600000, 0x700000))]
    chunks = [np.array(words, np.uint64)]

    def touched(*analyses: str) -> set[tuple[int, int, int]]:
        measure: Any = measured(known, chunks, Settings(analyses, block_size=3)).analyses["memfootprint"]
        return {tuple(row) for row in measure.touched.tolist()}

    assert touched("memfootprint") == touched("memfootprint", "stride")


@pytest.mark.parametrize("dialect", list(MicaDialect))
@pytest.mark.parametrize("size", [0, 100])
def test_equal_on_a_long_random_stream(dialect: MicaDialect, size: int) -> None:
    known = blocks()
    asked = Settings(ANALYSES, interval_size=size, ilp_size=5, dialect=dialect)
    compare(known, [stream(known, 300, seed) for seed in range(5)], asked)


@pytest.mark.parametrize("dialect", list(MicaDialect))
@pytest.mark.parametrize("analyses", [ANALYSES, *((name,) for name in READERS)], ids="+".join)
def test_equal_on_streams_of_aarch64(analyses: tuple[str, ...], dialect: MicaDialect) -> None:
    known = blocks(AARCH64, AARCH64_CODES)
    for seed in range(10):
        asked = Settings(analyses, interval_size=(0, 40)[seed % 2], ilp_size=7, dialect=dialect)
        compare(known, [stream(known, 60, seed + n) for n in range(3)], asked, machine=AARCH64)


def test_equal_where_the_arrays_of_events_are_short() -> None:
    known = blocks()
    for seed in range(60):
        one(seed, known, room=8)


KNOWN = blocks() if platform.machine() == "x86_64" else None


@example(290016596)  # a thread without a single event has no instruction of any type
@given(st.integers(0, 1 << 60))
@settings(max_examples=40, deadline=None)
def test_equal_on_random_streams(seed: int) -> None:
    assert KNOWN is not None
    one(seed, KNOWN)


@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("tenth", range(10))
def test_equal_on_a_hundred_thousand_random_streams(tenth: int) -> None:
    @hypothesis.seed(tenth)  # in CI all ten would draw the same
    @given(st.integers(0, 1 << 60))
    @settings(max_examples=100, deadline=None)
    def equal(first: int) -> None:
        assert KNOWN is not None
        for n in range(100):
            short(first + n, KNOWN)

    equal()


def short(seed: int, known: StreamBlocks) -> None:
    generator = random.Random(seed)
    asked = Settings(
        analyses=generator.choice((ANALYSES, ANALYSES, *((name,) for name in READERS))),
        interval_size=generator.choice((0, 3)),
        block_size=generator.choice((0, 6)),
        ilp_size=generator.choice((1, 2, 3)),
        dialect=generator.choice(tuple(MicaDialect)),
    )
    compare(known, [stream(known, 4, seed)], asked, room=64)
