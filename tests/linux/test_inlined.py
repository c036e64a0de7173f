"""Inlined functions, with addr2line (binutils) as the referee, and debug files found by build-id."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from tools import needed

from livepro.linux.debugfiles import DebugFiles
from livepro.linux.inlined import Frame, Inlining
from livepro.linux.symbols import Symbolizer

C = """\
static inline int square(int n) { return n * n; }
static inline __attribute__((always_inline)) int sum(const int *v, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) {
        if (v[i] & 1) { int t = square(v[i]); s += t; }
        else s -= square(v[i] + 1);
    }
    return s;
}
__attribute__((noinline)) static int twice(const int *v, int n) { return sum(v, n) + sum(v, n / 2); }
int main(int argc, char **argv) {
    int v[8] = {1, 2, 3, argc, 5, 6, 7, 8};
    return twice(v, 8) + square(argc);
}
"""
CPP = """\
#include <vector>
#include <numeric>
namespace shop {
struct Basket {
    std::vector<int> v;
    int total() const { return std::accumulate(v.begin(), v.end(), 0); }
    __attribute__((noinline)) int most() const {
        int m = 0;
        for (int x : v) m = x > m ? x : m;
        return m + total();
    }
};
}
int main(int argc, char **argv) { shop::Basket b; b.v.assign(argc * 10, argc); return b.most() + b.total(); }
"""
RUST = """\
mod inner { pub struct S(pub u64);
impl S {
#[inline(always)] pub fn go(&self, n: &[u64]) -> u64 { n.iter().map(|x| x.wrapping_mul(self.0)).sum() }
#[inline(never)] pub fn twice(&self, n: &[u64]) -> u64 { self.go(n) ^ self.go(&n[1..]) } } }
fn main() { let a = std::env::args().count() as u64; println!("{}", inner::S(a).twice(&[1, 2, a])); }
"""


def built(tmp_path: Path, language: str, *flags: str) -> Path:
    source = tmp_path / f"a.{ {'c': 'c', 'c++': 'cc', 'rust': 'rs'}[language] }"
    source.write_text({"c": C, "c++": CPP, "rust": RUST}[language])
    compiler = {
        "c": lambda: needed("gcc", "gcc"),
        "c++": lambda: needed("g++", "g++"),
        "rust": lambda: needed("rustc", "rustc", in_ci=False),
    }[language]()
    subprocess.run([compiler, *flags, "-o", "a", source.name], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "a"


def code_of(program: Path, *functions: str) -> list[int]:
    """Addresses of the instructions of functions whose symbols contain one of `functions`."""
    listing = subprocess.run(["objdump", "-d", program], capture_output=True, text=True, check=True).stdout
    out, wanted = [], False
    for line in listing.splitlines():
        if line.endswith(">:"):
            wanted = any(function in line for function in functions)
        elif wanted and line.startswith("  "):
            out.append(int(line.split(":")[0], 16))
    return out


def referee(program: Path, addresses: list[int]) -> list[list[tuple[str, str, int]]]:
    """(function, file, line) of each frame of each address, as `addr2line -i -f` says. For code that no
    debug information is about (padding) it names the symbol; for code of line 0, which is no line, a file."""
    said = subprocess.run(
        ["addr2line", "-a", "-i", "-f", "-e", program, *map(hex, addresses)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    out: list[list[tuple[str, str, int]]] = []
    lines = iter(said)
    for line in lines:
        if line.startswith("0x"):
            out.append([])
            continue
        file, _, number = next(lines).partition(" (")[0].rpartition(":")
        known = number.isdigit() and int(number)
        if not known and not file.startswith("/"):  # the symbol's, and no debug information
            continue
        out[-1].append((line, os.path.normpath(file) if known else "", int(number) if known else 0))
    return out


@pytest.mark.parametrize(
    ("language", "flags", "functions"),
    [
        ("c", ("-O2", "-gdwarf-5"), ("main>", "twice")),
        ("c", ("-O2", "-gdwarf-4"), ("main>", "twice")),
        ("c", ("-O1", "-gdwarf-4", "-ffunction-sections"), ("main>", "twice")),
        ("c++", ("-O2", "-g"), ("main>", "most")),
        ("rust", ("-O", "-g"), ("twice", "main4main", "1a4main")),
    ],
)
def test_frames_are_those_of_addr2line(
    tmp_path: Path, language: str, flags: tuple[str, ...], functions: tuple[str, ...]
) -> None:
    program = built(tmp_path, language, *flags)
    addresses = code_of(program, *functions)
    found = Inlining().lookup(str(program), np.array(addresses, np.uint64))
    expected = referee(program, addresses)
    assert [[tuple(frame) for frame in frames] for frames in found] == expected
    assert max(map(len, found)) >= 3


def test_by_build_id_below_the_debug_directory(tmp_path: Path) -> None:
    program = built(tmp_path, "c", "-O2", "-g", "-Wl,--build-id")
    addresses = np.array(code_of(program, "twice"), np.uint64)
    expected = Inlining().lookup(str(program), addresses)
    root = tmp_path / "debug"
    build_id = split(program, root)
    debug = DebugFiles(root, {})
    assert debug.place(build_id).is_file()
    assert Inlining(DebugFiles(tmp_path / "elsewhere", {})).lookup(str(program), addresses) == [()] * len(
        addresses
    )
    assert Inlining(debug).lookup(str(program), addresses) == expected
    assert {frames[-1].function for frames in expected} == {"twice"}


def split(program: Path, root: Path) -> str:
    """Strip a program, its debug information kept apart below `root`; returns its build-id."""
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = notes.partition("Build ID: ")[2].split()[0]
    apart = root / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    apart.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, apart], check=True)
    subprocess.run(["strip", program], check=True)
    return build_id


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """A debuginfod server: its address, the directory that it serves, and what it was asked for."""
    served, asked = tmp_path / "served", list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            file = served / self.path.split("/")[2]
            self.send_response(200 if file.is_file() else 404)
            self.end_headers()
            if file.is_file():
                self.wfile.write(file.read_bytes())

        def log_message(self, *_: object) -> None:
            pass

    served.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", served, asked
        http.shutdown()
        thread.join()


def test_from_a_debuginfod_server_only_if_it_is_set(
    tmp_path: Path, server: tuple[str, Path, list[str]]
) -> None:
    address, served, asked = server
    program = built(tmp_path, "c", "-O2", "-g", "-Wl,--build-id")
    addresses = code_of(program, "twice")
    build_id = split(program, tmp_path / "debug")
    (tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug").rename(served / build_id)
    nowhere = tmp_path / "nowhere"
    offsets = np.array([addresses[0]], np.uint64)  # the text segment is mapped as it is in the file

    def names(environment: dict[str, str]) -> list[str]:
        return Symbolizer(nowhere, environment=environment).lookup(str(program), offsets)[0]

    assert names({}) == [""]
    assert asked == []
    cache = {"DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    dead = "http://127.0.0.1:9"  # discard: nobody listens
    assert names({"DEBUGINFOD_URLS": f"{dead} {address}/", **cache}) == ["twice.constprop.0"]
    assert asked == [f"/buildid/{build_id}/debuginfo"]
    assert names({"DEBUGINFOD_URLS": address, **cache}) == ["twice.constprop.0"]  # kept
    assert len(asked) == 1
    assert DebugFiles(nowhere, {"DEBUGINFOD_URLS": address, **cache}).place("ab" * 20).is_file() is False
    assert len(asked) == 2


def test_what_cannot_be_read_has_no_frames(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    addresses = np.array([1, 2], np.uint64)
    for module in (str(tmp_path / "text"), str(tmp_path / "absent"), "[vdso]", ""):
        assert Inlining().lookup(module, addresses) == [(), ()]
    assert Inlining(patience=0).lookup("/usr/bin/true", addresses) == [(), ()]


def test_names_are_spelled(tmp_path: Path) -> None:
    program = built(tmp_path, "c", "-O2", "-g")
    address = np.array(code_of(program, "main>")[:1], np.uint64)
    ((frame,),) = Inlining(spelled=str.upper).lookup(str(program), address)
    assert frame == Frame("MAIN", str(tmp_path / "a.c"), 11)


def test_the_summary_and_the_report_tell_whose_code_the_hottest_blocks_are(tmp_path: Path) -> None:
    source = C.replace("return twice", "for (int i = 0; i < 3000; i++) v[i & 7] += twice(v, 8); return twice")
    (tmp_path / "a.c").write_text(source)
    subprocess.run([needed("gcc", "gcc"), "-O1", "-g", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    command = [
        sys.executable,
        "-m",
        "livepro",
        "run",
        "--analyses",
        "hot",
        "--json",
        tmp_path / "out.json",
        "--",
    ]
    done = subprocess.run([*command, tmp_path / "a"], capture_output=True, text=True)
    assert re.search(r"  (sum|square) \(in twice(\.\w+)*\) +a\+0x", done.stderr)
    (process,) = json.loads((tmp_path / "out.json").read_text())["processes"]
    blocks = [b for b in process["hottest_blocks"] if b["module"] == str(tmp_path / "a")]
    expected = referee(tmp_path / "a", [b["offset"] for b in blocks])
    told = [[(f["function"], f["file"], f["line"]) for f in b["inlined"]] for b in blocks]
    assert told == expected
    assert any(len(frames) > 1 for frames in told)
