"""AArch64 code translated by compiled code, which any machine can execute: what it makes of real libraries is
what the emitter makes of them."""

from __future__ import annotations

import random
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from tools import needed

from livepro.engines.translate.codecache.compiled_code import Made
from livepro.engines.translate.translator.aarch64.compiled import tables
from livepro.engines.translate.translator.aarch64.compiled.kernels import decoding
from livepro.engines.translate.translator.aarch64.compiler import Compiler
from livepro.engines.translate.translator.aarch64.emitter import Emitter
from livepro.engines.translate.translator.aarch64.facts import Exclusive, Kind, learn
from livepro.engines.translate.translator.aarch64.source import Reader
from livepro.engines.translate.translator.aarch64.source import Text as Source
from livepro.engines.translate.translator.compiling.tables import BYTES_OF, LENGTH, PC, START
from livepro.engines.translate.translator.emitted import Check, Countdown

LIBRARY = "/usr/aarch64-linux-gnu/lib/libc.so.6"
DATA = 1 << 20
MODULE, CACHE, ROOM = 0x5555_0000_0000, 0x5555_8000_0000, 64 << 20
FAR = 0x7FFF_0000_0000
"""A cache that no adrp reaches the module from."""


class Code(NamedTuple):
    """A module's code, with places in it that something begins at."""

    text: bytes
    begins: list[int]


def library() -> Code:
    """The C library's, with all functions that it exports."""
    with open(needed(LIBRARY, "libc6-arm64-cross"), "rb") as file:
        elf = ELFFile(file)
        executable = next(s for s in elf.iter_segments("PT_LOAD") if s["p_flags"] & 1)
        start, size = executable["p_vaddr"], executable["p_filesz"]
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        places = {s["st_value"] - start for s in symbols if s["st_info"]["type"] == "STT_FUNC"}
        return Code(executable.data().ljust(-(-size // 4096) * 4096, b"\0"), sorted(places & {*range(size)}))


@cache
def compiler() -> Compiler:
    """With the kernels, compiled for this machine."""
    made, emitter = Compiler(), Emitter(DATA, {}, Countdown.NONE)
    made.waits = False
    assert made.ready(emitter)
    return made


class Translated:
    """A module's code, translated into a cache at `base`; `read` as the translator reads it."""

    def __init__(self, code: bytes, emitter: Emitter, base: int = CACHE) -> None:
        self.code, self.emitter, self.base = code, emitter, base
        self.image = np.zeros(ROOM, np.uint8)
        text = compiler().text(MODULE, len(code))
        self.shown: list[tuple[int, int]] = []
        self.module = compiler().module(text, base, self.image, emitter, low=False)
        self.module.synchronise = lambda image, start, end: self.shown.append((start, end))
        self.made: list[Made] = []
        self.blocks = 0

    def begin(self, pc: int, eager: int, *, lands: bool = True, cell: int = 0) -> None:
        """A thread comes to an offset."""
        module = self.module
        module.begin(eager)
        while True:
            room = (*(module.ends if self.made else (16, ROOM // 2)), ROOM // 2, ROOM)
            made = module.run(pc, cell + self.blocks, room, lands=lands, likely=True)
            if made is not None:
                self.blocks += len(made.rows)
                self.made.append(made)
                module.publish()
                pc = -1
            if not module.prepare(lambda at, n: self.code[at - MODULE : at - MODULE + n]):
                return

    def compare(self, first_cell: int = 0) -> int:
        """Compare each fragment with what the emitter makes, and where its branches lead. Returns how many
        there are."""
        reader, text = Reader(), Source(MODULE, self.code)
        links = {int(field): int(target) for made in self.made for field, target in made.links}
        starts = {int(row[PC]): int(row[START]) for made in self.made for row in made.rows}
        stubs = {int(target): int(at) for made in self.made for target, at in made.stubs}
        cell = first_cell
        for row in np.concatenate([made.rows for made in self.made]).tolist():
            pc, start, size = row[PC], row[START], row[BYTES_OF]
            block = reader.decode(text, MODULE + pc)
            assert row[LENGTH] == len(block.facts)
            details = self.emitter.emit(block, self.base + start, cell, lambda _: 0, Check.NEVER)
            mine, there = bytes(details.code), self.image[start : start + size].tobytes()
            for offset, target in details.exits:
                assert links[start + offset] == target - MODULE
                mine = mine[:offset] + there[offset : offset + 4] + mine[offset + 4 :]
            assert there == mine, f"{pc:#x}"
            assert not details.natives
            assert details.within is None
            cell += 1
        for field, target in links.items():
            word = int(self.image[field : field + 4].view(np.uint32)[0])
            assert word >> 26 == 5
            leads = field + int(decoding.distance_of(word))
            assert leads == starts.get(target, stubs.get(target))
        return cell - first_cell


@pytest.mark.parametrize("countdown", [Countdown.NONE, Countdown.BUDGET])
@pytest.mark.parametrize("base", [CACHE, FAR])
def test_all_of_a_library(base: int, countdown: Countdown) -> None:
    """What follows its functions: most of its code."""
    code = library()
    translated = Translated(code.text, Emitter(DATA, {}, countdown), base)
    for pc in code.begins:
        translated.begin(pc, 1 << 20)
    assert translated.compare() > 50_000
    left = sum(len(made.left) for made in translated.made)
    assert left < translated.blocks / 20  # system calls, exclusive sequences, loops of one block


@pytest.mark.parametrize("cell", [0, 4000, 300_000])
def test_counters_near_and_far(cell: int) -> None:
    """Those in the reach of one load, and those whose address must be formed."""
    code = library()
    translated = Translated(code.text, Emitter(DATA, {}, Countdown.NONE))
    translated.begin(code.begins[len(code.begins) // 2], 300, cell=cell)
    assert translated.compare(cell) >= 300


def test_what_words_mean() -> None:
    """Random ones, and each of the library's: what is to be done with them, and the registers."""
    random.seed(1)
    words = {random.getrandbits(32) for _ in range(300_000)}
    words |= {int(word) for word in np.frombuffer(library().text, np.uint32)[::3]}
    kinds = {
        Kind.PLAIN: tables.PLAIN,
        Kind.ADDRESS: tables.ADDRESS,
        Kind.LITERAL: tables.LITERAL,
        Kind.JUMP: tables.JUMP,
        Kind.BRANCH: tables.BRANCH,
        Kind.CALL: tables.CALL,
        Kind.INDIRECT_JUMP: tables.INDIRECT_JUMP,
        Kind.INDIRECT_CALL: tables.INDIRECT_CALL,
        Kind.RETURN: tables.RETURN,
    }
    left = 0
    for word in words:
        facts, kind = learn(word), int(decoding.kind_of(word))
        if kind == tables.OTHER:
            left += facts.kind not in (Kind.INVALID, Kind.NATIVE, Kind.SYSCALL) and not facts.exclusive
            continue
        assert facts.exclusive is Exclusive.NONE
        mentions, kills = map(int, decoding.registers_of(word))
        assert mentions == facts.mentions, hex(word)
        if kind <= tables.ADDRESS and facts.kind is not Kind.LENT:  # of the others nobody asks what they kill
            assert kills == facts.kills, hex(word)
        if facts.kind is Kind.LENT:
            assert kind == tables.PLAIN, hex(word)
            continue
        assert kind == kinds[facts.kind], hex(word)
        if tables.JUMP <= kind <= tables.CALL:
            assert int(decoding.distance_of(word)) == facts.distance, hex(word)
    assert left < len(words) / 20


def test_a_loop_of_one_block_is_left_to_python() -> None:
    """It is copied several times. nop; subs x0, x0, #1; b.ne of the second; ret: the first block leads on to
    the loop."""
    words = (0xD503201F, 0xF1000400, 0x54FFFFE1, 0xD65F03C0)
    code = b"".join(word.to_bytes(4, "little") for word in words).ljust(4096, b"\0")
    translated = Translated(code, Emitter(DATA, {}, Countdown.NONE))
    translated.begin(0, 10)
    made = np.concatenate([made.rows for made in translated.made])
    left = np.concatenate([made.left for made in translated.made])
    assert (made[:, PC].tolist(), left.tolist()) == ([0, 12], [4])
