"""A whole run as one tree of plain values: what the JSON report holds.

`livepro.formats.json_report` describes the schema, writes it and reads it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import Any

from livepro import __version__
from livepro.analyses import (
    code,
    functions,
    hot,
    inlined,
    itypes,
    moments,
    origins,
    sampling,
    simd,
    snapshots,
)
from livepro.analyses.totals import Totals, process_totals, sum_totals
from livepro.model import BlockTable, ProcessResult, RunResult, ThreadCounts
from livepro.model.itypes import ItypesSpec
from livepro.model.timeline import Timeline

SCHEMA = "livepro/1"
"""Name and version of the schema. Keys may be added to a version, never removed or given another meaning."""


METHODS = 1000
"""Java methods that a process lists at most, the hottest."""

INLINED = 300
"""Blocks of a process whose inlined functions are looked for with all code, the hottest."""


def to_document(
    result: RunResult,
    spec: ItypesSpec | None = None,
    hottest: int = 20,
    with_code: bool = False,
    lines: code.Lines | None = None,
    frames: inlined.Frames | None = None,
) -> dict[str, Any]:
    """The run as a dictionary of the schema `SCHEMA`, of values that JSON knows.

    `spec` are the user's instruction-type groups (None: the default groups).
    Each process lists its `hottest` blocks and functions, and all functions with less about each;
    `with_code` adds all blocks with their code, with the source lines that `lines` finds. `frames` finds
    the inlined functions that the hottest blocks are in. Nothing in the
    document grows with the number of blocks otherwise.
    """
    totals = [process_totals(p) for p in result.processes]
    return {
        "schema": SCHEMA,
        "livepro": __version__,
        "engine": result.engine,
        "command": list(result.command),
        "exit": result.exit,
        "wall_seconds": float(result.wall_seconds),
        "interval_size": result.interval_size,
        **_totals(sum_totals(t for t, _ in totals)),
        "region": None
        if result.region is None
        else {f.name: getattr(result.region, f.name) for f in fields(result.region)},
        "analyses": result.analyses,
        "sampling": None if result.sampling is None else sampling.document(result.sampling),
        "warnings": list(result.warnings),
        "stats": _plain(result.stats),
        "timeline": None if result.timeline is None else _timeline(result.timeline),
        "snapshots": [_snapshot(row) for row in snapshots.rows(result)],
        "processes": [
            _process(p, whole, each, spec, hottest, frames) | _functions(p, with_code, lines, frames)
            for p, (whole, each) in zip(result.processes, totals, strict=True)
        ],
    }


def _snapshot(row: snapshots.SnapshotRow) -> dict[str, Any]:
    return {
        "label": row.label,
        "seconds": float(row.seconds),
        "resets": row.resets,
        "instructions": row.instructions,
        "threads": [
            {
                "pid": t.pid,
                "image": t.image,
                "tid": t.tid,
                "name": t.name,
                "instructions": t.instructions,
                "rep_iterations": t.rep_iterations,
                "simd": dict(t.simd),
            }
            for t in row.threads
        ],
    }


def _timeline(found: Timeline) -> dict[str, Any]:
    return {
        "seconds": [round(s, 4) for s in found.seconds],
        "instructions": list(found.instructions),
        "simd": list(found.simd),
        "threads": [
            {**t._asdict(), "instructions": list(t.instructions), "simd": list(t.simd)} for t in found.threads
        ],
        "phases": {
            "seconds": [round(p.seconds, 4) for p in found.phases],
            "phase": [p.phase for p in found.phases],
        },
        "left_out": found.left_out,
    }


def _process(
    process: ProcessResult,
    whole: Totals,
    each: tuple[Totals, ...],
    spec: ItypesSpec | None,
    hottest: int,
    frames: inlined.Frames | None,
) -> dict[str, Any]:
    rows = simd.process_rows(process)
    table, threads = process.table, process.threads
    blocks = hot.blocks(table, *threads, limit=hottest)
    within = inlined.of_places([(b.module, b.offset) for b in blocks], frames)
    return {
        "pid": process.pid,
        "ppid": process.ppid,
        "image": process.image,
        "command": list(process.command),
        "machine": process.machine,
        "exit": process.exit,
        **_totals(whole),
        **_origins(table, *threads),
        "methods": [
            {
                "method": m.method,
                "origin": m.origin,
                "tier": m.tier,
                "blocks": m.blocks,
                "instructions": m.instructions,
                "simd": m.simd,
            }
            for m in origins.methods(table, *threads, limit=METHODS)
        ],
        "modules": [
            {"module": m.module, "blocks": m.blocks, "instructions": m.instructions}
            for m in hot.modules(table, *threads)
        ],
        "hottest_functions": [
            {
                "function": f.function,
                "module": f.module,
                "blocks": f.blocks,
                "instructions": f.instructions,
            }
            for f in hot.functions(table, *threads, limit=hottest)
        ],
        "hottest_blocks": [
            {
                "id": b.id,
                "address": b.address,
                "function": b.function,
                "module": b.module,
                "offset": b.offset,
                "length": b.length,
                "entries": b.entries,
                "instructions": b.instructions,
                "inlined": _chain(chain),
            }
            for b, chain in zip(blocks, within, strict=True)
        ],
        "threads": [
            _thread(table, thread, own, own_rows, spec) | _moments(line)
            for thread, own, own_rows, line in zip(threads, each, rows, moments.moments(process), strict=True)
        ],
    }


def _functions(
    process: ProcessResult, with_code: bool, lines: code.Lines | None, frames: inlined.Frames | None
) -> dict[str, Any]:
    """All functions, and all blocks if wanted, with the inlined functions that the hottest are in."""
    table, threads = process.table, process.threads
    found = functions.functions(table, *threads)
    out: dict[str, Any] = {"functions": [row._asdict() for row in found.rows]}
    if with_code:
        blocks = code.code(table, found.of_block, threads, lines)
        out["code"] = code.packed(blocks)
        if frames is not None:
            hottest = zip(blocks.function[:INLINED].tolist(), blocks.offset[:INLINED].tolist(), strict=True)
            places = [(found.rows[row].module, offset) for row, offset in hottest]
            chains = zip(blocks.id.tolist(), inlined.of_places(places, frames), strict=False)
            out["inlined"] = {str(number): _chain(chain) for number, chain in chains if len(chain) > 1}
    return out


def _chain(frames: Sequence[inlined.Frame]) -> list[dict[str, Any]]:
    return [{"function": function, "file": file, "line": line} for function, file, line in frames]


def _moments(rows: list[moments.MomentRow]) -> dict[str, Any]:
    return {
        "moments": {name: [getattr(row, name) for row in rows] for name in moments.MomentRow._fields}
        if rows
        else None
    }


def _thread(
    table: BlockTable,
    thread: ThreadCounts,
    totals: Totals,
    rows: list[simd.SimdRow],
    spec: ItypesSpec | None,
) -> dict[str, Any]:
    return {
        "tid": thread.tid,
        "name": thread.name,
        **_totals(totals),
        "intervals": len(thread.intervals),
        **_origins(table, thread),
        "simd": [
            {
                "set": r.set,
                "mnemonic": r.mnemonic,
                "type": str(r.type),
                "width": r.width,
                "count": r.count,
                "scalar": r.scalar,
                "element": r.element,
                "masked": r.masked,
            }
            for r in _merged(rows)
        ],
        "itypes": itypes.itypes(table, thread, spec),
        "itypes_other": dict(itypes.other_items(table, thread, spec)),
    }


def _origins(table: BlockTable, *threads: ThreadCounts) -> dict[str, Any]:
    """The rows by origin, each with its SIMD instructions by set and width; none without labels."""
    if table.label is None:
        return {"origins": []}
    kinds = simd.SimdKinds(table)
    sets: dict[tuple[str, int], dict[simd.SetWidth, int]] = {}
    for thread in threads:
        for r in kinds.rows_by_label(thread):
            counts = sets.setdefault((r.origin, r.tier), {})
            key = simd.SetWidth(r.set, r.width, r.scalar)
            counts[key] = counts.get(key, 0) + r.count
    return {
        "origins": [
            {
                "origin": row.origin,
                "tier": row.tier,
                "blocks": row.blocks,
                "instructions": row.instructions,
                "simd": row.simd,
                "simd_sets": [
                    {"set": key.set, "width": key.width, "scalar": key.scalar, "count": count}
                    for key, count in sorted(
                        sets.get((row.origin, row.tier), {}).items(), key=lambda item: -item[1]
                    )
                ],
            }
            for row in origins.origins(table, *threads)
        ]
    }


def _merged(rows: list[simd.SimdRow]) -> list[simd.SimdRow]:
    """`rows` with those that differ only in what the document leaves out made one."""
    sums: dict[tuple[Any, ...], simd.SimdRow] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for r in rows:
        key = (r.set, r.mnemonic, r.type, r.width, r.scalar, r.element, r.masked)
        sums.setdefault(key, r)
        counts[key] = counts.get(key, 0) + r.count
    return sorted((replace(r, count=counts[k]) for k, r in sums.items()), key=lambda r: -r.count)


def _totals(totals: Totals) -> dict[str, int]:
    return {
        "instructions": totals.instructions,
        "rep_instructions": totals.rep_instructions,
        "rep_iterations": totals.rep_iterations,
        "distinct_rep_instructions": totals.distinct_reps,
        "fldcw": totals.fldcw,
        "blocks": totals.blocks,
    }


def _plain(value: Any) -> Any:
    """`value` in types that JSON knows: an engine's figures may be NumPy scalars or paths."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has neither infinities nor NaN
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return _plain(value.item()) if hasattr(value, "item") else str(value)
