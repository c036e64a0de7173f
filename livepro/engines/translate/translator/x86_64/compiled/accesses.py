"""What is recorded of instructions, by their shape: asked of iced-x86 once, kept as rows of numbers."""

from __future__ import annotations

from iced_x86 import Code, Decoder, Mnemonic

from livepro.engines.stream.blocks import FLOWS
from livepro.engines.translate.translator.x86_64.compiled import tables
from livepro.engines.translate.translator.x86_64.events.addressing import Place, places_of
from livepro.engines.translate.translator.x86_64.events.recording import Effects, effects_of
from livepro.isa.access import Access
from livepro.isa.x86_64.accesses import accesses_of
from livepro.isa.x86_64.decoder import flow_of

_CANNOT = (tables.NO, *(0,) * (tables.RECORDED_COLUMNS - 1))
_Told = tuple[tuple[Access, ...], list[Place], Effects, int]


def recorded(encoding: bytes, measured: int) -> tuple[int, ...]:
    """What is recorded of the shape of an encoding, which was `measured` so: a row for `tables`.

    The shape holds all of the encoding but its displacement and its immediate. What these change is found
    with others in their place, and must be no more than a row can say.
    """
    head, displacement, immediate = (measured >> shift & 0xFF for shift in (8, 16, 24))
    kept = measured >> 40 & 1
    relative = bool(measured >> 32 & 1)
    behind = head + displacement

    def other(moved: int, value: int) -> _Told | None:
        text = encoding[:head] + moved.to_bytes(displacement, "little")
        text += encoding[behind:] if kept else value.to_bytes(immediate, "little")
        return told(text, relative=relative)

    plain = other(0, 0)
    if plain is None:
        return _CANNOT
    accesses, places, effects, flow = plain
    moved = other(1, 0) if displacement else plain
    longer = other(0, 1) if immediate and not kept else plain
    whole = told(encoding, relative=relative)
    if (
        moved is None
        or longer is None
        or whole is None
        or effects.segment
        or len(places) > tables.MOST_ACCESSES
    ):
        return _CANNOT
    factors = [there.displacement - here.displacement for here, there in zip(places, moved[1], strict=True)]
    by = longer[2].by - effects.by
    offset = _signed(encoding[head:behind]) if displacement else 0
    value = _signed(encoding[behind:]) if immediate and not kept else 0
    expected = [
        place._replace(displacement=place.displacement + factor * offset)
        for place, factor in zip(places, factors, strict=True)
    ]
    if (
        expected != whole[1]
        or effects._replace(by=effects.by + by * value) != whole[2]
        or [each[:4] for each in accesses] != [each[:4] for each in whole[0]]
        or longer[1] != places
        or moved[2] != effects
    ):
        return _CANNOT
    row = [tables.YES, effects.written, effects.moved, effects.by, by, flow, len(places)]
    for access, place, factor in zip(accesses, places, factors, strict=True):
        row += (place.base, place.scaled, place.scale, place.displacement, factor, place.fs, place.moves)
        row += (access.size, access.kind)
    return tuple(row) + (0,) * (tables.RECORDED_COLUMNS - len(row))


def told(encoding: bytes, *, relative: bool) -> _Told | None:
    """Accesses, their places, effects and flow of an instruction at address 0; None where that takes the
    tracer."""
    instruction = Decoder(64, encoding, ip=0).decode()
    if instruction.code == Code.INVALID or instruction.len != len(encoding):
        return None
    if instruction.mnemonic == Mnemonic.ENTER:
        return None  # where it pushes depends on how many bytes it makes room for
    accesses = accesses_of(instruction)
    found = places_of(accesses, 1, relative)
    if found is None or found[1] or len(found[0]) != len(accesses):
        return None
    places = [place for place in found[0] if isinstance(place, Place) and not place.short]
    if len(places) != len(accesses):
        return None
    return accesses, places, effects_of(encoding), FLOWS.index(flow_of(instruction))


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)
