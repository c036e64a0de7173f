"""The accesses of AArch64 instructions, against an emulator that makes them (unicorn), and against what their
encodings say of reading and writing."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

unicorn = pytest.importorskip("unicorn")

from isa.aarch64_tools import assemble, library_words  # noqa: E402

from livepro.errors import LiveproError  # noqa: E402
from livepro.isa.aarch64.accesses import Operand, accesses, words_before  # noqa: E402
from livepro.isa.aarch64.addressing.zeroing import block_size  # noqa: E402
from livepro.isa.aarch64.encoding.memory import memory_access  # noqa: E402
from livepro.isa.aarch64.form import text_of  # noqa: E402
from livepro.isa.aarch64.registers import Registers  # noqa: E402
from livepro.isa.access import READ, WRITE, pieces  # noqa: E402

_CODE, _DATA, _SIZE = 0x10_0000, 0x4000_0000, 0x4000_0000
_BASE, _SMALL = _DATA + _SIZE // 2, 48
_CHANGING = re.compile(r"(ld|st)a?[lx]?x(r|p)|st[lg]?xr|cas|ld(add|clr|eor|set|[su]m(ax|in))|swp|ldra[ab]")
"""What an emulator may do otherwise: exclusives, atomic operations, authenticated pointers."""


class Machine:
    """Registers as `MachineState`, without vectors."""

    def __init__(self, general: Registers) -> None:
        self.general = general

    def vectors(self) -> bytes:
        raise OSError

    def read(self, address: int, size: int) -> bytes:
        return bytes(size)


class Emulator:
    """Makes single instructions."""

    def __init__(self) -> None:
        from unicorn import UC_ARCH_ARM64, UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE, UC_MEM_WRITE, UC_MODE_ARM, Uc
        from unicorn.arm64_const import UC_CPU_ARM64_MAX

        self._machine = Uc(UC_ARCH_ARM64, UC_MODE_ARM, UC_CPU_ARM64_MAX)
        self._machine.mem_map(_CODE, 0x1000)
        self._machine.mem_map(_DATA, _SIZE)
        self._seen: set[tuple[int, int]] = set()

        def hook(_: Any, kind: int, at: int, size: int, value: int, data: Any) -> None:
            own = WRITE if kind == UC_MEM_WRITE else READ
            self._seen.update((own, at + n) for n in range(size))

        self._machine.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, hook)

    def touched(self, word: int, general: Registers) -> set[tuple[int, int]] | None:
        """The (kind, byte address) that an instruction touches; None where it cannot be executed."""
        from unicorn import UcError, arm64_const

        machine = self._machine
        machine.mem_write(_CODE, word.to_bytes(4, "little"))
        machine.ctl_remove_cache(_CODE, _CODE + 4)
        for n in range(31):
            machine.reg_write(getattr(arm64_const, f"UC_ARM64_REG_X{n}"), getattr(general, f"x{n}"))
        machine.reg_write(arm64_const.UC_ARM64_REG_SP, general.sp)
        self._seen.clear()
        try:
            machine.emu_start(_CODE, _CODE + 4, count=1)
        except UcError:
            return None
        return set(self._seen)


def registers(where: Any, generator: random.Random) -> Registers:
    """Registers with which an operand is in the data."""
    general = Registers()
    for n in range(31):
        setattr(general, f"x{n}", _BASE + generator.randrange(64) * 64)
    general.sp = _BASE + generator.randrange(64) * 64
    if isinstance(where, Operand) and 0 <= where.scaled < 31:
        small = generator.randrange(-_SMALL, _SMALL)
        if where.scaled == where.base:
            small = _DATA // 2
        elif not where.extend & 1 and not where.extend & 4:
            small = abs(small) | generator.randrange(1 << 20) << 32  # the upper half is not the index's
        elif not where.extend & 1:
            small = small & 0xFFFF_FFFF | generator.randrange(1 << 20) << 32
        setattr(general, f"x{where.scaled}", small & (1 << 64) - 1)
    return general


def own(word: int, general: Registers) -> set[tuple[int, int]]:
    """What livepro says is touched."""
    found = accesses(word.to_bytes(4, "little"), _CODE)
    words: list[int] = []
    for access in found:
        words += words_before(access, Machine(general))
    return {(kind, at + n) for kind, at, size in pieces(found, words) for n in range(size)}


def random_words(count: int) -> list[int]:
    """Words of the space "Loads and Stores" that capstone names, but for literals: at most four of each name
    with each shape of its operands."""
    generator = random.Random(23)
    seen: dict[str, int] = {}
    out = []
    while len(out) < count:
        word = generator.getrandbits(32) & ~0x0A000000 | 0x08000000
        mnemonic, text = text_of(word.to_bytes(4, "little"), 0)
        if not mnemonic or word & 0x3B000000 == 0x18000000:
            continue
        shape = f"{mnemonic} {re.sub(r'[0-9]+|0x[0-9a-f]+', 'n', text)}"
        seen[shape] = seen.get(shape, 0) + 1
        if seen[shape] <= 4:
            out.append(word)
        elif seen[shape] > 400:
            break
    return out


def test_words_touch_what_an_emulator_touches() -> None:
    generator, emulator = random.Random(24), Emulator()
    tried, names = 0, set()
    for word in random_words(12_000):
        mnemonic, text = text_of(word.to_bytes(4, "little"), 0)
        try:
            (access,) = accesses(word.to_bytes(4, "little"), _CODE) or (None,)
        except LiveproError:
            continue
        if access is None:
            continue
        general = registers(access.where, generator)
        seen = emulator.touched(word, general)
        if seen is None:
            continue
        mine = own(word, general)
        if _CHANGING.match(mnemonic):
            mine = {(READ, at) for _, at in mine}
            seen = {(READ, at) for _, at in seen} or mine
        tried += 1
        names.add(mnemonic)
        assert mine == seen, (f"{word:#x} {mnemonic} {text}", sorted(mine), sorted(seen))
    assert tried > 1000, tried
    assert len(names) > 60, sorted(names)


def kinds(word: int) -> tuple[bool, bool] | None:
    """Whether livepro says that a word reads and writes; None where it refuses to record it."""
    try:
        found = accesses(word.to_bytes(4, "little"), _CODE)
    except LiveproError:
        return None
    return any(access.kind & READ for access in found), any(access.kind & WRITE for access in found)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 7])
def test_accesses_are_those_that_are_counted(every: int, request: pytest.FixtureRequest) -> None:
    """For words of NumPy, OpenBLAS and OpenSSL: an instruction that is described as reading or writing has an
    access that does. Those of SME are refused."""
    refused = set()
    cache = request.config.cache
    assert cache is not None
    words = library_words(cache.mkdir("aarch64-libraries")).tolist()
    for word in words[::every]:
        found = kinds(word)
        mnemonic, text = text_of(word.to_bytes(4, "little"), 0)
        if found is None:
            refused.add("SME" if "{za" in text else mnemonic)
        elif mnemonic:
            expected = memory_access(word, prefetch=mnemonic.startswith("prf"))
            assert found == expected, f"{word:#x} {mnemonic}"
    assert len(words) > 100_000
    assert refused <= {"SME"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ldr x0, [x1, #8]", [(READ, 0x1018, 8)]),  # the top byte is not the address's
        ("ldraa x0, [x3, #-8]", [(READ, 0x7F_FFFF_FFF0, 8)]),  # nor is an authentication code
        ("stg x0, [x1, #16]", [(WRITE, 0x1020, 16)]),
        ("stg x0, [x2], #16", [(WRITE, 0x1010, 16)]),  # not a granule's first byte
        ("st2g x0, [x1, #-16]!", [(WRITE, 0x1000, 32)]),
        ("stzg x0, [x1]", [(WRITE, 0x1010, 16)]),
        ("stz2g x0, [x1], #32", [(WRITE, 0x1010, 32)]),
        ("ldg x0, [x1, #32]", [(READ, 0x1030, 16)]),
        ("stgp x0, x4, [x1, #32]", [(WRITE, 0x1030, 16)]),
        ("stgp x0, x4, [x1], #32", [(WRITE, 0x1010, 16)]),
        ("dc zva, x2", [(WRITE, 0x1000, block_size())]),
        ("dc cvau, x2", []),
        ("ld1b {z0.b}, p0/z, [x1]", []),  # there is no such processor
    ],
)
def test_what_an_emulator_does_not_tell(line: str, expected: list[Any], tmp_path: Path) -> None:
    (word,) = assemble([line], tmp_path)
    general = Registers(x1=0x7F00_0000_0000_1010, x2=0x101C, x3=0x002A_007F_FFFF_FFF8)
    found = accesses(word.to_bytes(4, "little"), _CODE)
    words = [number for access in found for number in words_before(access, Machine(general))]
    assert list(pieces(found, words)) == expected


@pytest.mark.parametrize("line", ["ldff1b {z0.b}, p0/z, [x0, x1]", "ld1w {za0h.s[w12, 1]}, p3/z, [x6]"])
def test_what_is_not_recorded_is_refused(line: str, tmp_path: Path) -> None:
    (word,) = assemble([line], tmp_path)
    with pytest.raises(LiveproError, match=line[:4]):
        accesses(word.to_bytes(4, "little"), _CODE)


def test_literals_are_where_the_code_is(tmp_path: Path) -> None:
    lines = ["ldr x0, .+16", "ldrsw x0, .-4", "ldr q0, .+1048572", "prfm pldl1keep, .+8"]
    codes = [word.to_bytes(4, "little") for word in assemble(lines, tmp_path)]
    found = [[(*words_before(a, Machine(Registers())), a.size) for a in accesses(c, 0x4000)] for c in codes]
    assert found == [[(0x4010, 8)], [(0x3FFC, 4)], [(0x4000 + 1048572, 16)], []]
