"""Code is read in pieces, and what may change is read anew when it is looked at again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from livepro.engines.translate import backend_for
from livepro.engines.translate.translator.text import ProgramText
from livepro.linux.proc import AddressSpace, Mapping

STABLE, CHANGING = 0x10_0000, 0x80_0000
SIZE = 0x10_0000
MOV_1, MOV_2 = b"\xb8\x01\0\0\0\xc3", b"\xb8\x02\0\0\0\xc3"  # mov eax, n; ret


def mapping(start: int, *, writable: bool) -> Mapping:
    inode, path = (0, "") if writable else (7, "/bin/program")
    return Mapping(start, start + SIZE, True, writable, True, False, 0, inode, path)


class Memory:
    """Two mappings, of a file and of generated code, and how often they are read."""

    def __init__(self) -> None:
        self.bytes = {STABLE: bytearray(MOV_1 * (SIZE // 6)), CHANGING: bytearray(MOV_1 * (SIZE // 6))}
        self.reads: list[tuple[int, int]] = []

    def read(self, address: int, size: int) -> bytes:
        self.reads.append((address, size))
        start = STABLE if address < CHANGING else CHANGING
        return bytes(self.bytes[start][address - start : address - start + size])


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def text(memory: Memory) -> ProgramText:
    space = AddressSpace([mapping(STABLE, writable=False), mapping(CHANGING, writable=True)])
    process: Any = SimpleNamespace(space=space, memory=memory)
    backend = backend_for("x86_64")
    return ProgramText(process, backend, backend.reader())


def code(text: ProgramText, pc: int) -> bytes:
    source = text.decode(pc)
    assert source is not None
    return source.code


def test_a_file_s_code_is_read_once(text: ProgramText, memory: Memory) -> None:
    """To and fro between places far from each other, as calls between modules go."""
    places = [STABLE + 6 * n for n in (0, 1, 100, 50_000, 120_000)]
    for _ in range(3):
        for place in places:
            assert code(text, place) == MOV_1
        text.look_again()
    windows = {place >> 16 for place in places}
    assert len(memory.reads) == len(windows)
    text.forget()
    assert code(text, places[0]) == MOV_1
    assert len(memory.reads) == len(windows) + 1


def test_generated_code_is_read_anew_when_looked_at_again(text: ProgramText, memory: Memory) -> None:
    here = CHANGING + 600
    assert code(text, here) == MOV_1
    assert code(text, here - 60) == MOV_1
    assert code(text, here + 60) == MOV_1
    assert len(memory.reads) == 1
    memory.bytes[CHANGING][600:606] = MOV_2
    text.look_again()
    assert code(text, here) == MOV_2
    assert len(memory.reads) == 2
    assert code(text, STABLE) == MOV_1  # a call elsewhere
    assert code(text, here) == MOV_2
    assert len(memory.reads) == 3


def test_the_end_of_what_is_there(text: ProgramText, memory: Memory) -> None:
    """The mapping goes on behind the end of its file, where nothing can be read."""
    del memory.bytes[CHANGING][700:]
    assert text.decode(CHANGING + 800) is None
    assert code(text, CHANGING + 600) == MOV_1
    assert text.decode(CHANGING + SIZE) is None
