"""The record that the driver writes for each sequence, item by item."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from .code import DATA_CENTRE, State, words
from .generator import DATA_SIZE, STACK_SIZE, STACK_TOP

SLOT_SIZE = DATA_SIZE + STACK_SIZE
INPUT_SIZE = 2432
OUTPUT_SIZE = 2576
RECORD_SIZE = OUTPUT_SIZE + SLOT_SIZE

_GPRS, _MASKS, _FLAGS, _MXCSR, _X87, _SIGNAL, _FRAME = 2048, 2176, 2240, 2248, 2256, 2368, 2392
_NAMES = words("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15")
_FRAME_NAMES = words(
    "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip eflags csgsfs err trapno oldmask cr2"
)
_FLAG_BITS = {
    "cf": 0, "pf": 2, "af": 4, "zf": 6, "sf": 7, "tf": 8, "if": 9, "df": 10,
    "of": 11, "nt": 14, "rf": 16, "ac": 18, "id": 21,
}  # fmt: skip
_PAGE_FAULT = 14


def pack_input(state: State, data: int, entry: int) -> bytes:
    """What the driver loads: `data` is the address of the data area's start, `entry` that of the code."""
    registers = list(state.registers)
    registers[4] = data + DATA_SIZE + STACK_TOP
    if state.anchor is not None:
        registers[state.anchor] = data + DATA_CENTRE
    out = state.vectors + struct.pack("<16Q", *registers) + struct.pack("<8Q", *state.masks)
    out += struct.pack("<QQ", state.flags, state.mxcsr) + state.x87.ljust(112, b"\0")
    return (out + entry.to_bytes(8, "little")).ljust(INPUT_SIZE, b"\0")


@dataclass(frozen=True)
class Difference:
    """One item of the final state: what it is natively, and what it was under the engine."""

    item: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"{self.item}: native {self.expected}, here {self.actual}"


def normalise(record: bytes) -> bytes:
    """The record without what no program can rely on.

    The x87 last-instruction and last-operand addresses name the place of the
    instruction, which a code cache changes (Intel SDM volume 1, 8.1.8). The
    signal part is void without a signal, its cr2 without a page fault.
    """
    out = bytearray(record)
    out[_X87 + 12 : _X87 + 28] = bytes(16)
    if not any(out[_SIGNAL : _SIGNAL + 8]):
        out[_SIGNAL:OUTPUT_SIZE] = bytes(OUTPUT_SIZE - _SIGNAL)
    elif int.from_bytes(out[_FRAME + 20 * 8 : _FRAME + 21 * 8], "little") != _PAGE_FAULT:
        out[_FRAME + 22 * 8 : _FRAME + 23 * 8] = bytes(8)
    return bytes(out)


def fault_address(record: bytes) -> int | None:
    """Where the program was when a signal ended the sequence; None without a signal."""
    if not signal_of(record):
        return None
    return int.from_bytes(record[_FRAME + 16 * 8 : _FRAME + 17 * 8], "little")


def _without_flags(record: bytes, bits: int) -> bytes:
    """The record with these flags cleared, in the state and in the signal frame."""
    out = bytearray(record)
    for at in (_FLAGS, _FRAME + 17 * 8):
        out[at : at + 8] = (int.from_bytes(out[at : at + 8], "little") & ~bits).to_bytes(8, "little")
    return bytes(out)


def signal_of(record: bytes) -> int:
    """The signal that ended the sequence, or 0."""
    return int.from_bytes(record[_SIGNAL : _SIGNAL + 8], "little")


def differences(expected: bytes, actual: bytes, dead: int = 0) -> list[Difference]:
    """The items in which two records differ, named. `dead` flags are not compared."""
    if expected == actual:
        return []
    if len(actual) != len(expected):
        return [Difference("record", f"{len(expected)} bytes", f"{len(actual)} bytes")]
    expected, actual = (_without_flags(normalise(record), dead) for record in (expected, actual))
    if expected == actual:
        return []
    out = []
    for (name, old), (_, new) in zip(_items(expected), _items(actual), strict=True):
        if old != new:
            out.append(Difference(name, _show(name, old), _show(name, new)))
            if name.endswith("flags"):
                changed = int.from_bytes(old, "little") ^ int.from_bytes(new, "little")
                bits = [bit for bit, place in _FLAG_BITS.items() if changed >> place & 1]
                out[-1] = Difference(f"{name} ({' '.join(bits)})", out[-1].expected, out[-1].actual)
    return out


def _show(name: str, value: bytes) -> str:
    if len(value) <= 8:
        return hex(int.from_bytes(value, "little"))
    return value[::-1].hex()


def _items(record: bytes) -> Iterator[tuple[str, bytes]]:
    """The record's items, registers first."""
    for index, name in enumerate(_NAMES):
        yield name, record[_GPRS + 8 * index : _GPRS + 8 * index + 8]
    yield "flags", record[_FLAGS : _FLAGS + 8]
    names = ("signal", "signal code", "signal address", *(f"frame {name}" for name in _FRAME_NAMES))
    for index, name in enumerate(names):
        yield name, record[_SIGNAL + 8 * index : _SIGNAL + 8 * index + 8]
    for index in range(32):
        yield f"zmm{index}", record[64 * index : 64 * index + 64]
    for index in range(8):
        yield f"k{index}", record[_MASKS + 8 * index : _MASKS + 8 * index + 8]
    yield "mxcsr", record[_MXCSR : _MXCSR + 4]
    for index, name in enumerate(("control", "status", "tag")):
        yield f"x87 {name} word", record[_X87 + 4 * index : _X87 + 4 * index + 4]
    for index in range(8):
        yield f"st{index}", record[_X87 + 28 + 10 * index : _X87 + 38 + 10 * index]
    slot = record[OUTPUT_SIZE:]
    for offset in range(0, DATA_SIZE, 8):
        yield f"data[{offset - DATA_CENTRE:+d}]", slot[offset : offset + 8]
    for offset in range(0, STACK_SIZE, 8):
        place = DATA_SIZE + offset
        yield f"stack[{offset - STACK_TOP:+d}]", slot[place : place + 8]
