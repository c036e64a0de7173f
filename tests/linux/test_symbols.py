"""Function names of addresses, against binutils and by hand."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import compile_sample, names_at, nm, offsets_of, run

from livepro.linux.proc import address_space
from livepro.linux.symbols import Symbolizer

LIBRARY = """
__attribute__((noinline)) static int hidden(int x) { return x * 3 + 1; }
int shown(int x) { return hidden(x) + hidden(x + 1); }
extern int shown_too(int) __attribute__((weak, alias("shown")));
extern int __shown_internal(int) __attribute__((alias("shown")));
int data = 5;
"""

LABELS = """
    .globl _start
    .text
_start:
    mov $3, %ecx
again:
    dec %ecx
    jnz again
    .globl sized
    .type sized, @function
sized:
    nop
inner:
    nop
    .size sized, . - sized
behind:
    mov $60, %eax
    syscall
    .section .text.second, "ax"
second:
    nop
    .data
number:
    .quad 0
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    return compile_sample(folder, "lib.c", LIBRARY, "-O1", "-shared", "-fPIC", "-Wl,--build-id")


@pytest.fixture(scope="module")
def stripped(library: Path) -> Path:
    out = library.with_name("stripped")
    run("strip", "-o", out, library)
    return out


def addresses(library: Path) -> dict[str, int]:
    return {name: value for value, _, _, name in nm(library)}


def test_every_symbol_of_a_real_library() -> None:
    """Each function of the Python library (or program): first and last byte, and the first byte behind."""
    path = Path(sys.executable).resolve()
    (shared,) = {m.path for m in address_space(os.getpid()).mappings if "libpython3" in m.path} or {str(path)}
    path = Path(shared)
    flags = () if nm(path) else ("-D",)
    functions = [s for s in nm(path, *flags) if s[2] in "TtWwi" and s[1] and s[0]]
    assert len(functions) > 1000
    ranges: dict[tuple[int, int], set[str]] = {}
    for value, size, _, name in functions:
        ranges.setdefault((value, value + size), set()).add(name)
    bounds = sorted(ranges)
    places = sorted({p for start, end in bounds for p in (start, end - 1)})
    starts = np.array([start for start, _ in bounds])
    for place, got in zip(places, names_at(path, places), strict=True):
        near = bounds[max(np.searchsorted(starts, place, "right") - 50, 0) :][:50]
        holding = [b for b in near if b[0] <= place < b[1]]
        innermost = max(holding, key=lambda b: (b[0], -b[1]))
        assert got in ranges[innermost], hex(place)


def test_functions_as_objdump_heads_them(library: Path) -> None:
    listing = run("objdump", "-d", "-j", ".text", library)
    heads = [(int(a, 16), name) for a, name in re.findall(r"^([0-9a-f]+) <(\S+)>:", listing, re.MULTILINE)]
    assert [name for _, name in heads if "hidden" in name] == ["hidden"]
    for (_, expected), got in zip(heads, names_at(library, [a for a, _ in heads]), strict=True):
        assert got == ("shown" if "shown" in expected else expected)


def test_every_instruction_of_a_function(library: Path) -> None:
    value, size = next((v, s) for v, s, _, name in nm(library) if name == "hidden")
    assert set(names_at(library, list(range(value, value + size)))) == {"hidden"}


def test_an_exported_name_without_underscores_wins_even_if_weak(library: Path, stripped: Path) -> None:
    shown = addresses(library)["shown"]
    assert addresses(library)["shown_too"] == addresses(library)["__shown_internal"] == shown
    # "shown" is strong, "shown_too" weak, "__shown_internal" strong.
    assert names_at(library, [shown]) == names_at(stripped, [shown]) == ["shown"]


def test_weak_public_names_of_the_c_library() -> None:
    libc = next(m.path for m in address_space(os.getpid()).mappings if re.search(r"/libc\.so|/libc-", m.path))
    symbols = nm(Path(libc), "-D")
    for name in ("write", "malloc", "getpid", "qsort_r"):
        value = next(v for v, _, _, n in symbols if n == name)
        assert names_at(Path(libc), [value]) == [name]


def test_a_stripped_library_knows_its_exported_functions_alone(library: Path, stripped: Path) -> None:
    at = addresses(library)
    assert names_at(stripped, [at["shown"], at["hidden"]]) == ["shown", ""]


def test_without_section_headers(library: Path, stripped: Path) -> None:
    image = bytearray(stripped.read_bytes())
    image[0x28:0x30] = bytes(8)  # e_shoff
    image[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
    headless = stripped.with_name("headless")
    headless.write_bytes(image)
    at = addresses(library)
    assert names_at(headless, [at["shown"], at["hidden"]]) == ["shown", ""]


def test_mini_debug_info(library: Path, stripped: Path) -> None:
    mini = library.with_name("mini.debug")
    run("objcopy", "-S", "--remove-section", ".comment", "--keep-symbol=hidden", library, mini)
    run("xz", "--keep", mini)
    out = library.with_name("with_mini")
    run("objcopy", f"--add-section=.gnu_debugdata={mini}.xz", stripped, out)
    at = addresses(library)
    assert names_at(out, [at["shown"], at["hidden"]]) == ["shown", "hidden"]


def test_damaged_mini_debug_info_is_passed_over(library: Path, stripped: Path) -> None:
    junk = library.with_name("junk")
    junk.write_bytes(b"\xfd7zXZ\0 not really")
    out = library.with_name("with_junk")
    run("objcopy", f"--add-section=.gnu_debugdata={junk}", stripped, out)
    assert names_at(out, [addresses(library)["shown"]]) == ["shown"]


def test_separate_debug_file_by_build_id(library: Path, stripped: Path, tmp_path: Path) -> None:
    found = re.search(r"Build ID: (\w+)", run("readelf", "-n", stripped))
    assert found
    build_id = found[1]
    folder = tmp_path / ".build-id" / build_id[:2]
    folder.mkdir(parents=True)
    debug = folder / f"{build_id[2:]}.debug"
    run("objcopy", "--only-keep-debug", library, debug)
    at = addresses(library)
    places = [at["shown"], at["hidden"]]
    assert names_at(stripped, places, Symbolizer(tmp_path)) == ["shown", "hidden"]
    # A file that lies there under a wrong name is of another build.
    other = compile_sample(tmp_path, "other.c", "int f(int x) { return x; }", "-shared", "-Wl,--build-id")
    shutil.copy(other, debug)
    assert names_at(stripped, places, Symbolizer(tmp_path)) == ["shown", ""]


def test_labels_without_size(tmp_path: Path) -> None:
    program = compile_sample(tmp_path, "labels.S", LABELS, "-nostdlib", "-static")
    at = addresses(program)
    places = [at["_start"], at["again"], at["sized"], at["inner"], at["behind"], at["second"]]
    assert names_at(program, places) == ["_start", "again", "sized", "sized", "behind", "second"]
    # Up to the byte before the next, and to the end of the section.
    ends = [at["again"] - 1, at["sized"] - 1, at["behind"] - 1, at["behind"] + 6]
    assert names_at(program, ends) == ["_start", "again", "sized", "behind"]


def test_data_and_unmapped_places_have_no_function(tmp_path: Path) -> None:
    program = compile_sample(tmp_path, "labels.S", LABELS, "-nostdlib", "-static")
    at = addresses(program)
    assert names_at(program, [at["number"]]) == [""]
    beyond = np.array([1 << 40, 0xFFFF_FFFF_FFFF_FFFF, at["_start"]], np.uint64)
    names, back = Symbolizer().lookup(str(program), beyond)
    # An address is no offset, even where a function has that address.
    assert names == ["", "", ""]
    assert back.tolist() == beyond.tolist()


def test_nested_functions_the_innermost_names(tmp_path: Path) -> None:
    source = """
    .macro function name, size
    .globl \\name
    .type \\name, @function
    .size \\name, \\size
    \\name:
    .endm
    .text
    function outer, 8
    nop
    nop
    function middle, 4
    nop
    function inner, 1
    nop
    nop
    nop
    nop
    nop
    nop
    """
    library = compile_sample(tmp_path, "nested.S", source, "-nostdlib", "-shared")
    first = addresses(library)["outer"]
    expected = ["outer"] * 2 + ["middle", "inner", "middle", "middle", "outer", "outer", ""]
    assert names_at(library, list(range(first, first + 9))) == expected


def test_versions_are_cut_off(tmp_path: Path) -> None:
    source = """
    int f_old(void) { return 1; }
    int f_new(void) { return 2; }
    __asm__(".symver f_old, f@V1");
    __asm__(".symver f_new, f@@V2");
    """
    (tmp_path / "map").write_text("V1 { global: f; local: *; }; V2 { global: f; } V1;")
    flags = ("-shared", "-fPIC", f"-Wl,--version-script={tmp_path / 'map'}")
    library = compile_sample(tmp_path, "versioned.c", source, *flags)
    at = [v for v, _, _, name in nm(library, "-D") if name == "f"]
    assert len(at) == 2
    assert names_at(library, at) == ["f", "f"]


def test_mapping_symbols_are_no_names(tmp_path: Path) -> None:
    source = ".text\n.globl f\nf: nop\nb g\n.word 1\ng: nop\n"
    library = compile_sample(tmp_path, "a64.S", source, "-nostdlib", "-shared", cross="aarch64-linux-gnu-")
    symbols = nm(library, "--special-syms")
    assert "$x" in [name for _, _, _, name in symbols]
    at = addresses(library)
    assert names_at(library, [at["f"], at["f"] + 8, at["g"]]) == ["f", "f", "g"]


def test_the_vdso(tmp_path: Path) -> None:
    mapping = next(m for m in address_space(os.getpid()).mappings if m.path == "[vdso]")
    image = ctypes.string_at(mapping.start, mapping.end - mapping.start)
    copy = tmp_path / "vdso"
    copy.write_bytes(image)
    functions = [s for s in nm(copy, "-D") if s[2] in "TtWw"]
    offsets = np.array([value for value, _, _, _ in functions], np.uint64)
    names, back = Symbolizer().lookup("[vdso]", offsets)
    assert back.tolist() == offsets.tolist()
    assert len(functions) >= 4
    assert {name.removeprefix("__vdso_").removeprefix("__kernel_") for _, _, _, name in functions} == {
        name.removeprefix("__kernel_") for name in names
    }


@pytest.mark.parametrize(
    "path",
    ["", "[anon]", "[heap]", "[stack]", "[vsyscall]", "/no/such/file", "/bin (deleted)", "/bin", "/dev/zero"],
)
def test_what_is_no_module_has_no_names(path: str) -> None:
    offsets = np.array([0, 5, 1 << 63], np.uint64)
    names, back = Symbolizer().lookup(path, offsets)
    assert names == ["", "", ""]
    assert back.tolist() == offsets.tolist()


def test_relative_paths_are_not_opened(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(library.parent)
    shown = offsets_of(library, [addresses(library)["shown"]])
    assert Symbolizer().lookup(library.name, shown)[0] == [""]
    assert Symbolizer().lookup(str(library), shown)[0] == ["shown"]


def test_no_offsets(library: Path) -> None:
    names, back = Symbolizer().lookup(str(library), np.array([], np.uint64))
    assert names == []
    assert back.shape == (0,)


def test_a_file_is_read_once(library: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(library, copy)
    symbolizer = Symbolizer()
    shown = offsets_of(copy, [addresses(library)["shown"]])
    assert symbolizer.lookup(str(copy), shown)[0] == ["shown"]
    copy.unlink()
    assert symbolizer.lookup(str(copy), shown)[0] == ["shown"]
    assert Symbolizer().lookup(str(copy), shown)[0] == [""]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=8), st.integers(1, 1 << 16))
def test_damaged_files_raise_nothing(
    tmp_path_factory: pytest.TempPathFactory, stripped: Path, changes: list[tuple[int, int]], length: int
) -> None:
    image = bytearray(stripped.read_bytes())
    tables = [0, 0x40, int.from_bytes(image[0x28:0x30], "little")]  # headers, where a byte matters most
    for at, value in changes:
        image[(tables[at % 3] + at // 3 % 512) % len(image)] = value
    broken = tmp_path_factory.mktemp("broken") / "file"
    broken.write_bytes(image[:length] if length % 2 else image)
    names, back = Symbolizer().lookup(str(broken), np.arange(0, 0x4000, 64, dtype=np.uint64))
    assert len(names) == len(back) == 256


def test_the_rest_of_the_last_page_is_mapped_with_its_segment(tmp_path: Path) -> None:
    program = compile_sample(tmp_path, "labels.S", LABELS, "-nostdlib", "-static", "-Wl,-Ttext=0x600000")
    text = re.search(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", run("readelf", "-lW", program))
    assert text
    offset, address, size = (int(group, 16) for group in text.groups())
    names, back = Symbolizer().lookup(str(program), np.array([offset + size, offset | 0xFFF], np.uint64))
    assert names == ["", ""]
    assert back.tolist() == [address + size, address | 0xFFF]


def test_kept_symbols_are_those_of_the_file(library: Path, tmp_path: Path) -> None:
    """Read from the file, then from what was kept of it, then from a newer version of the file."""
    offsets = np.arange(0, library.stat().st_size, 16, dtype=np.uint64)
    copy = tmp_path / library.name
    copy.write_bytes(library.read_bytes())
    kept = tmp_path / "kept"
    expected = Symbolizer().lookup(str(copy), offsets)
    for _ in range(2):
        names, addresses = Symbolizer(kept=kept).lookup(str(copy), offsets)
        assert names == expected[0]
        assert addresses.tolist() == expected[1].tolist()
    assert len(list(kept.iterdir())) == 1
    copy.write_bytes(b"")
    assert Symbolizer(kept=kept).lookup(str(copy), offsets)[0] == [""] * len(offsets)
