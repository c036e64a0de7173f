"""Cache geometries: as options say them, and this machine's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from livepro.errors import LiveproError

_CPU = Path("/sys/devices/system/cpu/cpu0/cache")  # Documentation/ABI/testing/sysfs-devices-system-cpu
_SMALLEST_LINE = 16
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Geometry(NamedTuple):
    """A cache of `size` bytes with `ways` lines of `line` bytes in each set."""

    size: int
    ways: int
    line: int

    @property
    def sets(self) -> int:
        """How many sets it has."""
        return self.size // self.line // self.ways

    def __str__(self) -> str:
        ways = "direct-mapped" if self.ways == 1 else f"{self.ways}-way associative"
        return f"{self.size} B, {self.line} B, {ways}"


class Hierarchy(NamedTuple):
    """The first-level caches and the last-level one. `notes` say where they differ from the machine's."""

    i1: Geometry
    d1: Geometry
    ll: Geometry
    notes: tuple[str, ...] = ()


def _power_of_two(number: int) -> bool:
    return number > 0 and number & number - 1 == 0


def parse(text: str, option: str) -> Geometry:
    """The geometry ``SIZE,WAYS,LINE``, as in ``32768,8,64`` or ``32K,8,64``. Raises LiveproError for what
    is none."""
    remedy = f"Write it as SIZE,WAYS,LINE: {option} 32768,8,64."
    try:
        size, ways, line = (_number(part) for part in text.split(","))
    except ValueError:
        raise LiveproError(f"{option}: '{text}' is no cache.", remedy) from None
    return check(Geometry(size, ways, line), option)


def _number(text: str) -> int:
    text = text.strip().upper()
    unit = _UNITS.get(text[-1:], 0)
    return int(text[:-1]) * unit if unit else int(text)


def check(cache: Geometry, option: str) -> Geometry:
    """The same. Raises LiveproError if there is no such cache."""
    wrong = ""
    if cache.line < _SMALLEST_LINE or not _power_of_two(cache.line):
        wrong = f"a line of {cache.line} bytes must be a power of two, of {_SMALLEST_LINE} or more"
    elif cache.ways < 1:
        wrong = f"{cache.ways} ways are not possible"
    elif cache.size <= 0 or cache.size % (cache.line * cache.ways):
        wrong = f"{cache.size} bytes are not a multiple of {cache.ways} lines of {cache.line} bytes"
    elif not _power_of_two(cache.sets):
        wrong = f"it has {cache.sets} sets, which must be a power of two"
    if wrong:
        raise LiveproError(f"{option}: {wrong}.", f"For example: {option} 32768,8,64.")
    return cache


def _read(directory: Path) -> tuple[int, str, Geometry] | None:
    try:
        values = {
            n: (directory / n).read_text().strip() for n in ("level", "type", "size", "coherency_line_size")
        }
        ways = int((directory / "ways_of_associativity").read_text())
        return (
            int(values["level"]),
            values["type"],
            Geometry(_number(values["size"]), ways, int(values["coherency_line_size"])),
        )
    except (OSError, ValueError):
        return None


def caches_of_this_machine() -> list[tuple[int, str, Geometry]]:
    """Level, type (Instruction, Data, Unified) and shape of the caches of the first processor, as the kernel
    tells them."""
    return [cache for entry in sorted(_CPU.glob("index*")) if (cache := _read(entry)) is not None]


def _fitted(cache: Geometry, name: str) -> tuple[Geometry, str]:
    """A cache that can be simulated, like one of the machine's: with a power of two of sets."""
    ways, line = max(cache.ways, 1), cache.line
    sets = max(cache.size // line // ways, 1)
    best = min((1 << n for n in range(31)), key=lambda power: abs(power - sets))
    if best * ways * line == cache.size:
        return cache, ""
    fitted = Geometry(best * ways * line, ways, line)
    return fitted, f"{name}: this machine's has {cache.size} bytes in {sets} sets; simulated is {fitted}"


def host(given: Sequence[Geometry | None] = (None, None, None)) -> Hierarchy:
    """The caches of this machine's first processor, as the kernel tells them; common ones where it does
    not. Those `given` (I1, D1, LL) stand instead."""
    found = caches_of_this_machine()
    usual = Geometry(32768, 8, 64), Geometry(32768, 8, 64), Geometry(8 << 20, 16, 64)
    notes, chosen = [], []
    if not found and None in given:
        notes.append("the kernel does not tell this machine's caches; common ones are simulated")
    for name, default, wanted, instead in zip(
        ("I1", "D1", "LL"), usual, (("Instruction",), ("Data", "Unified"), ("Unified",)), given, strict=True
    ):
        if instead is not None:
            chosen.append(instead)
            continue
        levels = [c for c in found if c[1] in wanted and (c[0] == 1 if name != "LL" else c[0] > 1)]
        fitted, note = _fitted(max(levels, key=lambda c: c[0])[2] if levels else default, name)
        chosen.append(fitted)
        if note:
            notes.append(note)
    return Hierarchy(chosen[0], chosen[1], chosen[2], tuple(notes))
