"""Cutting files into basic blocks: by hand, and against an independent split."""

from __future__ import annotations

from pathlib import Path

import pytest
from blocks.objdump_split import Referee, symbols
from blocks.samples import CROSS, FREESTANDING, build, cross_gcc, tool

from livepro import isa
from livepro.blocks.code import SYMBOL, open_code
from livepro.blocks.fde import _by_entries, _by_table, fde_ranges
from livepro.blocks.split import split
from livepro.blocks.static import chosen, file_rows
from livepro.errors import LiveproError

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


@pytest.fixture(scope="module")
def static_aarch64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that brings all of glibc's start, and stdio, along."""
    source = '#include <stdio.h>\nint main(void) { return printf("%f\\n", 1.5) < 0; }\n'
    into = tmp_path_factory.mktemp("static")
    return build(into, source, "-O2", "-static", compiler=cross_gcc(), suffix=".c")


def equal_to_objdump(path: Path, prefix: str = "") -> int:
    """Compare every symbol's split; return the blocks that there are."""
    tool(f"{prefix}objdump", f"binutils{'-aarch64-linux-gnu' if prefix else ''}")
    referee = Referee(path, prefix, arm=bool(prefix))
    file = open_code(str(path))
    found = {(f.start, f.end - f.start) for f in file.functions}
    assert [name for place, name in symbols(path, f"{prefix}readelf").items() if place not in found] == []
    blocks = 0
    differ = []
    for function in file.functions:
        if function.source != SYMBOL:
            continue
        own = [(block.start, block.end) for block in file.split(function).blocks]
        blocks += len(own)
        if own != referee.split(function.start, function.end):
            differ.append(function.name)
    assert differ == []
    return blocks


@pytest.mark.parametrize(("name", "least"), [("libc.so.6", 80_000), ("libcrypto.so.3", 50_000)])
def test_every_symbol_of_a_library_is_split_as_objdump_tells(name: str, least: int) -> None:
    path = LIBRARIES / name
    if not path.exists():
        pytest.skip(f"no {path} on this machine")
    assert equal_to_objdump(path) > least


def test_every_symbol_of_a_static_aarch64_program_is_split_as_objdump_tells(static_aarch64: Path) -> None:
    assert equal_to_objdump(static_aarch64, CROSS) > 20_000


def test_flow_and_jump_sites_cut() -> None:
    code = bytes.fromhex(
        "31c0"  # 0: xor eax, eax
        "ffc0"  # 2: inc eax           <- jump site
        "0f05"  # 4: syscall           (goes on)
        "83f80a"  # 6: cmp eax, 10
        "75f7"  # 9: jne 2
        "e8f0ffffff"  # b: call 0        (calls end blocks; their targets are no jump sites)
        "c3"  # 10: ret
    )
    found = split(isa.for_machine("x86_64"), [(0x1000, code)], (0x1000, 0x1011))
    assert [(b.start - 0x1000, b.end - 0x1000, b.length) for b in found.blocks] == [
        (0, 2, 1),
        (2, 0xB, 4),
        (0xB, 0x10, 1),
        (0x10, 0x11, 1),
    ]
    assert found.find(0x1009) == found.blocks[1]
    assert found.find(0x1011) is None


def test_jump_over_a_prefix_and_undecodable_bytes_are_told() -> None:
    code = bytes.fromhex("7401f0480fb10f0690")  # je past lock; lock cmpxchg; (bad); nop
    found = split(isa.for_machine("x86_64"), [(0, code)], (0, len(code)))
    assert [(b.start, b.end) for b in found.blocks] == [(0, 2), (2, 7), (8, 9)]
    assert (found.astray, found.undecodable) == (1, 1)


def test_a_block_longer_than_the_window_is_one() -> None:
    code = b"\x90" * 10_000 + b"\xc3"
    found = split(isa.for_machine("x86_64"), [(0, code)], (0, len(code)))
    assert [(b.start, b.end, b.length) for b in found.blocks] == [(0, 10_001, 10_001)]


def test_data_in_the_text_of_aarch64(tmp_path: Path) -> None:
    source = """
        .globl _start
        .type _start, %function
    _start: ldr x0, table
        b 1f
    table: .quad 0xd65f03c0d65f03c0
    1:  ret
        .size _start, . - _start
    """
    file = open_code(str(build(tmp_path, source, *FREESTANDING, compiler=cross_gcc())))
    (start,) = chosen(file, ["_start"])
    blocks = file.split(start).blocks
    assert [(b.start - start.start, b.length) for b in blocks] == [(0, 2), (16, 1)]
    assert file.notes().data == 8


X86 = """
    .text
    .globl _start, other, inner, bare
    .type _start, @function
    .type other, @function
    .type inner, @function
_start:
other:
    xor %eax, %eax
    jmp 1f
inner:
    nop
1:  ret
    .size inner, . - inner
    .size _start, . - _start
    .size other, . - other
bare:
    nop
    nop
    jmp bare
    .type numbers, @object
numbers: .quad 1
    .size numbers, 8
"""


def test_aliases_nested_functions_labels_and_objects(tmp_path: Path) -> None:
    file = open_code(str(build(tmp_path, X86, *FREESTANDING)))
    functions = {f.name: (f.start, f.end - f.start) for f in file.functions}
    begin = functions["other"][0] if "other" in functions else functions["_start"][0]
    assert {n: (s - begin, size) for n, (s, size) in functions.items()} == {
        "other": (0, 6),
        "inner": (4, 2),
        "bare": (6, 12),
    }
    assert chosen(file, ["_start"]) == chosen(file, ["other"])
    rows = [(r.name, r.length) for r in file_rows(file, file.functions)]
    # The jump into `inner` is a jump site of `other` alone: each symbol is cut by its own.
    assert rows == [("other+0x0", 2), ("other+0x4", 1), ("inner+0x0", 2), ("other+0x5", 1), ("bare+0x0", 3)]
    notes = file.notes()
    assert (notes.aliases, notes.overlapping, notes.data) == (1, 1, 8)


def test_stripped_files_have_functions_by_their_unwind_information(tmp_path: Path) -> None:
    source = """
    int deep(int n) { return n < 2 ? 1 : deep(n - 1) * n; }
    int main(int argc, char **argv) { return deep(argc); }
    """
    program = build(tmp_path, source, "-O1", "-fno-inline", suffix=".c")
    symbols = {(f.start, f.end) for f in open_code(str(program)).functions if f.name in ("deep", "main")}
    stripped = build(tmp_path, source, "-O1", "-fno-inline", "-s", suffix=".c")
    file = open_code(str(stripped))
    unnamed = {(f.start, f.end) for f in file.functions if f.name.startswith("sub_")}
    assert len(symbols) == 2
    assert symbols <= unnamed
    assert file.notes().unnamed == len(unnamed)


@pytest.mark.parametrize("path", ["/usr/bin/gzip", "libc", "aarch64"])
def test_unwind_tables_read_at_once_are_those_read_one_by_one(path: str) -> None:
    if path == "aarch64":
        cross_gcc()
    known = {"libc": LIBRARIES / "libc.so.6", "aarch64": Path("/usr/aarch64-linux-gnu/lib/libc.so.6")}
    file = open_code(str(known.get(path, path)))
    image = file.image
    frames, header = image.section(".eh_frame"), image.section(".eh_frame_hdr")
    assert frames is not None
    assert header is not None
    fast = _by_table(image.contents(frames), frames.address, image.contents(header), header.address)
    assert fast is not None
    slow = _by_entries(image)
    assert sorted(set(map(tuple, fast.tolist()))) == sorted(map(tuple, slow.tolist()))
    assert len(fde_ranges(image)) == len(fast) > 100


def test_plt_entries_are_functions() -> None:
    file = open_code("/usr/bin/gzip")
    assert any(f.name.endswith("@plt") and f.source == "plt" for f in file.functions)


def test_what_cannot_be_split_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "cut").write_bytes(Path("/usr/bin/gzip").read_bytes()[:100])
    relocatable = build(tmp_path, "nop", "-c")
    cases = [
        ("text", "no ELF file"),
        ("script", "script for /bin/sh"),
        ("missing", "cannot be read"),
        (".", "no regular file"),
        ("cut", "damaged"),
        (str(relocatable), "relocatable"),
    ]
    for name, words in cases:
        with pytest.raises(LiveproError, match=words):
            open_code(str(tmp_path / name))


def test_a_file_without_any_functions_and_a_wrong_name(tmp_path: Path) -> None:
    bare = open_code(str(build(tmp_path, "ret", *FREESTANDING, "-s", "-Wl,-e0")))
    with pytest.raises(LiveproError, match="neither symbols nor unwind information"):
        chosen(bare, [])
    gzip = open_code("/usr/bin/gzip")
    name = gzip.functions[0].name
    with pytest.raises(LiveproError, match=f"Did you mean .*{name}"):
        chosen(gzip, [name[:-1]])
