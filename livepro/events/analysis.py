"""What an analysis of the event stream is: a state, functions that see events, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from livepro.events.program import Program
    from livepro.events.pump import Consumer
    from livepro.isa.base import Isa

CONDITIONAL, JUMP, CALL, INDIRECT_JUMP, INDIRECT_CALL, RETURN = range(6)
"""What `branch` is told as `kind`."""

HOOKS: Mapping[str, tuple[str, ...]] = {
    "access": ("state", "thread", "instruction", "address", "size", "write"),
    "instruction": ("state", "thread", "instruction", "address", "size"),
    "block": ("state", "thread", "instruction", "length"),
    "branch": ("state", "thread", "instruction", "address", "target", "taken", "kind"),
}
"""The functions that an analysis may have, and what they are given."""


class Analysis:
    """Base of all analyses of the event stream.

    A subclass defines at least one of these functions. They are compiled (by numba) and get plain
    integers; `state` has the arrays of the method `state` as attributes. None of them takes `self`.

    - ``access(state, thread, instruction, address, size, write)``: bytes in memory are read (`write` 0) or
      written (1; 2 where the instruction has just read the same bytes).
    - ``instruction(state, thread, instruction, address, size)``: an instruction has been executed.
    - ``block(state, thread, instruction, length)``: a basic block begins, with that instruction and as many
      as `length`; less where the thread leaves it before its end.
    - ``branch(state, thread, instruction, address, target, taken, kind)``: a control transfer; `kind` is one
      of CONDITIONAL, JUMP, CALL, INDIRECT_JUMP, INDIRECT_CALL, RETURN of this module.

    `instruction` is an index into the tables of `Program`, `thread` counts the threads of the run from 0.
    Each thread has a state of its own, and events in program order. With `shared` all threads of a
    process have one, and see chunks of events in the order in which these were recorded.

    The first line of the class's docstring says what it tells. Keyword arguments of its `__init__`
    are the options that a user may give.
    """

    name: ClassVar[str] = ""
    """What it is called where it is not asked for by a name (default: the class's)."""
    shared: ClassVar[bool] = False
    turn: int = 0
    """How often threads take turns, where there are several: words of a chunk of the stream at most, about as
    many accesses (0: as is fastest). It matters where they share a state."""
    grows: ClassVar[tuple[str, ...]] = ()
    """Names of arrays with a row for each instruction, and one more: they get new rows (zeros) as new code is
    met, whatever number they begin with."""

    @property
    def addresses(self) -> bool:
        """Whether it sees accesses: here, if it has a function for them, or sees the stream itself. Where
        none of a run's analyses does, addresses are not recorded, which is much faster."""
        return hasattr(self, "access") or type(self).consumer is not Analysis.consumer

    def state(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """The arrays that a thread begins with, by name."""
        raise NotImplementedError

    def merge(self, into: SimpleNamespace, other: SimpleNamespace) -> None:
        """Add one thread's state to another's: here, all arrays are sums."""
        for name, array in vars(other).items():
            getattr(into, name)[...] += array

    def totals(self, state: SimpleNamespace) -> Mapping[str, int] | None:
        """Numbers that only grow, by name: of a run in intervals it is told what each added. Here, none."""
        return None

    def result(self, state: SimpleNamespace, program: Program) -> Any:
        """What is reported, of the merged state of a process: anything that JSON knows. Here, the arrays."""
        return {name: array.tolist() for name, array in vars(state).items()}

    def report(self, result: Any) -> Iterable[str]:
        """The lines that the summary shows. Here, the result's keys and values, or its rows."""
        if isinstance(result, dict):
            yield from (f"{key}: {_short(value)}" for key, value in result.items())
        elif isinstance(result, list | tuple):
            for row in result[:10]:
                cells = (
                    row.values() if isinstance(row, dict) else row if isinstance(row, list | tuple) else [row]
                )
                yield "  ".join(_short(cell) for cell in cells)
            if len(result) > 10:
                yield f"... and {len(result) - 10:,} more"
        else:
            yield _short(result)

    def frames(self, result: Any) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The rows of data frames of a result, by what stands behind the analysis's name in theirs ("":
        nothing, else ``.lines`` or the like). Here, one frame: of its keys and values, or of its rows."""
        if isinstance(result, dict):
            return {"": [{"name": key, "value": value} for key, value in result.items()]}
        rows = result if isinstance(result, list | tuple) else [result]
        return {"": [_cells(row) for row in rows]}

    def consumer(self, name: str, isa: Isa) -> Consumer | None:
        """What sees the streams in place of compiled functions: None, for an analysis that has such."""
        return None

    @classmethod
    def help(cls) -> str:
        """One line that says what it tells."""
        return (cls.__doc__ or "").strip().split("\n")[0].rstrip(".")


def _cells(row: Any) -> Mapping[str, Any]:
    """The cells of a row by the names of their columns."""
    if isinstance(row, dict):
        return row
    if isinstance(row, list | tuple):
        return {f"column {number}": value for number, value in enumerate(row)}
    return {"value": row}


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return text if len(text) <= 90 else text[:87] + "..."
    return f"{value:,}"
