"""From an analysis's plain functions to one compiled loop over records.

The loop's source is made for the functions that there are, and written to a file of its own in
livepro's cache: so numba keeps what it compiled, and finds it again for as long as neither the
loop, nor the file that the functions are in, nor numba has changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from livepro.engines.stream.blocks import FLOWS, StaticTables
from livepro.errors import LiveproError
from livepro.events.analysis import (
    CALL,
    CONDITIONAL,
    HOOKS,
    INDIRECT_CALL,
    INDIRECT_JUMP,
    JUMP,
    RETURN,
    Analysis,
)
from livepro.events.flattening import flattened
from livepro.events.needed import compiler
from livepro.model import Flow

_KINDS = {
    Flow.BRANCH: CONDITIONAL,
    Flow.JUMP: JUMP,
    Flow.CALL: CALL,
    Flow.INDIRECT_JUMP: INDIRECT_JUMP,
    Flow.INDIRECT_CALL: INDIRECT_CALL,
    Flow.RETURN: RETURN,
}
BRANCH_KINDS = np.array([_KINDS.get(flow, -1) for flow in FLOWS], np.int64)
"""The kind of control transfer of each of `FLOWS`, -1 for none."""

_TABLES = (
    *("first", "words_of", "address", "nbytes", "flow", "access_of", "pattern", "size_of", "kind_of"),
    *("lanes_of", "owner_of", "branch_kinds", "last"),
)

_INLINED = True
"""Functions become part of the loop, however long: to hand over a state of a dozen arrays takes thirty
nanoseconds an event."""

_RESOLVE = """\
if last[0] >= 0:
    i = last[0]
    goes = {target}
    kind = branch_kinds[flow[i]]
    taken = 1 if kind != 0 or goes != address[i] + nbytes[i] else 0
    fn_branch(state, thread, i, address[i], goes, taken, kind)
"""

_ACCESSES = """\
begin_access, end_access = access_of[i], access_of[i + 1]
if begin_access < end_access and pattern[begin_access] == 1:
    operands = end_access - begin_access
    length = size_of[begin_access]
    distance = words[at + 1] - words[at]
    step = length if distance >= 0 else -length
    for turn in range(abs(distance) // length):
        for operand in range(operands):
            fn_access(
                state, thread, i, words[at + 2 * operand] + turn * step, length,
                1 if kind_of[begin_access + operand] == 2 else 0,
            )
    at += 2 * operands
else:
    for a in range(begin_access, end_access):
        how, length, lanes, does = pattern[a], size_of[a], lanes_of[a], kind_of[a]
        if how == 0:
            if does & 1:
                fn_access(state, thread, i, words[at], length, 0)
            if does & 2:
                fn_access(state, thread, i, words[at], length, 2 if does & 1 else 1)
            at += 1
        elif how == 5:
            fn_access(state, thread, i, words[at], words[at + 1], does >> 1)
            at += 2
        elif how == 4:
            for lane in range(lanes):
                if words[at] >> lane & 1:
                    fn_access(state, thread, i, words[at + 1 + lane], length, does >> 1)
            at += 1 + lanes
        else:
            mask = words[at + 1]
            if how == 3:
                active = 0
                for lane in range(lanes):
                    active += mask >> lane & 1
                if active:
                    fn_access(state, thread, i, words[at], active * length, does >> 1)
            else:
                begun = -1
                for lane in range(lanes + 1):
                    if lane < lanes and mask >> lane & 1:
                        if begun < 0:
                            begun = lane
                    elif begun >= 0:
                        fn_access(
                            state, thread, i, words[at] + begun * length, (lane - begun) * length, does >> 1
                        )
                        begun = -1
            at += 2
"""

_PLAIN = """\
if flags == 0 and lower == 0 and words_of[number] == 1 + access_of[begin + count] - access_of[begin]:
    for a in range(access_of[begin], access_of[begin + count]):
        if kind_of[a] & 1:
            fn_access(state, thread, owner_of[a], words[at], size_of[a], 0)
        if kind_of[a] & 2:
            fn_access(state, thread, owner_of[a], words[at], size_of[a], 2 if kind_of[a] & 1 else 1)
        at += 1
    count = 0
"""
"""Where only accesses are asked for, nothing is done for each instruction of a block whose accesses have one
word each: they are plain."""

_SKIP = """\
for a in range(access_of[i], access_of[i + 1]):
    how = pattern[a]
    at += 1 if how == 0 else (1 + lanes_of[a] if how == 4 else 2)
"""

_HEAD = (
    "COUNT_SHIFT, FLAGS, FLAGS_SHIFT, GOES_ON, INTERRUPTED, NUMBER, PARTIAL"  # what the words of heads say
)

_SKIP_ALL = """\
if flags == 0:
    if bare == 0:
        at += words_of[number] - 1
    count = 0
"""
"""Where the next record is need not be looked up if no block has accesses: each would wait for the one
before."""


def loop_source(hooks: Mapping[str, object], state: list[str]) -> str:
    """The source of the loop for these functions and these names of a state's arrays."""
    names = [f"s_{name}" for name in state]
    fields = ", ".join(state)
    lines = [
        "# Made by livepro (livepro/events/kernels.py).",
        "from collections import namedtuple",
        f"from livepro.engines.stream import {_HEAD}",
        f"State = namedtuple('State', {state!r})",
        f"def consume(words, thread, lower, bare, {', '.join(_TABLES)}, {', '.join(names)}):",
        f"    state = State({', '.join(names)})  # {fields}",
        "    at, n = 0, len(words)",
        "    while at < n:",
        "        head = words[at]",
        "        at += 1",
        "        flags = head >> FLAGS_SHIFT & FLAGS",
        "        if flags & GOES_ON:",
    ]

    def add(indent: int, text: str) -> None:
        lines.extend(textwrap.indent(text, " " * indent).splitlines())

    if "branch" in hooks:
        add(12, _RESOLVE.format(target="words[at]"))
    add(12, "last[0] = -1\nat += 1\ncontinue")
    add(8, "number = head & NUMBER\nbegin = first[number]\ncount = first[number + 1] - begin")
    add(8, "extra = 0\nif flags & PARTIAL:\n    count = head >> COUNT_SHIFT")
    add(12, "extra = 1 if flags & INTERRUPTED else 0")
    if "branch" in hooks:
        add(8, _RESOLVE.format(target="address[begin]"))
    if "block" in hooks:
        add(8, "if lower == 0:\n    fn_block(state, thread, begin, count)")
    add(8, "e = begin + count - 1\nlast[0] = e if flags == 0 and branch_kinds[flow[e]] >= 0 else -1")
    add(8, "last[1] += count")
    if "instruction" not in hooks:
        add(8, _PLAIN if "access" in hooks else _SKIP_ALL)
    add(8, "for i in range(begin, begin + count + extra):")
    if "instruction" in hooks:
        add(12, "if begin + lower <= i < begin + count:")
        add(16, "fn_instruction(state, thread, i, address[i], nbytes[i])")
    if "access" in hooks:
        add(12, "if i < begin + lower:\n" + textwrap.indent(_SKIP, "    ") + "    continue\n" + _ACCESSES)
    else:
        add(12, _SKIP)
    add(8, "lower = 0")
    return "\n".join(lines) + "\n"


class Kernel:
    """An analysis, compiled: `consume` sees a thread's records, `state` makes what it works on."""

    def __init__(self, analysis: Analysis, name: str, directory: Path) -> None:
        self.analysis = analysis
        self.name = name
        self._hooks = functions(analysis, name)
        self._names = list(self._state())
        self._consume = self._load(directory)

    def _state(self) -> dict[str, np.ndarray[Any, Any]]:
        state = dict(self.analysis.state())
        for key, array in state.items():
            if not isinstance(array, np.ndarray) or not key.isidentifier():
                raise LiveproError(
                    f"{self.name}: `state` gives {type(array).__name__} for '{key}'.",
                    "It must return a dictionary of NumPy arrays by their names.",
                )
        return state

    def state(self) -> list[np.ndarray[Any, Any]]:
        """The arrays of a new state, in order."""
        return list(self._state().values())

    def grow(self, state: list[np.ndarray[Any, Any]], instructions: int) -> None:
        """Give the arrays that have a row for each instruction as many, and one."""
        for name in self.analysis.grows:
            at = self._names.index(name)
            array = state[at]
            if len(array) <= instructions:
                grown = np.zeros((instructions + 1, *array.shape[1:]), array.dtype)
                grown[: len(array)] = array
                state[at] = grown

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return self._names

    def consume(
        self,
        words: np.ndarray[Any, Any],
        thread: int,
        tables: StaticTables,
        last: np.ndarray[Any, Any],
        state: list[np.ndarray[Any, Any]],
        lower: int = 0,
    ) -> None:
        """See the records `words` (int64) of a thread; `last` (int64, 2) is what it remembers from chunk to
        chunk: the branch whose outcome is not known yet (-1 at first), and the instructions seen. The first
        `lower` instructions of the first record have been executed before, and are not seen, nor that a
        block begins."""
        self._consume(
            words,
            thread,
            lower,
            int(tables.bare),
            tables.first,
            tables.words,
            tables.address.view(np.int64),
            tables.bytes,
            tables.flow,
            tables.access,
            tables.pattern,
            tables.size,
            tables.kind,
            tables.lanes,
            tables.owner,
            BRANCH_KINDS,
            last,
            *state,
        )

    def _load(self, directory: Path) -> Callable[..., None]:
        with compiler():
            import numba
        hooks, given = dict(self._hooks), {}
        for name, hook in self._hooks.items():
            made = flattened(hook, self._names)
            if made is not None:
                hooks[name], used = made
                given[name] = ", ".join(f"s_{array}" for array in used)
        source = loop_source(hooks, self._names)
        for name, arrays in given.items():
            source = re.sub(rf"(fn_{name}\(\s*)state\b", rf"\g<1>{arrays}", source)
        if len(given) == len(hooks):
            source = re.sub(r"\n    state = State\([^\n]*", "", source)
        if not getattr(numba.config, "DISABLE_JIT"):  # noqa: B009
            # Views whose references are not counted: counting them costs some ten nanoseconds an event each.
            views = "".join(f"    s_{n} = carray(pointer(s_{n}), s_{n}.shape)\n" for n in self._names)
            source = source.replace("    at, n = 0, len(words)\n", views + "    at, n = 0, len(words)\n", 1)
            imports = "from numba import carray\nfrom livepro.events.pointers import pointer\n"
            source = imports + source
        kernels = {name: numba.njit(nogil=True, forceinline=_INLINED)(hook) for name, hook in hooks.items()}
        tag = hashlib.sha256(source.encode())
        for hook in self._hooks.values():
            # What numba keeps names the module, which for a user's file is called by its path.
            tag.update(f"{hook.__module__}.{hook.__qualname__}".encode())
            tag.update(_text_of(hook))
        made_for = numba.__version__, sys.version_info[:2], _INLINED, sorted(vars(self.analysis).items())
        tag.update(repr(made_for).encode())
        name = f"livepro_kernel_{tag.hexdigest()[:24]}"
        module = _module(name, source, directory)
        for hook_name, kernel in kernels.items():
            setattr(module, f"fn_{hook_name}", kernel)
        compiled = numba.njit(nogil=True, cache=module.__file__ is not None)(module.consume)
        return compiled

    def compile(self, tables: StaticTables) -> None:
        """Compile it, or load what is kept, by seeing no records. Raises LiveproError that names the
        line that cannot be compiled."""
        try:
            self.consume(np.zeros(0, np.int64), 0, tables, np.full(1, -1, np.int64), self.state())
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> LiveproError:
        files = {inspect.getsourcefile(hook) for hook in self._hooks.values()}
        text = str(error)
        place = ""
        for file, line in re.findall(r'File "([^"]+)", line (\d+)', text):
            whole = next((f for f in files if f and (f == file or f.endswith("/" + file))), "")
            if whole:
                shown = linecache.getline(whole, int(line)).strip()
                place = f"{whole}, line {line}: `{shown}` "
        said = [line.strip() for line in re.sub("\x1b\\[[0-9;]*m", "", text).splitlines() if line.strip()]
        reason = next(
            (line for line in said if not line.startswith(("Failed in", "-", ">>>", "During", "File"))), "?"
        )
        return LiveproError(
            f"{self.name} cannot be compiled. {place}({reason})",
            "The functions of an analysis may use numbers, NumPy arrays and other such functions: numba's "
            "manual lists what Python it compiles.",
        )


def functions(analysis: Analysis, name: str) -> dict[str, Callable[..., None]]:
    """The functions of an analysis that see events. Raises LiveproError if there are none, or they do
    not take what they are given."""
    found = {}
    for hook, parameters in HOOKS.items():
        function = getattr(type(analysis), hook, None)
        if function is None:
            continue
        given = [p.name for p in inspect.signature(function).parameters.values()]
        if len(given) != len(parameters):
            raise LiveproError(
                f"{name}: `{hook}` takes ({', '.join(given)}).",
                f"It must take ({', '.join(parameters)}), and no `self`.",
            )
        found[hook] = function
    if not found:
        raise LiveproError(
            f"{name} has none of the functions {', '.join(HOOKS)}, so it would see nothing.",
            "Give it one: def access(state, thread, instruction, address, size, write).",
        )
    if type(analysis).state is Analysis.state:
        raise LiveproError(
            f"{name} has no method `state`.", "Give it one that returns a dictionary of NumPy arrays."
        )
    return found


def _text_of(hook: Callable[..., None]) -> bytes:
    """The whole file that a function is in: what it uses may be anywhere there."""
    file = inspect.getsourcefile(hook)
    try:
        return Path(file).read_bytes() if file else hook.__code__.co_code
    except OSError:
        return hook.__code__.co_code


def _module(name: str, source: str, directory: Path) -> ModuleType:
    """The module with that source, in a file in `directory` if that can be written."""
    path = directory / f"{name}.py"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_text(source)
            part.replace(path)
        specification = importlib.util.spec_from_file_location(name, path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[name] = module
        specification.loader.exec_module(module)
    except OSError:
        module = ModuleType(name)
        module.__file__ = None
        exec(compile(source, name, "exec"), vars(module))
    return module
