"""Where breakpoints stand, what code reads like without them, and what a stop tells of a run."""

from __future__ import annotations

from typing import Any

import pytest

from livepro.engines.block.plan import Node, Plan, apart
from livepro.engines.block.text import PlaceSet, Text
from livepro.isa import for_machine
from livepro.isa.base import Breakpoint, CodeBlock

X86 = for_machine("x86_64")
LONG = Breakpoint(b"\xaa\xbb\xcc\xdd", 0, 1)


class FakeMemory:
    """Bytes from address `start` on."""

    def __init__(self, content: bytes, start: int = 0x1000) -> None:
        self.content = bytearray(content)
        self.start = start

    def read(self, address: int, size: int) -> bytes:
        at = address - self.start
        return bytes(self.content[max(at, 0) : at + size]) if at + size > 0 else b""

    def write(self, address: int, data: bytes) -> None:
        at = address - self.start
        if not 0 <= at <= len(self.content) - len(data):
            raise OSError(address)
        self.content[at : at + len(data)] = data


def carry(registers: object, memory: object) -> bool:
    return True


def block(code: str, address: int) -> CodeBlock:
    return X86.decode_block(bytes.fromhex(code), address)


def node(text: Text, code: str, address: int) -> Node:
    """A runnable block."""
    decoded = block(code, address)
    last = decoded.addresses[-2]
    return Node(decoded, True, text.site(last, decoded.code[last - address :], carry))


class Unreadable(FakeMemory):
    """Memory that cannot be read."""

    def read(self, address: int, size: int) -> bytes:
        return b""


class Interrupted(FakeMemory):
    """Memory whose first write is made, and reported as failed."""

    failed = False

    def write(self, address: int, data: bytes) -> None:
        super().write(address, data)
        if not self.failed:
            self.failed = True
            raise OSError(address)


@pytest.mark.parametrize("breakpoint", [X86.breakpoint, LONG], ids=["one byte", "four bytes"])
def test_nothing_is_left_of_a_breakpoint_that_could_not_be_planted(breakpoint: Breakpoint) -> None:
    """Whoever plants it takes it for not there, so that nobody would ever lift it."""
    memory: Any = Interrupted(bytes(range(16)))
    text = Text(breakpoint)
    site = text.site(0x1004, bytes(range(4, 8)), carry)
    with pytest.raises(OSError, match="4100"):
        text.plant(site, memory)
    assert not site.planted
    assert bytes(memory.content) == bytes(range(16))
    text.plant(site, memory)
    assert site.planted
    assert bytes(memory.content) != bytes(range(16))


def test_a_place_set_crosses_pages() -> None:
    places = PlaceSet()
    places.add(0x1FFE, 0b1011)  # 1ffe, 1fff, 2001
    assert list(places.among(0x1000, (1 << 0x2000) - 1)) == [0x1FFE, 0x1FFF, 0x2001]
    assert list(places.among(0x1FFF, 0b110)) == [0x2001]
    places.discard(0x1FFF)
    assert list(places.among(0x1FFE, 0b1111)) == [0x1FFE, 0x2001]
    places.discard_pages(0x2000, 0x2001)
    assert list(places.among(0x1FFE, 0b1111)) == [0x1FFE]


@pytest.mark.parametrize("breakpoint", [X86.breakpoint, LONG], ids=["one byte", "four bytes"])
def test_reading_sees_the_original_code(breakpoint: Breakpoint) -> None:
    original = bytes(range(64))
    memory, text = FakeMemory(original), Text(breakpoint)
    sites = [text.site(0x1000 + at, original[at : at + 8], carry) for at in (0, 20, 60)]
    for site in sites:
        text.plant(site, memory)
    assert memory.content != original
    for start in range(64):
        for size in (1, 3, 5, 64):
            assert text.read(memory, 0x1000 + start, size) == original[start : start + size]
    text.lift(sites[1], memory)
    assert bytes(memory.content[20:24]) == original[20:24]
    text.lift(sites[1], memory)  # already lifted: nothing to write
    text.restore(memory)
    assert memory.content == original


def test_sites_inside_other_instructions_are_found_either_way_round() -> None:
    text = Text(X86.breakpoint)
    # mov edx, 0x90900074; ret -- a byte further: jz +0
    inner = text.site(0x1001, b"\x74\x00", carry)
    assert not inner.barred
    assert text.occupy(block("ba74009090c3", 0x1000).addresses) == [inner]
    assert text.occupy(block("ba74009090c3", 0x2000).addresses) == []
    assert text.site(0x2001, b"\x74\x00", carry).barred
    assert not text.site(0x2005, b"\xc3", carry).barred


def test_a_child_inherits_what_its_memory_shows() -> None:
    original = b"\xc3" * 16
    memory, text = FakeMemory(original), Text(X86.breakpoint)
    first, second, third = (text.site(0x1000 + at, b"\xc3", carry) for at in (1, 2, 3))
    text.plant(first, memory)
    third.barred = True
    copy = FakeMemory(bytes(memory.content))
    text.plant(second, memory)  # behind the fork
    child = text.inherited(copy)
    assert [child.sites[0x1000 + at].planted for at in (1, 2, 3)] == [True, False, False]
    assert [child.sites[0x1000 + at].barred for at in (1, 2, 3)] == [False, False, True]
    text.restore(copy)
    assert copy.content == original
    assert memory.content != original


def test_a_closed_text_takes_no_breakpoints() -> None:
    text = Text(X86.breakpoint)
    text.closed = True
    assert text.site(0x1000, b"\xc3", carry).barred
    assert text.inherited(FakeMemory(b"")).closed


def test_plans_hold_under_one_version() -> None:
    text = Text(X86.breakpoint)
    seen = {text.version}
    for _ in range(3):
        text.suspend()
        assert text.version == -1
        text.renew()
        assert text.version not in seen
        seen.add(text.version)


def test_a_plan_tells_blocks_by_the_stop() -> None:
    text = Text(X86.breakpoint)
    nodes = [node(text, "90e90a000000", 0x1000), node(text, "9090c3", 0x1010)]
    plan = Plan(nodes, 1)
    assert {pc: path.nodes for pc, path in plan.ends.items()} == {0x1002: (nodes[0],), 0x1013: tuple(nodes)}
    assert plan.stop is nodes[1].site
    assert [plan.locate(pc) for pc in (0x1000, 0x1001, 0x1002, 0x1006, 0x1010, 0x1012, 0x1013)] == [
        *((0, 0), (0, 1), None, None),
        *((1, 0), (1, 2), None),
    ]
    assert apart(nodes[1], nodes[:1])
    assert not apart(node(text, "0000c3", 0x100F), [nodes[1]])


@pytest.mark.parametrize(
    ("code", "tail"),
    [
        ("90c3", 0),
        ("b8270000000f05c3", 2),  # mov, syscall
        ("f3aa90f3aac3", 3),  # rep stosb, nop, rep stosb
        ("9cc3", 0),  # pushf: run, there is no trap flag to hide
        ("8ed090c3", 1),  # mov ss, eax
    ],
)
def test_a_block_is_run_from_its_last_special_instruction_on(code: str, tail: int) -> None:
    assert node(Text(X86.breakpoint), code, 0x1000).tail == tail


def test_a_block_without_a_site_is_stepped() -> None:
    decoded = block("900f0b", 0x1000)
    assert Node(decoded, True, None).tail == len(decoded)
    assert not Node(decoded, True, None).runnable


@pytest.mark.parametrize("give_back", [Text.lift_all, Text.restore])
def test_breakpoints_go_though_memory_cannot_be_read(give_back: Any) -> None:
    """Then each original is written by itself; one in memory that is no longer mapped is none to be told."""
    text, code = Text(X86.breakpoint), bytes(range(32))
    memory = Unreadable(code)
    for at in (3, 7, 20):
        text.plant(text.site(0x1000 + at, code[at : at + 1], carry), memory)
    assert memory.content != code
    gone = text.site(0x9000, b"\x90", carry)
    gone.planted = give_back is Text.restore
    give_back(text, memory)
    assert memory.content == code


def test_breakpoints_that_could_not_be_lifted_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    text, memory = Text(X86.breakpoint), FakeMemory(bytes(8))
    site = text.site(0x1004, b"\0", carry)
    text.plant(site, memory)

    def refused(address: int, data: bytes) -> None:
        raise OSError(address)

    with monkeypatch.context() as patch:
        patch.setattr(memory, "write", refused)
        with pytest.raises(OSError, match="4100"):
            text.lift_all(memory)
        with pytest.raises(OSError, match="4100"):
            text.restore(memory)
    assert site.planted
    text.restore(memory)
    assert memory.content == bytes(8)
