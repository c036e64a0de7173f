"""A study as one tree of plain values, for JSON."""

from __future__ import annotations

from math import isfinite
from typing import Any

from livepro import __version__
from livepro.simpoint.phases import phases
from livepro.simpoint.proof import Proof
from livepro.simpoint.study import Study

SCHEMA = "livepro-simpoint/1"


def to_document(found: Study) -> dict[str, Any]:
    """The study as a dictionary of schema ``livepro-simpoint/1``.

    ``intervals``, ``instructions``, ``seed``, ``dimensions``, ``k``, ``coverage``; ``points``
    (``interval``, ``phase``, ``weight``, ``intervals``, ``start``, ``instructions``, ``distance``);
    ``phases`` (``phase``, ``share``, ``intervals``, ``point``, null where left out, ``functions`` and
    ``types``, lists of ``[name, part]``, ``simd`` per 1,000, null where unknown); ``labels``, the
    phase of each interval; ``proof`` and for each of ``tried`` the same with ``k`` and ``score``:
    ``error``, ``profile`` (null without blocks) and ``metrics`` (``name``, ``group``, ``whole``,
    ``estimate``, ``rate``: per 1,000 instructions, ``error``, relative, null where the run has
    none); ``seeds`` (``seed``, ``k``, ``error``, ``agreement``).
    """
    choice = found.choice
    return {
        "schema": SCHEMA,
        "livepro": __version__,
        "intervals": len(found.instructions),
        "instructions": round(float(found.instructions.sum())),
        "seed": found.options.seed,
        "dimensions": found.options.dimensions,
        "k": choice.k,
        "coverage": choice.coverage,
        "points": [point._asdict() for point in choice.points],
        "phases": [
            {
                "phase": phase.number,
                "share": phase.share,
                "intervals": phase.intervals,
                "point": phase.interval,
                "functions": [list(pair) for pair in phase.functions],
                "types": [list(pair) for pair in phase.types],
                "simd": phase.simd,
            }
            for phase in phases(found, functions=10)
        ],
        "labels": choice.clustering.labels.tolist(),
        "proof": _proof(found.proof),
        "tried": [{"k": t.k, "score": t.score, **_proof(t.proof)} for t in found.tried],
        "seeds": [again._asdict() for again in found.again],
    }


def _proof(proof: Proof) -> dict[str, Any]:
    return {
        "error": proof.error if isfinite(proof.error) else None,
        "profile": proof.profile,
        "metrics": [
            {
                "name": error.metric.name,
                "group": error.metric.group,
                "whole": error.whole,
                "estimate": error.estimate,
                "rate": error.rate,
                "error": error.relative if isfinite(error.relative) else None,
            }
            for error in proof.errors
        ],
    }
