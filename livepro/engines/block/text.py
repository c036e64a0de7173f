"""The breakpoints in one address space, and its code as it would read without them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from livepro.isa.base import Breakpoint, Carry
from livepro.linux.proc import Memory

_PAGE_BITS = 12
_PAGE = 1 << _PAGE_BITS
_PAGE_MASK = (1 << _PAGE) - 1


class Site:
    """A place for a breakpoint: a terminator and what carries it out.

    `original` are the bytes that the breakpoint replaces while it is `planted`.
    A `barred` site must be executed by the processor, so that no breakpoint may
    stand there.
    """

    __slots__ = ("address", "barred", "carry", "original", "planted")

    def __init__(self, address: int, original: bytes, carry: Carry) -> None:
        self.address = address
        self.original = original
        self.carry = carry
        self.planted = False
        self.barred = False


class PlaceSet:
    """A set of addresses, as a mask of bits for each page that has one."""

    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def add(self, address: int, mask: int = 1) -> None:
        """Add `address` + n for each bit n of `mask`."""
        page, bits = address >> _PAGE_BITS, mask << (address & _PAGE - 1)
        while bits:
            self._masks[page] = self._masks.get(page, 0) | bits & _PAGE_MASK
            bits >>= _PAGE
            page += 1

    def among(self, address: int, mask: int) -> Iterator[int]:
        """Those of `address` + n, for each bit n of `mask`, that are in the set."""
        page, bits = address >> _PAGE_BITS, mask << (address & _PAGE - 1)
        while bits:
            common = self._masks.get(page, 0) & bits & _PAGE_MASK
            while common:
                low = common & -common
                yield (page << _PAGE_BITS) + low.bit_length() - 1
                common ^= low
            bits >>= _PAGE
            page += 1

    def discard(self, address: int) -> None:
        """Take one address out."""
        page = address >> _PAGE_BITS
        left = self._masks.get(page, 0) & ~(1 << (address & _PAGE - 1))
        if left:
            self._masks[page] = left
        else:
            self._masks.pop(page, None)

    def discard_pages(self, start: int, end: int) -> None:
        """Take out all that lie in the pages of [start, end)."""
        first, behind = start >> _PAGE_BITS, (end + _PAGE - 1) >> _PAGE_BITS
        for page in [p for p in self._masks if first <= p < behind]:
            del self._masks[page]

    def add_to(self, other: PlaceSet) -> None:
        """Have another set, which has none of these pages, hold the same places, too."""
        other._masks.update(self._masks)


class Text:
    """The code of one address space, which several processes may share (vfork).

    `version` changes whenever a breakpoint that was planted may no longer be:
    a plan made under another version must be looked at again. It is -1, the
    version of no plan, while the threads in `pending` (tids) have yet to stop
    before the sites in `leaving` (and whether to forget them) can be given back;
    threads that stop meanwhile wait in `waiting` (tids). A `closed` text takes no
    more breakpoints: its new sites are barred.
    """

    def __init__(self, breakpoint: Breakpoint) -> None:
        self.breakpoint = breakpoint
        self.version = 0
        self.closed = False
        self.sites: dict[int, Site] = {}
        self.pending: set[int] = set()
        self.leaving: dict[Site, bool] = {}
        self.waiting: list[int] = []
        self._versions = 0
        self._places = PlaceSet()
        self._insides = PlaceSet()  # bytes of decoded instructions but their first
        self._free = PlaceSet()  # where no breakpoint may stand

    # -- reading

    def read(self, memory: Memory, address: int, size: int) -> bytes:
        """Like `memory.read`, with the bytes that breakpoints have replaced."""
        code = memory.read(address, size)
        reach = len(self.breakpoint.code) - 1
        patched: bytearray | None = None
        for place in self._places.among(address - reach, (1 << len(code) + reach) - 1):
            site = self.sites[place]
            if site.planted:
                patched = bytearray(code) if patched is None else patched
                for n, byte in enumerate(site.original):
                    if 0 <= place + n - address < len(code):
                        patched[place + n - address] = byte
        return code if patched is None else bytes(patched)

    # -- sites

    def site(self, address: int, code: bytes, carry: Carry) -> Site:
        """The site at `address`, where the instruction `code` stands; barred from the start
        if the address lies inside another instruction that has been executed."""
        site = self.sites.get(address)
        if site is None:
            site = self.sites[address] = Site(address, code[: len(self.breakpoint.code)], carry)
            self._places.add(address)
            site.barred = self.closed or any(
                any(places.among(address, 1)) for places in (self._insides, self._free)
            )
        return site

    def keep_free(self, addresses: list[int]) -> list[Site]:
        """Bar the sites to come at `addresses`; returns those that there are already."""
        for address in addresses:
            self._free.add(address)
        return [self.sites[address] for address in addresses if address in self.sites]

    def occupy(self, addresses: tuple[int, ...]) -> list[Site]:
        """Note the instructions that begin at `addresses` (the last one ends there).

        Returns the sites that lie inside one of them: jumps into the middle of
        instructions make two readings of the same bytes.
        """
        start, end = addresses[0], addresses[-1]
        mask = (1 << end - start) - 1
        for address in addresses[:-1]:
            mask ^= 1 << address - start
        if not mask:
            return []
        self._insides.add(start, mask)
        return [self.sites[place] for place in self._places.among(start, mask)]

    def plant(self, site: Site, memory: Memory) -> None:
        """Put the breakpoint in. Raises OSError where nothing is mapped."""
        site.planted = True
        try:
            memory.write(site.address, self.breakpoint.code)
        except OSError:
            # A breakpoint that nobody knows of would end the program: what may be there of it goes.
            with contextlib.suppress(OSError):
                memory.write(site.address, site.original)
            site.planted = False
            raise

    def lift(self, site: Site, memory: Memory) -> None:
        """Give the original bytes back."""
        if site.planted:
            site.planted = False
            memory.write(site.address, site.original)

    def lift_all(self, memory: Memory) -> None:
        """Give all original bytes back, and take no more breakpoints."""
        pages: dict[int, list[Site]] = {}
        for site in self.sites.values():
            site.barred = True
            if site.planted:
                pages.setdefault(site.address & -_PAGE, []).append(site)
        self.closed = True
        self.renew()
        for sites in pages.values():
            # A write costs more than its length.
            first = min(site.address for site in sites)
            last = max(site.address + len(site.original) for site in sites)
            content = bytearray(memory.read(first, last - first))
            if len(content) == last - first:
                for site in sites:
                    at = site.address - first
                    content[at : at + len(site.original)] = site.original
                memory.write(first, bytes(content))
            else:  # it could not be read
                for site in sites:
                    memory.write(site.address, site.original)
            for site in sites:
                site.planted = False

    def forget(self, site: Site) -> None:
        """Drop a site, whatever stands there now."""
        if self.sites.get(site.address) is site:
            del self.sites[site.address]
            self._places.discard(site.address)

    def within(self, start: int, end: int) -> list[Site]:
        """The sites in [start, end)."""
        return [site for site in self.sites.values() if start <= site.address < end]

    def unmapped(self, start: int, end: int) -> None:
        """Forget the instructions in [start, end)."""
        self._insides.discard_pages(start, end)
        self._free.discard_pages(start, end)

    # -- versions

    def suspend(self) -> None:
        """Let no plan hold until `renew`."""
        self.version = -1

    def renew(self) -> None:
        """Let only plans made from now on hold."""
        self._versions += 1
        self.version = self._versions

    # -- copies

    def inherited(self, memory: Memory) -> Text:
        """The text of a child that has a copy of this address space.

        What is planted is read from the child's memory: between the fork and
        its report other threads of the parent may have gone on.
        """
        child = Text(self.breakpoint)
        child.closed = self.closed
        planted = set(_planted(self.sites.values(), memory, self.breakpoint.code))
        for site in self.sites.values():
            copy = child.site(site.address, site.original, site.carry)
            copy.planted = site in planted
            copy.barred = site.barred
        self._insides.add_to(child._insides)
        self._free.add_to(child._free)
        return child

    def restore(self, memory: Memory) -> None:
        """Give `memory`, this address space or a copy of it, all original bytes back. Raises OSError where
        they cannot be written to what is there."""
        for site in _planted(self.sites.values(), memory, self.breakpoint.code):
            try:
                memory.write(site.address, site.original)
            except OSError:
                if memory.read(site.address, 1):  # else nothing is mapped there any more
                    raise


def _planted(sites: Iterable[Site], memory: Memory, code: bytes) -> Iterator[Site]:
    """Those of `sites` where the breakpoint `code` stands in `memory`, or may stand as it cannot be read.
    Each page is read once."""
    pages: dict[int, list[Site]] = {}
    for site in sites:
        pages.setdefault(site.address & -_PAGE, []).append(site)
    for page, here in pages.items():
        content = memory.read(page, _PAGE + len(code))
        for site in here:
            at = site.address - page
            stands = content[at : at + len(code)]
            if stands == code or (site.planted and len(stands) < len(code)):
                yield site


class Original:
    """A process's memory as it reads without breakpoints."""

    def __init__(self, text: Text, memory: Memory) -> None:
        self._text, self._memory = text, memory

    def read(self, address: int, size: int) -> bytes:
        return self._text.read(self._memory, address, size)
