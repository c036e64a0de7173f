"""What has been put into a module's cache while a program runs, as keeping it needs to know it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from livepro.engines.translate.translator.emitted import Field

Array = npt.NDArray[np.int64]
_NO_PAIRS = np.zeros((0, 2), np.int64)


class Record:
    """What has been put into a module's cache since it was opened, for `keeping` (addresses). What compiled
    code has made is taken as it comes: offsets in the cache and in the module, which begin at `base` and
    `start`."""

    def __init__(self, base: int, start: int) -> None:
        self.fields: defaultdict[Field, list[int]] = defaultdict(list)
        self.links: list[tuple[int, int]] = []
        self.landings: list[tuple[int, int, int, bool]] = []
        self.tables: list[int] = []
        self._begins = base, start
        self._made: list[tuple[Array, Array]] = []
        self._landed: list[Array] = []
        self._landing = 0, 0

    def begin(self, start: int) -> None:
        """What compiled code makes is of code that begins at an address."""
        self._begins = self._begins[0], start

    def made(self, fields: Array, links: Array) -> None:
        """Compiled code has made these fields (kind, position) and links (field, target)."""
        self._made.append((fields, links))

    def landed(self, landings: Array, target: int, otherwise: int) -> None:
        """Compiled code has made these landings (for what, where, whether it is likely), each of which says
        what it is for `target` bytes behind its start, and goes on over the displacement `otherwise` bytes
        behind."""
        self._landed.append(landings)
        self._landing = target, otherwise

    def all_fields(self) -> dict[Field, Array]:
        """The positions of all fields, by kind (int64)."""
        base, _ = self._begins
        made = np.concatenate([_NO_PAIRS, *(fields for fields, _ in self._made)])
        out = {}
        for kind in Field:
            mine = np.array(self.fields.get(kind, ()), np.int64)
            out[kind] = np.concatenate((mine, made[made[:, 0] == kind, 1] + base))
        if self._landed:
            places = np.concatenate(self._landed)[:, 1] + base + self._landing[0]
            out[Field.NEGATED] = np.concatenate((out[Field.NEGATED], places))
        return out

    def all_links(self) -> Array:
        """All links: fields and their targets (int64)."""
        made = np.concatenate([_NO_PAIRS, *(links for _, links in self._made)]) + np.array(self._begins)
        return np.concatenate([np.array(self.links, np.int64).reshape(-1, 2), made])

    def links_by_target(self) -> dict[int, list[int]]:
        """The fields of all branches by where they are to lead."""
        links: defaultdict[int, list[int]] = defaultdict(list)
        for field, target in self.all_links().tolist():
            links[target].append(field)
        return dict(links)

    def all_landings(self) -> Array:
        """All landings: for what, where, where the displacement is by which each goes on, and whether it is
        likely (int64)."""
        mine = np.array(self.landings, np.int64).reshape(-1, 4)
        if not self._landed:
            return mine
        base, start = self._begins
        pcs, places, likely = np.concatenate(self._landed).T
        places = places + base
        made = np.stack((pcs + start, places, places + self._landing[1], likely != 0), axis=1)
        return np.concatenate((mine, made))

    def copy(self) -> Record:
        """The same for a forked child to go on with."""
        other = Record(*self._begins)
        for kind, positions in self.fields.items():
            other.fields[kind] = positions.copy()
        other.links = self.links.copy()
        other.landings = self.landings.copy()
        other.tables = self.tables.copy()
        other._made, other._landed, other._landing = self._made.copy(), self._landed.copy(), self._landing
        return other
