"""Symbols of C++ and Rust as their sources spell them.

LLVM's demanglers (`pycxxfilt`) read both manglings, the Itanium C++ ABI's (``_Z``) and
Rust's newer one (``_R``, RFC 2603 "v0"). What is done here is what they leave out, so that
names are spelled as `c++filt`, `perf` and GDB spell them:

- what compilers append to a symbol is told apart: ``f() [clone .cold]``;
- Rust's older mangling (``_ZN...17h0123456789abcdefE``), which LLVM takes for C++, has its escapes
  undone and its hash taken off (rustc-demangle, `legacy.rs`);
- the hashes of crates, ``core[0123456789abcdef]::fmt``, are left out.
"""

from __future__ import annotations

import re

_SUFFIX = re.compile(r"(?<=[^.])(?:\.[A-Za-z_]+(?:\.\d+)*|\.\d+)+$")
"""What GCC and LLVM append for a copy of a function or a part of one."""
_CLONE = re.compile(r"\.[A-Za-z_]+(?:\.\d+)*|\.\d+")
_LLVM_COPY = re.compile(r"\.llvm\.[0-9A-F]+")  # a local symbol that link-time optimisation made global
_PLT = "@plt"

_LEGACY = re.compile(r"_ZN(?:\d+.+)17h[0-9a-f]{16}E")
_CRATE_HASH = re.compile(r"(?<=\w)\[[0-9a-f]{1,16}\]")
_ESCAPES = {
    "SP": "@",
    "BP": "*",
    "RF": "&",
    "LT": "<",
    "GT": ">",
    "LP": "(",
    "RP": ")",
    "C": ",",
}
_ESCAPE = re.compile(r"\$(?:u([0-9a-f]+)|([A-Z]{1,2}))\$")


class Demangler:
    """Demangles, and remembers what it has demangled: `demangler(symbol)` is the symbol as its source spells
    it, or the symbol itself where that is neither C++ nor Rust."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, symbol: str) -> str:
        if not symbol.startswith(("_Z", "_R")):
            return symbol
        known = self._known.get(symbol)
        if known is None:
            known = self._known[symbol] = demangle(symbol)
        return known


def demangle(symbol: str) -> str:
    """The name that a symbol was made from; the symbol itself where it is no mangled name."""
    if not symbol.startswith(("_Z", "_R")):
        return symbol
    if symbol.endswith(_PLT):
        return demangle(symbol.removesuffix(_PLT)) + _PLT
    match = _SUFFIX.search(symbol)
    base, suffix = (symbol, "") if match is None else (symbol[: match.start()], match[0])
    if _LEGACY.fullmatch(base) and (parts := _components(base)) is not None:
        return "::".join(map(_unescaped, parts[:-1])) + _LLVM_COPY.sub("", suffix)
    name = _llvm(base)
    if name is None:
        return symbol
    if base.startswith("_R"):
        return name + _LLVM_COPY.sub("", suffix)
    return name + "".join(f" [clone {part}]" for part in _CLONE.findall(suffix))


def _llvm(symbol: str) -> str | None:
    """What LLVM makes of a symbol; None where it is no mangled name."""
    import pycxxfilt  # takes no time to speak of, but most programs are C's

    try:
        name = pycxxfilt.demangle(symbol)
    except ValueError:  # begins like one, and is none
        return None
    return _CRATE_HASH.sub("", name) if name is not None and symbol.startswith("_R") else name


def _components(symbol: str) -> list[str] | None:
    """The identifiers of ``_ZN (LENGTH IDENTIFIER)* E``; None where it is something else."""
    at, parts = len("_ZN"), []
    while symbol[at : at + 1].isdigit():
        digits = re.match(r"\d+", symbol[at:])
        assert digits is not None
        at += len(digits[0])
        parts.append(symbol[at : at + int(digits[0])])
        at += int(digits[0])
    return parts if symbol[at:] == "E" else None


def _unescaped(part: str) -> str:
    """One identifier of Rust's older mangling, with its punctuation."""
    if part.startswith("_$"):
        part = part[1:]

    def punctuation(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else _ESCAPES.get(escape[2], escape[0])

    return _ESCAPE.sub(punctuation, part.replace("..", "::"))
