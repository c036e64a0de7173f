"""The register operands of AArch64 instructions against an emulator (unicorn): what is written changes, what
is read makes a difference, and nothing else does either."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

unicorn = pytest.importorskip("unicorn")

from isa.aarch64_tools import assemble, library_words  # noqa: E402

from livepro.errors import LiveproError  # noqa: E402
from livepro.isa.aarch64.accesses import accesses  # noqa: E402
from livepro.isa.aarch64.form import text_of  # noqa: E402
from livepro.isa.aarch64.operands import operands  # noqa: E402

_CODE, _DATA, _SIZE = 0x10_0000, 0x4000_0000, 0x10_0000
_MIDDLE = _DATA + _SIZE // 2
_LEFT_OUT = re.compile(
    r"(ld|st)a?l?x(r|p).*|st[lg]?x[rp].*|pac.*|aut.*|xpac.*|.*ra[ab]z?|bra.*|reta.*|"
    r"mrs|msr|dc|ic|at|tlbi|sys|svc|hvc|smc|brk|hlt|hint|isb|dsb|dmb|sb|clrex|wf[ei].*|nop|yield|eret.*|drps|"
    r"udf|dcps.|bti|sev.*|csdb|esb|.*stg.*|stz.*|ldg.*|st2g|irg|gmi|psb|tsb|prf.*"
)
"""What depends on more than registers, or is not for programs."""
_LEFT_OUT_TEXT = re.compile(r"\bz[0-9]|\bp[0-9]|\bza|zr\b|, (nv|al)$|\[\w+, #0\]!")
"""Vectors of no fixed length, a register or a condition that is none, writing back what was there."""
_RARELY = re.compile(r"cas.*|sli")
"""What is read makes a difference only if it equals what is in memory, or is not replaced as a whole."""

State = dict[str, int]


class Emulator:
    """Executes single instructions from any state."""

    def __init__(self) -> None:
        from unicorn import UC_ARCH_ARM64, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE, UC_MODE_ARM, Uc, arm64_const

        self._machine = machine = Uc(UC_ARCH_ARM64, UC_MODE_ARM, arm64_const.UC_CPU_ARM64_MAX)
        machine.mem_map(_CODE, 0x1000)
        machine.mem_map(_DATA, _SIZE)
        self._memory = random.Random(1).randbytes(_SIZE)
        machine.mem_write(_DATA, self._memory)
        names = [*(f"X{n}" for n in range(31)), "SP", *(f"Z{n}" for n in range(32)), "NZCV"]
        self.numbers = {
            name: getattr(arm64_const, f"UC_ARM64_REG_{re.sub('^Z', 'Q', name)}") for name in names
        }
        self._pc = arm64_const.UC_ARM64_REG_PC
        self._touched: list[tuple[int, int, int, int]] = []
        machine.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, self._touch)

    def _touch(self, _: Any, kind: int, at: int, size: int, value: int, __: Any) -> None:
        self._touched.append((kind, at, size, value))

    def run(self, word: int, state: Mapping[str, int]) -> tuple[State, Any] | None:
        """The registers behind the instruction, and all else that it did; None where it fails."""
        from unicorn import UcError

        machine = self._machine
        machine.mem_write(_CODE, word.to_bytes(4, "little"))
        machine.ctl_remove_cache(_CODE, _CODE + 4)
        for name, number in self.numbers.items():
            machine.reg_write(number, state[name])
        self._touched.clear()
        try:
            machine.emu_start(_CODE, -1, count=1)
        except UcError:
            return None
        after = {name: machine.reg_read(number) for name, number in self.numbers.items()}
        did = (tuple(self._touched), machine.reg_read(self._pc))
        for _, at, size, _ in self._touched:
            machine.mem_write(at, self._memory[at - _DATA : at - _DATA + size])
        return after, did


def state(word: int, generator: random.Random) -> tuple[State, set[str]]:
    """Registers with which an instruction finds its memory, and those that it finds it by."""
    common = _value(generator, 128)  # so that some are equal
    out = {f"X{n}": generator.choice((common % (1 << 64), _value(generator, 64))) for n in range(31)}
    out |= {f"Z{n}": generator.choice((common, _value(generator, 128))) for n in range(32)}
    out |= {"SP": _MIDDLE, "NZCV": generator.getrandbits(4) << 28}
    places = set()
    for access in accesses(word.to_bytes(4, "little"), _CODE):
        where = access.where
        for register, value in ((where.scaled, generator.randrange(64)), (where.base, _MIDDLE)):
            if register >= 0:
                name = "SP" if register == 31 else f"X{register}"
                out[name] = value
                places.add(name)
    return out, places


def _value(generator: random.Random, bits: int) -> int:
    """Random bits, or small numbers, in lanes or not."""
    if generator.randrange(3) == 0:
        return sum(generator.randrange(24) << at for at in range(0, bits, generator.choice((8, 16, 32, 64))))
    return generator.getrandbits(bits)


def differing(value: int, name: str, places: set[str], generator: random.Random) -> int:
    if name in places:
        return value + 16
    if name == "NZCV":
        return value ^ generator.randrange(1, 16) << 28
    if value and generator.randrange(4) == 0:
        return 0
    return value ^ (1 << generator.randrange(128 if name[0] == "Z" else 64) | _value(generator, 64))


def checked(word: int, emulator: Emulator, generator: random.Random, states: int) -> str:
    """What is wrong with the operands of an instruction; nothing if it cannot be executed, too."""
    found = operands(word.to_bytes(4, "little"))
    reads = {one.whole for one in found.reads}
    writes = {one.whole for one in found.writes}
    unseen_reads, unseen_writes = set(reads), set(writes)
    for turn in range(20 * states):
        if turn >= states and not unseen_reads and not unseen_writes:
            break
        before, places = state(word, generator)
        answer = emulator.run(word, before)
        if answer is None:
            return ""
        after, did = answer
        changed = {name for name in before if after[name] != before[name]}
        if changed - writes:
            return f"writes {sorted(changed - writes)}, too"
        unseen_writes -= changed
        others = {
            name: value if name in reads else differing(value, name, places, generator)
            for name, value in before.items()
        }
        again = emulator.run(word, others)
        if again is not None and (again[1] != did or any(again[0][w] != after[w] for w in writes)):
            return "reads more"
        for name in sorted(unseen_reads):
            less = before | {name: differing(before[name], name, places, generator)}
            again = emulator.run(word, less)
            if again is None or again[1] != did or any(again[0][w] != after[w] for w in writes):
                unseen_reads.discard(name)
    if _RARELY.fullmatch(text_of(word.to_bytes(4, "little"), 0)[0]):
        return ""
    if unseen_writes:
        return f"does not write {sorted(unseen_writes)}"
    return f"does not read {sorted(unseen_reads)}" if unseen_reads else ""


def shapes(words: list[int], most: int) -> list[int]:
    """Of each name with each shape of operands so many, without those left out, and instructions that name a
    register twice."""
    seen: dict[str, int] = {}
    out = []
    for word in words:
        mnemonic, text = text_of(word.to_bytes(4, "little"), 0)
        if not mnemonic or _LEFT_OUT.fullmatch(mnemonic) or _LEFT_OUT_TEXT.search(text):
            continue
        named = [re.sub(r"\D", "", name) for name in re.findall(r"\b[bhsdqvxw][0-9]+\b", text)]
        if len(set(named)) < len(named):
            continue
        shape = f"{mnemonic} {re.sub(r'0x[0-9a-f]+|[0-9]+', 'n', text)}"
        seen[shape] = seen.get(shape, 0) + 1
        if seen[shape] <= most:
            out.append(word)
    return out


@pytest.mark.parametrize(
    ("most", "states"), [(1, 5), pytest.param(2, 20, marks=pytest.mark.long(seconds=180))]
)
def test_operands_are_those_that_make_a_difference(
    most: int, states: int, request: pytest.FixtureRequest
) -> None:
    """Of NumPy's, OpenBLAS's and OpenSSL's instructions, and of random ones."""
    cache = request.config.cache
    assert cache is not None
    generator = random.Random(31)
    words = library_words(cache.mkdir("aarch64-libraries")).tolist()
    generator.shuffle(words)
    words = words[: 8_000 * most] + [generator.getrandbits(32) for _ in range(12_000 * most)]
    emulator, wrong, tried = Emulator(), [], 0
    for word in shapes(words, most):
        try:
            accesses(word.to_bytes(4, "little"), _CODE)
        except LiveproError:
            continue
        answer = checked(word, emulator, generator, states)
        tried += 1
        if answer:
            wrong.append(f"{word:#010x} {' '.join(text_of(word.to_bytes(4, 'little'), 0))}: {answer}")
    assert wrong == []
    assert tried > 500


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("ret", "X30", ""),
        ("ret x5", "X5", ""),
        ("retaa", "SP X30", ""),
        ("paciasp", "SP X30", "X30"),
        ("autia1716", "X16 X17", "X17"),
        ("pacia x0, x1", "X0 X1", "X0"),
        ("xpaclri", "X30", "X30"),
        ("blr x3", "X3", "X30"),
        ("mrs x0, nzcv", "NZCV", "X0"),
        ("msr nzcv, x0", "X0", "NZCV"),
        ("mrs x0, tpidr_el0", "", "X0"),
        ("dc zva, x0", "X0", ""),
        ("prfm pldl1keep, [x0, x1]", "X0 X1", ""),
        ("ldxr x0, [x1]", "X1", "X0"),
        ("stxr w0, x1, [x2]", "X1 X2", "X0"),
        ("stlxp w0, x1, x2, [sp]", "SP X1 X2", "X0"),
        ("ldadd x0, xzr, [x1]", "X0 X1", ""),
        ("swp x0, x1, [x2]", "X0 X2", "X1"),
        ("casp x0, x1, x2, x3, [x4]", "X0 X1 X2 X3 X4", "X0 X1"),
        ("ldg x0, [x1]", "X0 X1", "X0"),
        ("stg x0, [x1], #16", "X0 X1", "X1"),
        ("add z0.s, p0/m, z0.s, z1.s", "P0 Z0 Z1", "Z0"),
        ("add z0.s, z1.s, z2.s", "Z1 Z2", "Z0"),
        ("fmla z0.s, p0/m, z1.s, z2.s", "P0 Z0 Z1 Z2", "Z0"),
        ("mov z0.s, p0/m, z1.s", "P0 Z0 Z1", "Z0"),
        ("movprfx z0.s, p0/z, z1.s", "P0 Z1", "Z0"),
        ("cmpeq p0.s, p1/z, z0.s, z1.s", "P1 Z0 Z1", "NZCV P0"),
        ("whilelo p0.s, x0, x1", "X0 X1", "NZCV P0"),
        ("ptest p0, p1.b", "P0 P1", "NZCV"),
        ("and p0.b, p1/z, p2.b, p3.b", "P1 P2 P3", "P0"),
        ("ands p0.b, p1/z, p2.b, p3.b", "P1 P2 P3", "NZCV P0"),
        ("incw x0", "X0", "X0"),
        ("cntw x0", "", "X0"),
        ("uaddv d0, p1, z2.s", "P1 Z2", "Z0"),
        ("ld1w {z0.s}, p1/z, [x2, z3.s, uxtw #2]", "P1 X2 Z3", "Z0"),
        ("ld2w {z0.s, z1.s}, p1/z, [x2, x3, lsl #2]", "P1 X2 X3", "Z0 Z1"),
        ("st1w {z0.s}, p1, [x2, #1, mul vl]", "P1 X2 Z0", ""),
        ("ldr z0, [x2, #1, mul vl]", "X2", "Z0"),
        ("str p0, [sp]", "P0 SP", ""),
        ("prfw pldl1keep, p1, [x2]", "P1 X2", ""),
    ],
)
def test_what_an_emulator_does_not_tell(line: str, reads: str, writes: str, tmp_path: Path) -> None:
    (word,) = assemble([line], tmp_path)
    found = operands(word.to_bytes(4, "little"))
    assert sorted(one.whole for one in found.reads) == reads.split()
    assert sorted(one.whole for one in found.writes) == writes.split()
