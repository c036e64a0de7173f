"""Names of PLT entries in every layout that linkers make, against objdump's own reading of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from samples import compile_sample, names_at, nm, run

from livepro.linux.proc import address_space

CALLS = """
extern int first(int), second(int), third(int);
extern __thread int counter;
int local(int x) { return x; }
int (*kept)(int) = third;
int (*address(void))(int) { return second; }
int calls(int x) { return first(x) + second(x) + third(x) + local(x) + counter; }
"""

IFUNC = """
static int one(void) { return 1; }
static int two(void) { return 2; }
static int (*choose_a(void))(void) { return one; }
static int (*choose_b(void))(void) { return two; }
int a(void) __attribute__((ifunc("choose_a")));
int b(void) __attribute__((ifunc("choose_b")));
void _start(void) { a(); b(); for (;;) ; }
"""

SHARED = ("-shared", "-fPIC", "-nostdlib", "-O1")

X86_LAYOUTS = {
    "lazy": (),
    "now": ("-Wl,-z,now",),
    "ibt": ("-fcf-protection", "-Wl,-z,ibtplt"),
    "ibt now": ("-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,now"),
    "gold": ("-fuse-ld=gold",),
    "one segment": ("-Wl,-z,noseparate-code",),
    "tls descriptors": ("-mtls-dialect=gnu2",),
}

A64_LAYOUTS = {
    "lazy": (),
    "now": ("-Wl,-z,now",),
    "bti": ("-mbranch-protection=bti", "-Wl,-z,force-bti"),
    "pac": ("-Wl,-z,pac-plt",),
    "bti and pac": ("-Wl,-z,force-bti", "-Wl,-z,pac-plt"),
    "tls without descriptors": ("-mtls-dialect=trad",),
}


def entries(path: Path, cross: str = "") -> dict[int, str]:
    """Address to name of the PLT entries that objdump knows."""
    listing = run(f"{cross}objdump", "-d", path)
    found = re.findall(r"^([0-9a-f]+) <(\S+@plt)>:", listing, re.MULTILINE)
    # objdump also takes a table's header for an entry 16 bytes before the first, and the stub that
    # resolves thread-local storage descriptors for the entry of a variable.
    names = {int(at, 16): re.sub("@.*", "@plt", name) for at, name in found if "-0x" not in name}
    return {at: name for at, name in names.items() if name != "counter@plt"}


def check(path: Path, expected: dict[int, str], size: int) -> None:
    """livepro's names are those, from the first to the last byte of each entry."""
    places = sorted(expected)
    names = [expected[place] for place in places]
    assert names_at(path, places) == names
    assert names_at(path, [place + size - 1 for place in places]) == names


@pytest.mark.parametrize("flags", X86_LAYOUTS.values(), ids=X86_LAYOUTS)
def test_x86_64_layouts(tmp_path: Path, flags: tuple[str, ...]) -> None:
    library = compile_sample(tmp_path, "calls.c", CALLS, *SHARED, *flags)
    expected = entries(library)
    assert {"first@plt", "second@plt", "third@plt", "local@plt"} <= set(expected.values())
    check(library, expected, 8)


def test_x86_64_ibt_names_the_lazy_table_too(tmp_path: Path) -> None:
    """objdump does not, but the first call of each function runs through it."""
    library = compile_sample(tmp_path, "calls.c", CALLS, *SHARED, *X86_LAYOUTS["ibt"])
    header = re.search(r"\] \.plt\s+PROGBITS\s+(\w+) \w+ (\w+)", run("readelf", "-SW", library))
    assert header
    start, size = int(header[1], 16), int(header[2], 16)
    names = names_at(library, list(range(start, start + size, 16)))
    # The relocations in the order of their slots, behind the table's header.
    slots = sorted(
        re.findall(r"^(\w+) .*JUMP_SLO\w*\s+\w+ (\w+)", run("readelf", "-rW", library), re.MULTILINE)
    )
    assert names == ["", *(f"{name}@plt" for _, name in slots)]


@pytest.mark.parametrize("flags", A64_LAYOUTS.values(), ids=A64_LAYOUTS)
def test_aarch64_layouts(tmp_path: Path, flags: tuple[str, ...]) -> None:
    cross = "aarch64-linux-gnu-"
    library = compile_sample(tmp_path, "calls.c", CALLS, *SHARED, *flags, cross=cross)
    expected = entries(library, cross)
    assert {"first@plt", "second@plt", "third@plt", "local@plt"} <= set(expected.values())
    check(library, expected, 16)


@pytest.mark.parametrize("cross", ["", "aarch64-linux-gnu-"])
@pytest.mark.parametrize("kind", ["-static", "-shared"])
def test_ifunc_entries_are_named_by_their_function(tmp_path: Path, cross: str, kind: str) -> None:
    """In a static program the slot's relocation has no symbol, only the resolver's address."""
    flags = ("-nostdlib", "-O1", "-fPIC", kind)
    program = compile_sample(tmp_path, "ifunc.c", IFUNC, *flags, cross=cross)
    listing = run(f"{cross}objdump", "-d", program)
    body = listing.partition("<_start>:")[2].partition("\n\n")[0]
    called = [int(target, 16) for target in re.findall(r"\b(?:call|bl)\s+([0-9a-f]+)", body)]
    assert names_at(program, called) == ["a@plt", "b@plt"]
    # The resolvers' own code keeps the resolvers' own names.
    resolvers = {name: at for at, _, _, name in nm(program)}
    assert resolvers["a"] == resolvers["choose_a"]
    assert names_at(program, [resolvers["a"], resolvers["choose_b"]]) == ["choose_a", "choose_b"]


def test_every_entry_of_real_libraries() -> None:
    mapped = {m.path for m in address_space(os.getpid()).mappings if m.executable and ".so" in m.path}
    total = 0
    for path in sorted(mapped)[:12]:
        expected = {at: name for at, name in entries(Path(path)).items() if not name.startswith("*ABS*")}
        check(Path(path), expected, 8)
        total += len(expected)
    assert total > 100
