"""From the bytes that a terminal sends to names of keys."""

from __future__ import annotations

from collections.abc import Iterator

ESCAPE = "escape"

# ECMA-48 control sequences as xterm and the terminals after it send them (xterm's
# ctlseqs, "PC-Style Function Keys"; SS3 in application mode; ~ from the VT220).
_SEQUENCES = {
    b"[A": "up",
    b"[B": "down",
    b"[C": "right",
    b"[D": "left",
    b"[H": "home",
    b"[F": "end",
    b"[Z": "backtab",
    b"OA": "up",
    b"OB": "down",
    b"OC": "right",
    b"OD": "left",
    b"OH": "home",
    b"OF": "end",
    b"[1~": "home",
    b"[4~": "end",
    b"[5~": "pageup",
    b"[6~": "pagedown",
    b"[7~": "home",
    b"[8~": "end",
}

_CONTROLS = {
    0x08: "backspace",
    0x09: "tab",
    0x0A: "enter",
    0x0C: "redraw",  # Ctrl-L
    0x0D: "enter",
    0x7F: "backspace",
}


class KeyReader:
    """Cuts a stream of bytes into keys; a sequence may come in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def pending(self) -> bool:
        """Whether bytes are held back that may be the beginning of a sequence."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete with `data`: names, or the characters themselves."""
        self._rest += data
        return list(self._keys(flush=False))

    def flush(self) -> list[str]:
        """The keys in what is left when nothing more has come for a moment: Escape itself."""
        return list(self._keys(flush=True))

    def _keys(self, *, flush: bool) -> Iterator[str]:
        while self._rest:
            first = self._rest[0]
            if first == 0x1B:
                length = _sequence_length(self._rest)
                if length == 0 and not flush:
                    return
                sequence, self._rest = self._rest[1 : length or 1], self._rest[length or 1 :]
                key = _SEQUENCES.get(sequence) if length > 1 else ESCAPE
                if key is not None:
                    yield key
                continue
            if first < 0x20 or first == 0x7F:
                self._rest = self._rest[1:]
                if first in _CONTROLS:
                    yield _CONTROLS[first]
                continue
            length = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4  # UTF-8
            if len(self._rest) < length and not flush:
                return
            character, self._rest = self._rest[:length], self._rest[length:]
            yield character.decode("utf-8", "replace")


def _sequence_length(data: bytes) -> int:
    """Bytes of the escape sequence that `data` begins with; 0 if it is not complete."""
    if len(data) == 1:
        return 0
    if data[1] == ord("O"):
        return 3 if len(data) >= 3 else 0
    if data[1] != ord("["):
        return 1  # Escape, and then another key
    for at in range(2, len(data)):
        if 0x40 <= data[at] <= 0x7E:  # ECMA-48, 5.4: the final byte
            return at + 1
    return 0
