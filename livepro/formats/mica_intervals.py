"""MICA's interval files: a line of numbers for each interval.

Names and columns as MICA's README and source have them (``<base>_phases_int[_<pid>]_pin.out``). Some
lines begin with the interval's instructions, others do not, and the last may differ from the rest:
MICA writes it at the end of the run without that number in some files. Files whose names begin with
no known base are tables of numbers like any other: all columns are taken as they are.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from livepro.errors import LiveproError
from livepro.formats.files import open_text
from livepro.model.itypes import DEFAULT_GROUPS

_UNDER = (0, 8, 64, 512, 4096, 32768, 262144)  # strides, at most so many bytes
_DISTANCES = (1, 2, 4, 8, 16, 32, 64)  # register dependences, at most so many instructions


class Kind(NamedTuple):
    """Columns of a file behind the interval's instructions, and whether they are counts that
    grow with its instructions (or cycles, or sizes, which are taken as they stand)."""

    columns: tuple[str, ...]
    counts: bool


KINDS = {
    "ilp": Kind(tuple(f"cycles, window {w}" for w in (32, 64, 128, 256)), True),
    "itypes": Kind(DEFAULT_GROUPS, True),
    "ppm": Kind(
        (
            *(f"{v} h={h} mispredicted" for h in (4, 8, 12) for v in ("GAg", "PAg", "GAs", "PAs")),
            *("branches", "transitions", "taken"),
        ),
        True,
    ),
    "reg": Kind(
        (
            *("operands", "instances", "uses", "reads"),
            *(f"dependence <= {d}" for d in _DISTANCES),
        ),
        True,
    ),
    "stride": Kind(
        tuple(
            name
            for kind in ("local read", "global read", "local write", "global write")
            for name in (
                *([f"{kind.split()[1]}s"] if kind.startswith("local") else []),
                *(f"{kind} stride <= {n}" for n in _UNDER),
            )
        ),
        True,
    ),
    "memfootprint": Kind(("data blocks", "data pages", "code blocks", "code pages"), False),
    "memstackdist": Kind(
        (
            *("references", "cold"),
            *(f"distance < {2**n}" for n in range(1, 19)),
            f"distance >= {2**18}",
        ),
        True,
    ),
}
"""By the base of the file's name. `ilp-win<W>` of one window has one column."""

_NAME = re.compile(r"(?P<base>[a-z_]+?(?:-win\d+)?)_(?P<extent>phases|full)_int(?:_\d+)?(?:_pin)?\.out.*")


class IntervalFile(NamedTuple):
    """N intervals: `values` (float64, N x M), `columns` their M names, `instructions` (float64, N) of
    each interval, None where the file does not tell, `counts` as in `Kind`."""

    columns: tuple[str, ...]
    values: npt.NDArray[np.float64]
    instructions: npt.NDArray[np.float64] | None
    counts: bool


def read(name: str) -> IntervalFile:
    """Read an interval file of MICA, or a plain table of numbers; gzipped if its name ends in ``.gz``.

    Raises LiveproError, with the line, for what is no number, or has another number of columns.
    """
    match = _NAME.match(PurePath(name).name)
    if match and match["extent"] == "full":
        raise LiveproError(
            f"{name}:1: the file describes a whole run, not its intervals.",
            "Set interval_size in mica.conf, and give the file with 'phases' in its name.",
        )
    base = match["base"] if match else ""
    kind = Kind((base,), True) if base.startswith("ilp-win") else KINDS.get(base)
    rows = _rows(name)
    if kind is None:
        return _plain(name, rows)
    expected = len(kind.columns)
    values, leads = [], []
    for number, row in rows:
        if len(row) not in (expected, expected + 1):
            raise LiveproError(
                f"{name}:{number}: the line has {len(row)} numbers; a line of MICA's {base} file has "
                f"{expected}, or {expected + 1} with the interval's instructions.",
                "Check that the file is whole and that its name is MICA's own.",
            )
        leads.append(row[0] if len(row) > expected else np.nan)
        values.append(row[-expected:])
    lead = np.array(leads)
    if np.isnan(lead[:-1]).any() or (len(lead) == 1 and np.isnan(lead[0])):
        told = None
    else:
        told = lead
        if np.isnan(lead[-1]):  # the last line without its count: as long as those before, for want of better
            told[-1] = lead[-2]
    return IntervalFile(kind.columns, np.array(values), told, kind.counts)


def _plain(name: str, rows: list[tuple[int, list[float]]]) -> IntervalFile:
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise LiveproError(
                f"{name}:{number}: the line has {len(row)} numbers, the first has {width}.",
                "Give a line of as many numbers for each interval.",
            )
    columns = tuple(f"column {n}" for n in range(1, width + 1))
    return IntervalFile(columns, np.array([row for _, row in rows]), None, False)


def _rows(name: str) -> list[tuple[int, list[float]]]:
    """Line number and numbers of every line that is not empty or a comment."""
    out = []
    with open_text(name, "r") as stream:
        for number, line in enumerate(stream, 1):
            words = line.split("#")[0].replace(",", " ").split()
            if not words:
                continue
            try:
                row = [float(word) for word in words]
            except ValueError:
                row = []
            if not row or not np.isfinite(row).all():
                raise LiveproError(
                    f"{name}:{number}: the line is neither a block vector (T:id:count ...) nor numbers.",
                    "Give a vector file of exp-bbv, QEMU or livepro, or an interval file of MICA.",
                )
            out.append((number, row))
    if not out:
        raise LiveproError(
            f"{name} has no interval.", "Measure again, with an interval size smaller than the run."
        )
    return out
