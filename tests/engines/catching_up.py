"""Runs a command under the translate engine, letting threads step to where the tracer would
have brought them by itself, and compares.

    catching_up.py [--allowing] COMMAND [ARGS...]

Wherever a signal finds a thread within an emitted sequence, the rest of that is carried
out on a copy of its registers and of its area, and then by the thread. Prints how many
sequences were compared, and what differed. With --allowing blocks take allowances, for short intervals.
"""

from __future__ import annotations

import sys
from typing import Any

from engines.allowing import allow_always

import livepro
from livepro.engines.translate import layout
from livepro.engines.translate.signals import settling
from livepro.engines.translate.thread import TranslatedThread
from livepro.engines.translate.translator.x86_64 import X86_64
from livepro.engines.translate.translator.x86_64.rollforward import roll_forward

_RESUME = 0x10000  # RF: set or not by how the thread was stopped, SDM vol. 1, 3.4.3
_EXPECTED: dict[int, tuple[int, bytes, dict[int, int]]] = {}
_compared = 0
_different: list[str] = []

_settle = settling.StateTranslation.settle


class Changes:
    """A thread's area, which is large, as it would be with some words changed."""

    def __init__(self, words: Any) -> None:
        self._words = words
        self.changed = {at: int(word) for at, word in enumerate(words[: layout.COUNTERS // 8].tolist())}

    def __getitem__(self, at: int) -> int:
        return self.changed[at] if at in self.changed else int(self._words[at])

    def __setitem__(self, at: int, word: int) -> None:
        self.changed[at] = int(word)


def _content(registers: Any) -> tuple[int, bytes]:
    kept = type(registers).from_buffer_copy(registers)
    kept.eflags &= ~_RESUME
    kept.orig_rax = 0  # -1 behind any stop in between
    return registers.rip, bytes(kept)


def _foresee(state: TranslatedThread, registers: Any) -> None:
    registers = type(registers).from_buffer_copy(registers)
    words = Changes(state.words)
    steps = 0
    space = state.space
    while True:
        pc = registers.rip
        if pc in space.memory.refill:
            break  # what is done there the tracer does otherwise: see test_translate_refilling
        place = space.memory.locate(pc)
        if (place is not None and place.exact) or pc in space.linker.exits or pc in space.handlers.handlers:
            break
        if space.memory.stop_at(pc) is not None or not roll_forward(
            registers, words, state.area_address, state.thread.read
        ):
            break
        steps += 1
    if steps:
        _EXPECTED[state.thread.tid] = *_content(registers), words.changed


def _compare(self: Any, state: TranslatedThread, registers: Any, *, fault: bool = False) -> None:
    global _compared
    tid = state.thread.tid
    if tid not in _EXPECTED:
        _foresee(state, registers)
    elif registers.rip == _EXPECTED[tid][0]:
        *expected, changed = _EXPECTED.pop(tid)
        _compared += 1
        found = {at: int(state.words[at]) for at in changed}
        if (*_content(registers), found) != (*expected, changed):
            _different.append(hex(expected[0]))
    _settle(self, state, registers, fault=fault)
    if state.held is None:
        _EXPECTED.pop(tid, None)


def main() -> None:
    settling.StateTranslation.settle = _compare  # type: ignore[method-assign]
    X86_64.roll_forward = staticmethod(lambda *_: False)  # type: ignore[assignment]
    _, *command = sys.argv
    options: dict[str, Any] = {}
    if command[0] == "--allowing":
        allow_always()
        options["interval_size"] = 100_000
        del command[0]
    result = livepro.run(command, engine="translate", **options)
    print(
        "exit",
        result.exit,
        "compared",
        "some" if _compared > 5 else _compared,
        "different",
        sorted(set(_different)),
    )


if __name__ == "__main__":
    main()
