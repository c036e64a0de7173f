"""The stops of threads that have come to new code, waited for and answered one after the other."""

# mypy: ignore-errors

from __future__ import annotations

import os

from numba import njit, types

from livepro.engines.translate.translator.x86_64.compiled.tables import (
    ARGUMENTS,
    CACHE,
    CACHE_END,
    CODE_END,
    CODE_START,
    END_MODULE,
    END_ROW,
    FIRST_MODULE,
    FIRST_ROW,
    MISS,
    NEXT_CELL,
    SPACE,
    TID,
    WHICH,
)
from livepro.isa.x86_64.registers import Registers
from livepro.linux.ptrace import PTRACE_CONT, PTRACE_PEEKUSER, PTRACE_POKEUSER
from livepro.linux.wait import TRAP_STATUS

_PC, _BRANCHES_TO = Registers.rip.offset, Registers.rax.offset
_WNOHANG = os.WNOHANG

_waitpid = types.ExternalFunction("waitpid", types.int32(types.int32, types.int64, types.int32))
_sched_yield = types.ExternalFunction("sched_yield", types.int32())
_ptrace = types.ExternalFunction("ptrace", types.int64(types.int64, types.int64, types.int64, types.int64))


def answering(arriving):
    """A kernel that answers stops by `arriving`: `arrive`, given where its arguments are, the stop's address
    (0: none), the address that is branched to, the next cell and the row of the log."""

    @njit(nogil=True)  # (Arrays made of addresses take numba's runtime, in name.)
    def answer(threads, spaces, modules, log, heard, at, flags, patience):
        """Wait for threads that make stops, after the one that is `heard` already, if any, and let those of
        `threads` go on that have come to new code of one of the `modules` of their code cache, one of
        `spaces`: it is translated, its first block counted in the next cell. What they have come to is in
        `log`. Returns how many they were: when that is full, when nobody stops for a while, or with a stop
        that is something else, whose tid and status are `heard` (0: none). `at` is the address of that,
        `flags` are those of waitpid. The processor is left to others `patience` times while nobody stops."""
        answered, idle = 0, 0
        tid = heard[0]
        while answered < len(log):
            if tid == 0:
                heard[1] = 0
                tid = _waitpid(-1, at + 8, flags | _WNOHANG)
                if tid == 0:
                    idle += 1
                    if idle > patience:
                        break
                    _sched_yield()
                    continue
                if tid < 0:
                    break
            idle = 0
            status = heard[1] & 0xFFFF_FFFF
            goes_on, which, space = -1, -1, -1
            if status == TRAP_STATUS:
                for i in range(len(threads)):
                    if threads[i, TID] == tid:
                        space = threads[i, SPACE]
            if space >= 0:
                # (A request that fails says -1, which is in no module.)
                stop, target = _ptrace(PTRACE_PEEKUSER, tid, _PC, 0) - 1, 0
                if stop == spaces[space, MISS]:
                    stop, target = 0, _ptrace(PTRACE_PEEKUSER, tid, _BRANCHES_TO, 0)
                for i in range(spaces[space, FIRST_MODULE], spaces[space, END_MODULE]):
                    if stop:
                        found = stop >= modules[i, CACHE] and stop < modules[i, CACHE_END]
                    else:
                        found = target >= modules[i, CODE_START] and target < modules[i, CODE_END]
                    if found:
                        which = i
                        break
                if which >= 0:
                    cell = spaces[space, NEXT_CELL]
                    goes_on = arriving(modules[which, ARGUMENTS], stop, target, cell, answered)
            if goes_on < 0:
                heard[0], heard[1] = tid, status
                return answered
            log[answered, WHICH] = which
            spaces[space, NEXT_CELL] += log[answered, END_ROW] - log[answered, FIRST_ROW]
            answered += 1
            if _ptrace(PTRACE_POKEUSER, tid, _PC, goes_on) == -1:  # killed, or Python says why
                heard[0], heard[1] = tid, status
                return answered
            _ptrace(PTRACE_CONT, tid, 0, 0)
            tid = 0
        heard[0] = 0
        return answered

    return answer
