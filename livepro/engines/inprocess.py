"""Commands that a program gives itself: system calls that only livepro understands.

A program asks by reading a symbolic link below /proc/livepro: the path is the
command, and the link's text is the answer. Any language can do that, Java
included, and no other call is as rare that carries text both ways. Without livepro
there is no such link, the call fails with ENOENT, and nothing else happens. The call itself
is executed; what it returned is replaced afterwards.

    /proc/livepro/reset /pause /resume /snapshot[/LABEL] /status
    /proc/livepro/instructions[/WIDTH] /simd[/WIDTH]    of the calling thread, since the last reset

LABEL is percent-encoded. A number is filled up with zeros to WIDTH digits, so that reading it costs
the caller the same whatever it is. A command takes effect right behind the call's instruction,
which is the last one before it. The answer to a command that cannot be carried out
begins with "error: ".

A call is looked at only if its buffer has 4096 to 4351 bytes (or 65,536 n more), as
those of the C library's callers that take any link at all: programs that read thousands
of links by their known sizes, as `ls -l` does, are then not stopped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from livepro.engines.control import COMMANDS, Control
from livepro.engines.recording import BlockStore, ThreadTally
from livepro.engines.window import Counts
from livepro.errors import LiveproError
from livepro.isa.base import Isa
from livepro.tracee import TracedThread

_COMMANDS = tuple(name for name in COMMANDS if name != "detach")  # it concerns who measures
_PREFIX = b"/proc/livepro/"
_WIDEST = 20  # digits of a 64-bit number
_UNKNOWN = -1
_NONE = np.zeros(0, np.int64)
_LONGEST = 4096  # PATH_MAX, include/uapi/linux/limits.h

# Where the path is among the arguments; the buffer and its size follow (readlink(2)).
_PATH_ARGUMENT = {"readlink": 0, "readlinkat": 1}

ASKING_SIZE = 0x10
"""The second byte of the buffer's size in a call that is looked at."""


def may_ask(size: int) -> bool:
    """Whether a call with a buffer of this size is looked at."""
    return size >> 8 & 0xFF == ASKING_SIZE


class Counting(Protocol):
    """What is asked of an engine."""

    control: Control

    def raw_counts(self, tally: ThreadTally) -> Counts:
        """All that is in a thread's counts now."""

    def position(self, tally: ThreadTally) -> Any:
        """Where a thread is in its block."""

    def block_lengths(self, tally: ThreadTally) -> Sequence[int] | npt.NDArray[np.int64]:
        """Instructions of each block, by the row that a thread's counts have for it."""

    def block_parts(self, tally: ThreadTally, row: int) -> tuple[bytes, bytes]:
        """A block's bytes, and the sizes of its instructions."""


class InProcess:
    """Answers the calls that programs make. `sizes` are the numbers of the
    calls to look at, with the place of the buffer's size among their arguments (see `may_ask`)."""

    def __init__(self, engine: Counting, isa: Isa) -> None:
        self._engine = engine
        self._isa = isa
        known = isa.syscalls.numbers
        self._paths = {known[name]: at for name, at in _PATH_ARGUMENT.items() if name in known}
        self.sizes = {number: at + 2 for number, at in self._paths.items()}
        self._simd: dict[bytes, bool] = {}
        self._simd_of_row: WeakKeyDictionary[BlockStore, npt.NDArray[np.int64]] = WeakKeyDictionary()

    def command(self, thread: TracedThread, before: Any) -> str | None:
        """What a stopped thread has asked for with the call that it made with registers
        `before`; None if that was an ordinary call."""
        layout = self._isa.registers
        at = self._paths.get(getattr(before, layout.syscall_number))
        if at is None:
            return None
        if not may_ask(getattr(before, layout.syscall_arguments[at + 2])):
            return None
        address = getattr(before, layout.syscall_arguments[at])
        if thread.read(address, len(_PREFIX)) != _PREFIX:
            return None
        path = thread.read(address, _LONGEST)
        return path[len(_PREFIX) :].split(b"\0", 1)[0].decode(errors="surrogateescape")

    def answer(self, thread: TracedThread, tally: ThreadTally, before: Any, command: str) -> None:
        """Carry out a command, and let the call return the answer. The engine
        knows the thread's position to be right behind the call."""
        try:
            text = self._perform(tally, command)
        except LiveproError as error:
            text = f"error: {error}"
        layout = self._isa.registers
        at = self._paths[getattr(before, layout.syscall_number)]
        buffer, size = (getattr(before, name) for name in layout.syscall_arguments[at + 1 : at + 3])
        data = text.encode(errors="surrogateescape")[: min(size, _LONGEST)]
        try:
            thread.write(buffer, data)
        except OSError:
            return  # nowhere to put it: the call's own error stands
        registers = thread.registers()
        setattr(registers, layout.syscall_result, len(data))
        thread.set_registers(registers)

    def _perform(self, tally: ThreadTally, command: str) -> str:
        name, _, argument = command.partition("/")
        engine = self._engine
        if name in ("instructions", "simd"):
            counts = tally.window.counted(engine.raw_counts(tally).at(engine.position(tally)))
            width = int(argument) if argument.isdecimal() else 0
            if name == "simd":
                found = self._simd_of(tally, counts)
            else:
                found = counts.instructions(engine.block_lengths(tally))
            return str(found).zfill(min(width, _WIDEST))
        if name not in _COMMANDS:
            raise LiveproError(
                f"There is no command '{name}'.",
                f"The commands are {', '.join((*_COMMANDS, 'instructions', 'simd'))}.",
            )
        label = unquote_to_bytes(argument).decode(errors="surrogateescape")
        status = engine.control.execute(name, label)
        return json.dumps(status) if name == "status" else "ok"

    def _simd_of(self, tally: ThreadTally, counts: Counts) -> int:
        known = self._simd_of_row.get(tally.store, _NONE)
        size = int(counts.rows[-1]) + 1 if len(counts.rows) else 0
        if size > len(known):
            known = np.concatenate((known, np.full(max(size, 2 * len(known)) - len(known), _UNKNOWN)))
            self._simd_of_row[tally.store] = known
        for row in counts.rows[known[counts.rows] == _UNKNOWN].tolist():
            known[row] = self._simd_in(tally, row)
        whole = int(counts.times @ known[counts.rows])
        return whole + sum(times * self._simd_in(tally, row, k) for (row, k), times in counts.partial.items())

    def _simd_in(self, tally: ThreadTally, row: int, count: int | None = None) -> int:
        """SIMD instructions among a block's first `count`."""
        code, sizes = self._engine.block_parts(tally, row)
        ends = list(accumulate(sizes[:count]))
        return sum(self._is_simd(code[begin:end]) for begin, end in zip([0, *ends], ends, strict=False))

    def _is_simd(self, encoding: bytes) -> bool:
        known = self._simd.get(encoding)
        if known is None:
            known = self._simd[encoding] = self._isa.describe(encoding).simd is not None
        return known
