"""C++ and Rust names, against the demanglers of binutils (C++) and of the Rust project."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools import needed

import livepro
from livepro.analyses import hot
from livepro.formats.expbbv import read_pc
from livepro.names.demangle import Demangler, demangle

FIXTURES = Path(__file__).parents[2] / "fixtures/names"
X86_64 = platform.machine() == "x86_64"


def filtered(tool: str, package: str, names: list[str]) -> list[str]:
    done = subprocess.run(
        [needed(tool, package)], input="\n".join(names) + "\n", capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[:-1]


def closed(name: str) -> str:
    """Spaces, lambdas, and one type, as LLVM has them: it ends two template argument lists with ``>>``,
    binutils with ``> >``."""
    spaced = name.replace("decltype(nullptr)", "std::nullptr_t").replace("operator<< <", "operator<<<")
    return re.sub(r"> (?=>)", ">", re.sub(r"\{lambda(\(.*?\))#1\}", r"'lambda'\1", spaced))


def symbols_of(path: str) -> list[str]:
    listed = subprocess.run(
        [needed("nm", "binutils"), "-D", path], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[-1].partition("@")[0] for line in listed.splitlines()}
    return sorted(name for name in names if name.startswith("_Z") and not name.startswith("_ZGTt"))


def test_the_c_plus_plus_library_as_binutils_has_it() -> None:
    compiler = needed("g++", "g++")
    found = subprocess.run([compiler, "-print-file-name=libstdc++.so.6"], capture_output=True, text=True)
    names = symbols_of(found.stdout.strip())
    assert len(names) > 3000
    expected = filtered("c++filt", "binutils", names)
    different = [
        (name, theirs, ours)
        for name, theirs, ours in zip(names, expected, map(demangle, names), strict=True)
        if closed(theirs) != closed(ours)
    ]
    # LLVM has its own way with abbreviated standard names that stand for themselves: ``std::string`` where
    # binutils says ``std::basic_string<char, ...>`` for one and the same letter of the mangling (S[soidaab]).
    assert [d for d in different if not re.search(r"S[abdios]", d[0])] == []


def test_rust_names_old_and_new_as_rustfilt_has_them() -> None:
    names = (FIXTURES / "rust.txt").read_text().split()
    assert sum(name.startswith("_R") for name in names) > 30
    assert sum(name.startswith("_ZN") for name in names) > 10
    assert list(map(demangle, names)) == filtered("rustfilt", "rustfilt", names)


@pytest.mark.parametrize(
    "symbol",
    [
        "_ZN3foo3barEv.cold",
        "_ZN3foo3barEi.constprop.0.cold",
        "_ZN3foo3barEi.part.0.isra.1",
        "_ZN3fooC1Ev.localalias",
        "_Znwm@plt",
        "main",
        "_Zbogus",
        "_Z",
        "_RESULT",
        "_R",
        "_ZN3fooE",
        "_ZTV7Counter",
        "",
    ],
)
def test_copies_plt_entries_and_what_is_no_mangled_name(symbol: str) -> None:
    assert demangle(symbol) == filtered("c++filt", "binutils", [symbol])[0]


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN1a4main17h1854dee5fd9945b4E", "a::main"),
        ("_ZN1a4main17h1854dee5fd9945b4E.llvm.8700406094765821069", "a::main"),
        ("_RNvCs6xxl1lAjzDf_1a4main.llvm.6876747945941", "a::main"),
        ("_RNvC1a4main", "a::main"),
        ("_ZN1a4main17h1854dee5fd9945bXE", "a::main::h1854dee5fd9945bX"),  # C++ after all
        ("_ZN99a17h1854dee5fd9945b4E", "_ZN99a17h1854dee5fd9945b4E"),
    ],
)
def test_rust_by_hand(symbol: str, name: str) -> None:
    assert demangle(symbol) == name


def test_a_demangler_remembers() -> None:
    demangler = Demangler()
    first = demangler("_ZN3foo3barEv")
    assert first == "foo::bar()"
    assert demangler("_ZN3foo3barEv") is first


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("names") / "shop"
    command = [needed("g++", "g++"), "-O1", "-g", "-no-pie", "-o", str(out), str(FIXTURES / "shop.cpp")]
    subprocess.run(command, check=True)
    return out


def counted(program: Path, **options: bool) -> dict[str, int]:
    """Instructions by function of the program itself."""
    process = livepro.run([str(program)], **options).processes[0]
    functions = hot.functions(process.table, *process.threads, limit=10_000)
    return {f.function: f.instructions for f in functions if f.module == str(program)}


def test_a_c_plus_plus_program_with_and_without(shop: Path) -> None:
    spelled = counted(shop)
    raw = counted(shop, demangle=False)
    assert "shop::Basket<double>::total(double) const" in spelled
    assert "_ZNK4shop6BasketIdE5totalEd" in raw
    names = sorted(raw)
    expected = map(closed, filtered("c++filt", "binutils", names))
    assert dict(zip(expected, (raw[n] for n in names), strict=True)) == {
        closed(name): count for name, count in spelled.items()
    }


@pytest.mark.skipif(not X86_64, reason="Valgrind's exp-bbv names the same blocks there")
def test_the_pc_file_has_the_names_that_valgrind_writes(shop: Path, tmp_path: Path) -> None:
    files = tmp_path / "pc.valgrind", tmp_path / "pc.livepro"
    tool = [needed("valgrind", "valgrind"), "--tool=exp-bbv", f"--bb-out-file={tmp_path / 'bb'}"]
    ran = [*tool, f"--pc-out-file={files[0]}", str(shop)]
    subprocess.run(ran, check=True, capture_output=True)
    livepro = [sys.executable, "-m", "livepro", "run", "-q", "--pc-out-file", str(files[1]), "--", str(shop)]
    subprocess.run(livepro, check=True, stdout=subprocess.PIPE)
    theirs, ours = (
        {entry.address: entry.function for entry in read_pc(str(file)) if "shop::" in entry.function}
        for file in files
    )
    both = theirs.keys() & ours.keys()
    assert len(both) > 10
    assert {address: theirs[address] for address in both} == {address: ours[address] for address in both}
    assert any("> >" in name and "operator>>" in name for name in ours.values())


def test_a_rust_program(tmp_path: Path) -> None:
    # Its names are those of the list above; Debian's compiler is 300 MB, so CI may do without it.
    source, program = tmp_path / "a.rs", tmp_path / "a"
    source.write_text(
        "mod inner { #[inline(never)] pub fn go(n: &[u64]) -> u64 { n.iter().map(|x| x * 3).sum() } }\n"
        'fn main() { println!("{}", inner::go(&[1, 2, std::env::args().count() as u64])); }\n'
    )
    subprocess.run(
        [needed("rustc", "rustc", in_ci=False), "-O", "-o", program, source], check=True, capture_output=True
    )
    assert counted(program)["a::inner::go"] > 0
