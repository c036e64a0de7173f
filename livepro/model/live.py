"""What a live view shows of a run at one moment, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """A count so far, and how fast it grew over the last seconds (per second)."""

    total: int = 0
    rate: float = 0.0


NOTHING = Measure()


@dataclass(frozen=True, slots=True)
class Query:
    """What a view needs to know beyond the totals.

    `thread` is a thread's number (`ThreadRow.number`; None: all threads together),
    `function` and `block` those whose blocks or instructions are listed; `listing` asks for
    the instructions of the whole function. `by_rate`
    ranks by recent rates, and `rows` is how many rows of each list are wanted.
    `thread_order`, `function_order` and `block_order` are one of the ORDERS.
    """

    thread: int | None = None
    function: int | None = None
    block: int | None = None
    listing: bool = False
    by_rate: bool = False
    rows: int = 100
    thread_order: str = "instructions"
    function_order: str = "instructions"
    block_order: str = "instructions"


THREAD_ORDERS = ("instructions", "SIMD", "start", "name")
FUNCTION_ORDERS = ("instructions", "SIMD", "blocks", "name")
BLOCK_ORDERS = ("instructions", "executions", "address")


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """One thread. `number` identifies it in queries, `program` is its process's name,
    `blocks` are the distinct ones that it executed."""

    number: int
    pid: int
    tid: int
    name: str
    program: str
    alive: bool
    blocks: int
    instructions: Measure
    simd: Measure


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """One function (`name` is empty for all of a module's code without symbols)."""

    number: int
    name: str
    module: str
    blocks: int
    instructions: Measure
    simd: Measure


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One basic block; `length` is its instructions, `offset` its place in `module`."""

    number: int
    function: str
    module: str
    offset: int
    length: int
    executions: Measure
    instructions: Measure


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction of a listing; `first` where a block begins. `address` is the module's
    own, for code that no file holds the process's."""

    address: int
    code: bytes
    text: str
    first: bool
    executions: Measure


@dataclass(frozen=True, slots=True)
class Moment:
    """A stretch of the run: how long, what was executed in it, and which phase
    (a number from 0; None where nothing was executed) took most of it."""

    seconds: float
    instructions: int
    simd: int
    phase: int | None


@dataclass(frozen=True, slots=True)
class Late:
    """SIMD instructions that thread `thread` had executed by the moment `seconds` (since the run's start),
    found out later: the block they are in had not been described. `serial` counts them."""

    serial: int
    seconds: float
    thread: int
    simd: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A run at one moment.

    `seconds` since its start, `counting` unless that is paused, `ended` once no thread is left
    (`exit` is the status as a
    shell reports it, None where that is not known). `whole` is of all threads, and so are `moments`;
    `selected`, `itypes`, `simd`, `simd_types`, `functions` and `blocks` are of the
    thread that the query named. `simd` is by (set, width); `unnamed` is how many of
    `selected`'s instructions are of blocks that are yet to be looked into, and so in none
    of these. `blocks` are of the query's function where it names one, `listing` is of its
    block, or of its function. `late` says what earlier pictures lacked.
    Lists hold the first rows only; `threads_total`, `functions_total` and `blocks_total` say of how many.
    """

    seconds: float
    command: tuple[str, ...]
    engine: str
    ended: bool
    counting: bool
    exit: int | None
    query: Query
    processes: int
    threads_alive: int
    distinct_blocks: int
    whole: Measure
    whole_simd: Measure
    selected: Measure
    selected_simd: Measure
    unnamed: int
    itypes: tuple[tuple[str, Measure], ...]
    simd: tuple[tuple[tuple[str, str], Measure], ...]
    simd_types: tuple[tuple[str, Measure], ...]
    threads: tuple[ThreadRow, ...]
    threads_total: int
    functions: tuple[FunctionRow, ...]
    functions_total: int
    blocks: tuple[BlockRow, ...]
    blocks_total: int
    listing: tuple[Line, ...]
    moments: tuple[Moment, ...]
    warnings: tuple[str, ...]
    late: tuple[Late, ...] = ()
