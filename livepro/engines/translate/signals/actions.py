"""Signal handlers: what the program asked for, and what the kernel is told instead.

The kernel is given an entry into the code cache in place of each handler, so
that a signal costs one stop: the tracer puts the program's registers into the
thread, the kernel builds the frame from them and goes straight into the cache.
What the program reads back with sigaction is what it set.
"""

from __future__ import annotations

import signal
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livepro.engines.translate import layout
from livepro.engines.translate.translator.backend import Words
from livepro.isa.access import ALL_64
from livepro.isa.base import RegisterLayout
from livepro.linux import proc, ptrace, vm

# struct sigaction of the kernel: handler, flags, restorer, mask (arch/x86/include/uapi/asm/signal.h;
# include/uapi/asm-generic/signal.h where SA_RESTORER is defined, as on AArch64).
_ACTION = struct.Struct("<4Q")
ACTION_SIZE = _ACTION.size
MASK_SIZE = 8  # sizeof(sigset_t) there; rt_sigaction refuses any other
_NOT_HANDLERS = (0, 1)  # SIG_DFL, SIG_IGN: include/uapi/asm-generic/signal-defs.h
_RESETHAND = 0x8000_0000  # SA_RESETHAND, ibid.
_TRAP = 1 << signal.SIGTRAP - 1
_EFAULT = 14  # include/uapi/asm-generic/errno-base.h


@dataclass(slots=True)
class Change:
    """An rt_sigaction on its way: the signal, the action that the program passed (None: none),
    and its own second and third argument."""

    number: int
    wanted: bytes | None
    own: tuple[int, int]


class SignalActions:
    """The signal actions of one process, or of several that share them.

    `known` are the actions, as the program set them, of the signals whose
    handlers the kernel knows by their entries. There may be others, of before
    the process was watched. `trap` is the program's action for SIGTRAP if that is a handler: the kernel
    forgets it when a thread that blocks the signal runs into a breakpoint (force_sig_info_to_task in
    kernel/signal.c), and it must be told again.
    """

    def __init__(self, known: Mapping[int, bytes] | None = None) -> None:
        self.known = dict(known or {})
        self.trap: bytes | None = self.known.get(signal.SIGTRAP)
        self._others: int | None = None if known is None else 0
        self._changing: Counter[int] = Counter()
        self._quick: frozenset[int] = frozenset()
        self.told = bool(known)
        """Whether the kernel may know handlers by their entries."""
        self._sort()

    def copy(self, tid: int, parent: int) -> SignalActions:
        """Those of a new process, `tid`, that was born with a copy of these, its `parent`'s (a thread)."""
        if not self.told:
            return SignalActions()
        caught = caught_by(tid)  # clone3 can leave handlers behind (CLONE_CLEAR_SIGHAND)
        sure = {n: raw for n, raw in self.known.items() if not self._changing[n] and caught >> n - 1 & 1}
        copy = SignalActions(sure)
        copy.trap = self.trap if caught or not caught_by(parent) else None
        copy.told = True
        copy._others = caught & ~sum(1 << n - 1 for n in sure)
        return copy

    def caught(self, tid: int, number: int) -> bool:
        """Whether there is a handler for a signal, as a thread of the process sees it, or may be one.

        One that resets itself (SA_RESETHAND) may be thought to be there for a moment
        when it is not: then the default action is taken at the program's own address.
        """
        if number in self.known or self._changing[number]:
            return True
        if self._others is None:
            self._others = caught_by(tid) & ~sum(1 << n - 1 for n in self.known)
        return bool(self._others >> number - 1 & 1)

    def quick(self, number: int) -> bool:
        """Whether the kernel will surely enter the signal's handler, and in the cache.

        Not while a thread changes the action, nor where a handler resets itself.
        """
        return number in self._quick and not self._changing[number]

    def _sort(self) -> None:
        quick = set()
        for number, raw in self.known.items():
            _, flags, _, mask = _ACTION.unpack(raw)
            # A stop with SIGTRAP blocked resets its action (force_sig_info_to_task in
            # kernel/signal.c): if there is a handler, the tracer must unblock it.
            loses_trap = signal.SIGTRAP in self.known and mask & _TRAP
            if number != signal.SIGTRAP and not flags & _RESETHAND and not loses_trap:
                quick.add(number)
        self._quick = frozenset(quick)

    def forget(self) -> None:
        """The kernel knows handlers by their own addresses, or may: ask it again which there are."""
        self.known.clear()
        self._others = None
        self._sort()

    def given_back(self) -> None:
        """The kernel knows all handlers by their own addresses."""
        self.forget()
        self.told = False
        self.trap = None

    def entered(self, tid: int) -> None:
        """A handler has been entered, other than quickly: it may have been reset."""
        if any(_ACTION.unpack(raw)[1] & _RESETHAND for raw in self.known.values()):
            caught = caught_by(tid)
            for number in [n for n in self.known if not caught >> n - 1 & 1]:
                del self.known[number]
            self._sort()

    def enters_cache(self, tid: int) -> None:
        """A stopped thread is about to run from the code cache: the first stop that it runs into with SIGTRAP
        blocked would unblock it all the same, and have the kernel forget its handler, maybe while a SIGTRAP
        is being delivered to another thread, which would end the program. Raises OSError."""
        if self.trap is not None:
            ptrace.unblock(tid, signal.SIGTRAP)

    # -- rt_sigaction

    def begin(
        self,
        tid: int,
        registers: Any,
        names: RegisterLayout,
        words: Words,
        area: int,
        entry: Callable[[int], int],
    ) -> Change | None:
        """Let an rt_sigaction that a thread is about to make tell the kernel of `entry(handler)`.

        Changes `registers`; the actions go through the thread's area. None if the call
        will fail, or has nothing to tell.
        """
        arguments = names.syscall_arguments
        number, act, old, size = (getattr(registers, name) for name in arguments[:4])
        if size != MASK_SIZE:
            return None
        wanted = None
        if act:
            wanted = vm.read(tid, act, _ACTION.size)
            if wanted is None:
                return None
            handler, *rest = _ACTION.unpack(wanted)
            told = handler if handler in _NOT_HANDLERS else entry(handler)
            words[layout.ACTION // 8 : layout.ACTION // 8 + 4] = np.array((told, *rest), np.uint64)
            setattr(registers, arguments[1], area + layout.ACTION)
        if old:
            setattr(registers, arguments[2], area + layout.FORMER_ACTION)
        number &= 0xFFFF_FFFF  # an int
        self._changing[number] += 1
        self.told = True
        return Change(number, wanted, (act, old))

    def trap_told(self, tid: int, wanted: bytes, former: int) -> None:
        """A thread has told the kernel itself that SIGTRAP's action is to be `wanted` (empty: it asked only),
        and has had it tell at `former` (0: nowhere) what it was, as far as the kernel knew."""
        found = vm.read(tid, former, ACTION_SIZE) if former and self.trap is not None else None
        if found is not None and self.trap is not None and handler_of(found) in _NOT_HANDLERS:
            vm.write(tid, former, self.trap)
        if len(wanted) == ACTION_SIZE:
            self.trap = wanted if handler_of(wanted) not in _NOT_HANDLERS else None

    def undo(self, change: Change, registers: Any, names: RegisterLayout) -> None:
        """The call is not made yet after all, or over: give its arguments back."""
        self._changing[change.number] -= 1
        for name, value in zip(names.syscall_arguments[1:3], change.own, strict=True):
            setattr(registers, name, value)

    def finish(
        self,
        change: Change,
        tid: int,
        registers: Any,
        names: RegisterLayout,
        words: Words,
        handlers: Mapping[int, int],
    ) -> None:
        """The call has been made: take the change down, and let the program have what was before.

        `handlers` are the handlers by their entries. Changes `registers`.
        """
        self.undo(change, registers, names)
        if getattr(registers, names.syscall_result) != 0:
            return
        forgotten = self.trap if change.number == signal.SIGTRAP else None
        if change.wanted is not None:
            number = change.number
            if self._others is None:
                self._others = caught_by(tid) & ~sum(1 << n - 1 for n in self.known)
            self._others &= ~(1 << number - 1)
            self.known.pop(number, None)
            handled = _ACTION.unpack(change.wanted)[0] not in _NOT_HANDLERS
            if handled:
                self.known[number] = change.wanted
            if number == signal.SIGTRAP:
                self.trap = change.wanted if handled else None
            self._sort()
        former = change.own[1]
        if former:
            at = layout.FORMER_ACTION // 8
            told, *rest = (int(word) for word in words[at : at + 4])
            if forgotten is not None and told in _NOT_HANDLERS:
                told, *rest = _ACTION.unpack(forgotten)
            if not vm.write(tid, former, _ACTION.pack(handlers.get(told, told), *rest)):
                setattr(registers, names.syscall_result, -_EFAULT & ALL_64)


def handler_of(action: bytes) -> int:
    """The handler of a struct sigaction of the kernel's."""
    return int(_ACTION.unpack(action)[0])


def with_handler(action: bytes, handler: int) -> bytes:
    """The same with another handler."""
    return _ACTION.pack(handler, *_ACTION.unpack(action)[1:])


def caught_by(tid: int) -> int:
    """The signals that have handlers: bit n - 1 for signal n. None, for a process that is gone.
    Raises OSError or KeyError if that cannot be told: a handler that nobody knows of must not be entered."""
    try:
        return int(proc.status_field(tid, "SigCgt"), 16)
    except (OSError, KeyError):
        if not proc.dying(tid):
            raise
        return 0
