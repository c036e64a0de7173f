"""Interval vectors out of files, whoever wrote them: the content tells what a file is."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from livepro.errors import LiveproError
from livepro.formats import expbbv, mica_intervals, vectors_json
from livepro.formats.files import open_text
from livepro.simpoint.vectors import Blocks, Metric, Source, Vectors, from_rows

_LOOKED_AT = 200
"""Lines from whose beginnings a file's kind is told."""


def read(name: str) -> Vectors | Source:
    """Read file `name`: vectors of exp-bbv, SimPoint, QEMU or livepro (text or JSON), or else an
    interval file of MICA or a table of numbers. Gzipped if its name ends in ``.gz``.

    Raises LiveproError, with the line, for a file that is none of these.
    """
    with _intact(name):
        kind = _kind(name)
        if kind == "{":
            return _from_json(vectors_json.read(name), name)
        if kind == "T":
            with open_text(name, "r") as stream:
                return from_rows(expbbv.iter_vectors(stream, name), name)
        found = mica_intervals.read(name)
        return Source(name, found.columns, found.values, found.instructions, found.counts)


def with_places(vectors: Vectors, pc_file: str) -> Vectors:
    """`vectors` with the addresses and functions that a pc file gives for their ids.

    Raises LiveproError where the file does not know one of them.
    """
    with _intact(pc_file):
        entries = {entry.id: entry for entry in expbbv.read_pc(pc_file)}
    missing = [n for n in vectors.ids.tolist() if n not in entries]
    if missing:
        raise LiveproError(
            f"{pc_file} does not tell where block {missing[0]} of {vectors.name} is.",
            "Give the pc file of the same run.",
        )
    known = [entries[n] for n in vectors.ids.tolist()]
    return replace(
        vectors,
        blocks=Blocks(
            np.array([e.address for e in known], np.uint64),
            tuple(e.function for e in known),
            ("",) * len(known),
            np.array([e.address for e in known], np.uint64),
            (),
            np.zeros((len(known), 0)),
            (),
        ),
    )


def to_document(vectors: Vectors, **facts: Any) -> dict[str, Any]:
    """Vectors that have blocks as the document of `livepro.formats.vectors_json`; `facts` are its
    other keys."""
    blocks = vectors.blocks
    assert blocks is not None
    rows = [vectors.row(n) for n in range(len(vectors))]
    density = [[[n, float(row[n])] for n in np.flatnonzero(row).tolist()] for row in blocks.density]
    return {
        **facts,
        "blocks": {
            "id": vectors.ids.tolist(),
            "address": blocks.address.tolist(),
            "function": list(blocks.function),
            "module": list(blocks.module),
            "offset": blocks.offset.tolist(),
        },
        "metrics": [
            {"name": m.name, "group": m.group, "total": total}
            for m, total in zip(blocks.metrics, blocks.totals, strict=True)
        ],
        "density": density,
        "intervals": [
            [vectors.ids[columns].tolist(), counts.astype(np.int64).tolist()] for columns, counts in rows
        ],
    }


def _from_json(document: dict[str, Any], name: str) -> Vectors:
    blocks, metrics = document["blocks"], document["metrics"]
    density = np.zeros((len(blocks["id"]), len(metrics)))
    try:
        for row, pairs in enumerate(document["density"]):
            for metric, part in pairs:
                density[row, metric] = part
        known = set(blocks["id"])
        for number, (ids, _) in enumerate(document["intervals"]):
            if not known.issuperset(ids):
                raise ValueError(f"intervals[{number}] names a block that is not in blocks")
    except (IndexError, TypeError, ValueError) as error:
        raise LiveproError(f"{name} is no valid file of vectors: {error}.", "Write it anew.") from error
    found = Blocks(
        np.array(blocks["address"], np.uint64),
        tuple(blocks["function"]),
        tuple(blocks["module"]),
        np.array(blocks["offset"], np.uint64),
        tuple(Metric(m["name"], m["group"]) for m in metrics),
        density,
        tuple(m["total"] for m in metrics),
    )
    rows = ((np.array(i, np.int64), np.array(c, np.uint64)) for i, c in document["intervals"])
    return from_rows(rows, name, found, np.array(blocks["id"], np.int64))


def _kind(name: str) -> str:
    """``{`` for JSON, ``T`` for basic block vectors, the empty string for anything else."""
    with open_text(name, "r") as stream:
        for _, line in zip(range(_LOOKED_AT), stream, strict=False):
            text = line.lstrip()
            if text.startswith("{"):
                return "{"
            if line.startswith("T"):
                return "T"
            if text and not text.startswith("#"):
                return ""
    return ""


@contextmanager
def _intact(name: str) -> Iterator[None]:
    """A file that breaks off or is no gzip file, though its name says so, as an error to act on."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LiveproError(
            f"{name} cannot be decompressed: {error}.", "Check that it is a whole gzip file."
        ) from error
    except OSError as error:
        raise LiveproError(
            f"{name} cannot be read: {error.strerror or error}.", "Give the name of a file."
        ) from error
