"""Instruction-type specifications in the grammar of MICA's `itypes_spec_file`.

MICA reads each line with ``sscanf("%d, %d, %[^,], %[^\\n]")`` (mica_itypes.cpp,
init_itypes)::

    gid, sgid, TYPE, name

`gid` numbers the groups from 0, in order; `sgid` numbers the identifiers of a
group from 0, in any order; TYPE is CATEGORY, OPCODE or SPECIAL. Categories and
operations are Intel XED's; the specials are mem_read, mem_write and
reg_transfer. MICA has neither comments nor empty lines (it would take the line
before once more); here an empty line and one that begins with ``#`` mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from livepro.errors import LiveproError
from livepro.formats.files import open_text
from livepro.model.itypes import SPECIALS, Identifier, IdentifierType, ItypesSpec, Vocabulary

_LINE = re.compile(r"\s*([+-]?\d+),\s*([+-]?\d+),\s*([^,]*),\s*(.+)", re.ASCII)

_PREFIXED = re.compile(r"(?:REP[EN]?E?_)?(\w+?)(?:_LOCK)?")


def read(name: str, vocabulary: Vocabulary | None = None) -> ItypesSpec:
    """The specification in file `name`.

    With a `vocabulary`, categories and operations that no instruction of the
    machine can have are errors as well. Raises LiveproError, with file, line
    and reason, for the first bad line, and for a file that cannot be read or
    has no groups.
    """
    with open_text(name, "r") as file:
        return parse(file, name, vocabulary)


def parse(lines: Iterable[str], name: str, vocabulary: Vocabulary | None = None) -> ItypesSpec:
    """`read` of `lines`; `name` stands for the file in errors."""
    groups: list[dict[int, tuple[int, Identifier]]] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            gid, sgid, identifier = _parse_line(text)
            _check_name(identifier, vocabulary)
            _place(groups, gid, sgid, number, identifier)
        except ValueError as reason:
            raise _bad(name, number, str(reason)) from None
    if not groups:
        raise LiveproError(
            f"{name} specifies no instruction types.",
            "A line reads 'gid, sgid, TYPE, name', from '0, 0, ...' on.",
        )
    for gid, group in enumerate(groups):
        for sgid, (number, _) in group.items():
            if sgid >= len(group):
                gap = f"identifier {sgid} of group {gid}, which has {len(group)}, numbered from 0"
                raise _bad(name, number, gap)
    return ItypesSpec(tuple(tuple(group[sgid][1] for sgid in sorted(group)) for group in groups))


def _bad(name: str, number: int, reason: str) -> LiveproError:
    return LiveproError(f"{name}:{number}: {reason}.", "A line reads 'gid, sgid, TYPE, name'.")


def _parse_line(text: str) -> tuple[int, int, Identifier]:
    match = _LINE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not two numbers, a type and a name with commas between")
    kind = match[3].strip()
    if kind not in IdentifierType.__members__:
        raise ValueError(f"unknown type '{kind}'{_nearest(kind, IdentifierType.__members__)}")
    return int(match[1]), int(match[2]), Identifier(IdentifierType[kind], match[4].strip())


def _place(
    groups: list[dict[int, tuple[int, Identifier]]], gid: int, sgid: int, line: int, identifier: Identifier
) -> None:
    if gid == len(groups):
        groups.append({})
    elif gid < 0 or gid != len(groups) - 1:
        expected = f"{len(groups) - 1} or {len(groups)}" if groups else "0"
        raise ValueError(f"group {gid} where {expected} was expected: groups are numbered from 0, in order")
    if sgid < 0:
        raise ValueError(f"identifier {sgid}: identifiers are numbered from 0")
    if sgid in groups[gid]:
        raise ValueError(f"group {gid} has an identifier {sgid} already, in line {groups[gid][sgid][0]}")
    groups[gid][sgid] = line, identifier


def _check_name(identifier: Identifier, vocabulary: Vocabulary | None) -> None:
    name = identifier.name
    if identifier.type is IdentifierType.SPECIAL:
        if name not in SPECIALS:
            raise ValueError(f"unknown special '{name}'{_nearest(name, SPECIALS)}")
    elif vocabulary is None:
        return
    elif identifier.type is IdentifierType.CATEGORY:
        if name not in vocabulary.categories:
            raise ValueError(f"no instruction is of category '{name}'{_nearest(name, vocabulary.categories)}")
    elif name not in vocabulary.opcodes:
        bare = _PREFIXED.fullmatch(name)
        if bare and bare[1] in vocabulary.opcodes:
            raise ValueError(f"operations are named without their prefixes; write '{bare[1]}' for '{name}'")
        raise ValueError(f"no instruction is called '{name}'{_nearest(name, vocabulary.opcodes)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1) or get_close_matches(name.upper(), sorted(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
