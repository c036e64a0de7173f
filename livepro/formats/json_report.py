"""The JSON report: a whole run in one file, with a versioned schema.

`livepro.analyses.document.to_document` makes the document. Version
``livepro/1`` has these keys; whoever reads one must not mind others.

Top level: ``schema`` ("livepro/1"), ``livepro`` (version), ``engine``,
``command`` (list of strings), ``exit`` (as a shell reports it; null for a process
that was attached to and let go while it ran),
``wall_seconds``, ``interval_size`` (0: no vectors), ``warnings``, ``stats``
(the engine's own figures), ``region`` (null, or ``asked``, which part of the run was to be
counted, ``began`` and ``ended``, whether it was), ``sampling`` (null, or ``windows`` of
``began``, ``seconds`` and ``instructions``, ``seconds`` in all, ``rate`` in instructions per second
with ``rate_margin``, half of the 95 % confidence interval, and the ``total`` that follows with
``total_margin``; margins are null for one window), ``timeline`` (null, or ``seconds`` since the start and
what had been executed by then: ``instructions``, ``simd``, and the same of ``threads``, from the
``first`` moment that each was seen at; ``phases``, their ``seconds`` and ``phase``; ``left_out``
threads), ``analyses`` (of the event stream: by name a list with the ``pid``, ``image``, ``command``,
``result`` and ``report``, its lines, of each process), the totals, ``processes`` and ``snapshots``.

The totals, of the run, of each process and of each thread:
``instructions``; ``rep_instructions`` (executions of rep-prefixed
instructions, each once), ``rep_iterations``, ``distinct_rep_instructions``
(their addresses); ``fldcw``; ``blocks`` (distinct basic blocks executed).

A process (one image of it: an exec begins the next): ``pid``, ``ppid``,
``image`` (from 0), ``command``, ``machine``, ``exit`` (null while running or
when the image ended by exec), the totals, ``modules`` (rows of ``module``,
``blocks``, ``instructions``), ``hottest_functions`` (``function``, ``module``,
``blocks``, ``instructions``), ``hottest_blocks`` (``id``, ``address``,
``function``, ``module``, ``offset``, ``length``, ``entries``,
``instructions``, ``inlined``: the functions that it is in by debug information, the innermost first,
each with ``file`` and ``line`` of the code or the call),
``methods`` (the hottest compiled Java methods: ``method``,
``origin``, ``tier``, ``blocks``, ``instructions``, ``simd``), ``functions`` (all of them, the hottest
first: ``function``, ``module``, ``origin`` and ``tier`` where a virtual machine made the code,
``blocks``, ``instructions``, ``simd``), and ``threads``. Where blocks were asked for, ``code`` has all
that were executed, in arrays that `livepro.analyses.code` describes and unpacks.

A process that runs a Java virtual machine, and each of its threads, has
``origins``: rows of ``origin`` (C1, C2, interpreter, stub, native wrapper, VM,
native, generated), ``tier`` (0: none), ``blocks``, ``instructions``, ``simd``
(SIMD instructions) and ``simd_sets`` (rows of ``set``, ``width``, ``scalar``,
``count``). The rows sum to the totals. Others have none.

A thread: ``tid``, ``name``, the totals, ``intervals`` (number of basic block
vectors), ``simd`` (rows of ``set``, ``mnemonic``, ``type``, ``width`` in bits,
``count``, ``scalar``, ``element``, ``masked``; the most frequent first), ``moments`` (null, or the
intervals as lists ``instructions``, ``simd`` and ``phase``, neighbours joined where there are more than
1,000), ``itypes`` (group to count; an instruction may be in several groups) and
``itypes_other`` (what its group ``other`` consists of, category to count).

A snapshot: ``label``, ``seconds`` (since the start of the run), ``resets`` (before it),
``instructions``, and ``threads``: ``pid``, ``image``, ``tid``, ``name``, ``instructions``,
``rep_iterations`` and ``simd`` (set to count), of each thread that had executed
anything. Like all counts, those of snapshots begin at the last reset before.

Strings from the target that are not UTF-8 have their odd bytes as lone
surrogates (Python's ``surrogateescape``), in JSON as ``\\udcXX``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from livepro.errors import LiveproError
from livepro.formats.files import open_text

SCHEMA = "livepro/1"

TOTALS: dict[str, Any] = dict.fromkeys(
    ("instructions", "rep_instructions", "rep_iterations", "distinct_rep_instructions", "fldcw", "blocks"),
    int,
)
SIMD_ROW: dict[str, Any] = {
    "set": str,
    "mnemonic": str,
    "type": str,
    "width": int,
    "count": int,
    "scalar": bool,
    "element": str,
    "masked": bool,
}
MADE: dict[str, Any] = {"origin": str, "tier": int, "blocks": int, "instructions": int, "simd": int}
ORIGIN: dict[str, Any] = {
    **MADE,
    "simd_sets": [{"set": str, "width": int, "scalar": bool, "count": int}],
}
THREAD: dict[str, Any] = {
    "tid": int,
    "name": str,
    **TOTALS,
    "origins": [ORIGIN],
    "intervals": int,
    "simd": [SIMD_ROW],
    "itypes": {str: int},
    "itypes_other": {str: int},
}
PLACE: dict[str, Any] = {"module": str, "instructions": int}
PROCESS: dict[str, Any] = {
    "pid": int,
    "ppid": int,
    "image": int,
    "command": [str],
    "machine": str,
    "exit": (int, None),
    **TOTALS,
    "origins": [ORIGIN],
    "methods": [{**MADE, "method": str}],
    "modules": [{**PLACE, "blocks": int}],
    "hottest_functions": [{**PLACE, "function": str, "blocks": int}],
    "hottest_blocks": [
        {**PLACE, "id": int, "address": int, "function": str, "offset": int, "length": int, "entries": int}
    ],
    "threads": [THREAD],
}
SNAPSHOT: dict[str, Any] = {
    "label": str,
    "seconds": float,
    "resets": int,
    "instructions": int,
    "threads": [
        {
            "pid": int,
            "image": int,
            "tid": int,
            "name": str,
            "instructions": int,
            "rep_iterations": int,
            "simd": {str: int},
        }
    ],
}
RUN: dict[str, Any] = {
    "schema": str,
    "livepro": str,
    "engine": str,
    "command": [str],
    "exit": (int, None),
    "wall_seconds": float,
    "interval_size": int,
    **TOTALS,
    "warnings": [str],
    "stats": dict,
    "processes": [PROCESS],
    "snapshots": [SNAPSHOT],
}
"""Shapes: a type; [shape], a list of these; {key: shape}, an object with at least these keys;
{str: shape}, an object from any strings to these; (shape, None), a shape or null."""


def write(name: str, document: dict[str, Any]) -> None:
    """Write `document` to file `name`, gzipped if it ends in ``.gz``, in a fixed order of keys, indented,
    a row of a list on one line."""
    with open_text(name) as out:
        out.writelines(_text(document, ""))
        out.write("\n")


def _text(value: Any, indent: str) -> Iterator[str]:
    """`value` as JSON, indented down to the containers that hold no others."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(part, (dict, list)) for part in inner):
        # Without NaN, which is no JSON; ASCII only, so that any bytes of a command survive.
        yield json.dumps(value, allow_nan=False, ensure_ascii=True)
        return
    deeper = indent + " "
    keyed = isinstance(value, dict)
    yield "{" if keyed else "["
    for n, part in enumerate(value.items() if keyed else value):
        yield f"{',' if n else ''}\n{deeper}"
        if keyed:
            yield f"{json.dumps(part[0])}: "
        yield from _text(part[1] if keyed else part, deeper)
    yield f"\n{indent}" + ("}" if keyed else "]")


def read(name: str) -> dict[str, Any]:
    """Read a report, gzipped if its name ends in ``.gz``, and check its shape.

    Raises LiveproError, naming the place, where it is no JSON, no report, a
    report of another version of the schema, or misses a key.
    """
    with open_text(name, "r") as stream:
        try:
            document = json.load(stream)
        except ValueError as error:
            raise LiveproError(f"{name} is not JSON: {error}.", "Give a file that livepro wrote.") from error
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise LiveproError(
            f"{name} is no report of schema {SCHEMA} (its schema: {found!r}).",
            "Give a file that `livepro run --json` of this version wrote.",
        )
    problem = mismatch(document, RUN, "")
    if problem:
        raise LiveproError(f"{name} is no valid report: {problem}.", "Give a file that livepro wrote.")
    out: dict[str, Any] = document
    return out


def mismatch(value: Any, shape: Any, where: str) -> str:
    """What of `value` does not fit `shape`, and where; the empty string if it fits."""
    if isinstance(shape, tuple):
        return "" if value is None else mismatch(value, shape[0], where)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is not a list"
        return next(filter(None, (mismatch(v, shape[0], f"{where}[{n}]") for n, v in enumerate(value))), "")
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{where} is not an object"
        if str in shape:
            return next(filter(None, (mismatch(v, shape[str], f"{where}.{k}") for k, v in value.items())), "")
        missing = [k for k in shape if k not in value]
        if missing:
            return f"{where or 'the top level'} has no '{missing[0]}'"
        parts = (mismatch(value[k], s, f"{where}.{k}" if where else k) for k, s in shape.items())
        return next(filter(None, parts), "")
    fits = isinstance(value, (int, float) if shape is float else shape)
    if fits and not (isinstance(value, bool) and shape is not bool):  # True is an int in Python, not in JSON
        return ""
    return f"{where} is not of type {shape.__name__}"
