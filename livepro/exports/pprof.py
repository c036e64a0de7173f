"""pprof's format (google/pprof, proto/profile.proto): a sample for each function and thread.

The protocol-buffer encoding of the few messages is written here (Protocol Buffers documentation,
"Encoding"): a library for it would be more to install than this.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable

from livepro.exports.rows import Document, rows


class _Strings:
    """The string table: text to number, the empty one first."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))


def export(document: Document) -> bytes:
    """The profile, gzipped. Numbers behind the names are the fields' in profile.proto."""
    strings = _Strings()
    mappings: dict[str, int] = {}
    functions: dict[tuple[str, str], int] = {}
    samples = []
    for row in rows(document):
        mappings.setdefault(row.module, len(mappings) + 1)
        function = functions.setdefault((row.module, row.function), len(functions) + 1)
        labels = [("process", row.process)] + ([("thread", row.thread)] if row.thread else [])
        samples.append(
            _message(1, _varint(function))  # location_id, packed: that of the function
            + _message(2, _varint(row.instructions))  # value, packed
            + b"".join(_message(3, _number(1, strings(k)) + _number(2, strings(v))) for k, v in labels)
        )
    out = [_message(1, _number(1, strings("instructions")) + _number(2, strings("count")))]  # sample_type
    out += [_message(2, sample) for sample in samples]
    out += [
        _message(3, _number(1, number) + _number(5, strings(module)) + _number(7, 1))  # has_functions
        for module, number in mappings.items()
    ]
    for (module, name), number in functions.items():
        line = _message(4, _number(1, number))
        out.append(_message(4, _number(1, number) + _number(2, mappings[module]) + line))  # location
        named = _number(2, strings(name)) + _number(3, strings(name))
        out.append(_message(5, _number(1, number) + named))  # function
    out += [_message(6, text.encode("utf-8", "replace")) for text in strings.known]  # string_table
    return gzip.compress(_joined(out), 6, mtime=0)


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join(parts)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
