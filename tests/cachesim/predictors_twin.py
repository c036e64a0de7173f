"""Branch predictors, written from their definitions, in plain Python."""

from __future__ import annotations

from typing import Any


def up_or_down(counter: int, taken: bool, least: int, most: int) -> int:
    return min(counter + 1, most) if taken else max(counter - 1, least)


class Bimodal:
    def __init__(self, entries: int = 16384) -> None:
        self.entries = entries
        self.counters: dict[int, int] = {}

    def key(self, address: int) -> int:
        return address % self.entries

    def says(self, address: int) -> bool:
        return self.counters.get(self.key(address), 1) >= 2

    def learn(self, address: int, taken: bool) -> None:
        key = self.key(address)
        self.counters[key] = up_or_down(self.counters.get(key, 1), taken, 0, 3)

    def wrong(self, address: int, taken: bool) -> bool:
        said = self.says(address)
        self.learn(address, taken)
        return said != taken


class Gshare(Bimodal):
    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[bool] = []  # the newest first

    def key(self, address: int) -> int:
        return (address ^ sum(taken << k for k, taken in enumerate(self.outcomes[:14]))) % self.entries

    def wrong(self, address: int, taken: bool) -> bool:
        out = super().wrong(address, taken)
        self.outcomes = [taken, *self.outcomes[:13]]
        return out


class Entry:
    def __init__(self, tag: int, counter: int) -> None:
        self.tag, self.counter, self.useful = tag, counter, 0


class Tage:
    HISTORIES = (5, 10, 18, 35, 68, 130)

    def __init__(self) -> None:
        self.base = Bimodal(8192)
        self.tables: list[dict[int, Entry]] = [{} for _ in self.HISTORIES]
        self.outcomes: list[bool] = []  # the newest first
        self.trust = self.seen = 0

    def fold(self, length: int, bits: int) -> int:
        out = 0
        for k, taken in enumerate(self.outcomes[:length]):
            out ^= taken << k % bits
        return out

    def wrong(self, address: int, taken: bool) -> bool:
        places = []
        for table, length in zip(self.tables, self.HISTORIES, strict=True):
            at = (address ^ address >> 10 ^ self.fold(length, 10)) % 1024
            tag = (address ^ self.fold(length, 9) ^ self.fold(length, 8) * 2) % 512
            places.append((table, at, tag))
        there = [
            (n, table[at])
            for n, (table, at, tag) in enumerate(places)
            if at in table and table[at].tag == tag
        ]
        base = self.base.says(address)
        if there:
            provider, entry = there[-1]
            shorter = there[-2][1].counter >= 0 if len(there) > 1 else base
            own = entry.counter >= 0
            new = entry.useful == 0 and entry.counter in (0, -1)
            said = shorter if new and self.trust >= 0 else own
            if own != shorter:
                if new:
                    self.trust = up_or_down(self.trust, shorter == taken, -8, 7)
                entry.useful = up_or_down(entry.useful, own == taken, 0, 3)
            entry.counter = up_or_down(entry.counter, taken, -4, 3)
        else:
            provider, said = -1, base
            self.base.learn(address, taken)
        if said != taken:
            longer = places[provider + 1 :]
            for table, at, tag in longer:
                if at not in table or table[at].useful == 0:
                    table[at] = Entry(tag, 0 if taken else -1)
                    break
            else:
                for table, at, _ in longer:
                    table[at].useful -= 1
        self.outcomes = [taken, *self.outcomes[:129]]
        self.seen += 1
        if self.seen % 262144 == 0:
            for table in self.tables:
                for each in table.values():
                    each.useful //= 2
        return said != taken


class Returns:
    def __init__(self) -> None:
        self.stack: list[int] = []

    def call(self, behind: int) -> None:
        self.stack = [*self.stack, behind][-16:]

    def wrong(self, target: int) -> bool:
        return (self.stack.pop() if self.stack else None) != target


def conditional() -> dict[str, Any]:
    """Predictors of conditional branches by name."""
    return {"bimodal": Bimodal(), "gshare": Gshare(), "tage": Tage()}
