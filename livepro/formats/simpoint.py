"""The files in which SimPoint 3.2 names its choice: simulation points and their weights.

Both have a pair per line, separated by a space: ``interval cluster`` in the
``.simpoints`` file, ``weight cluster`` in the ``.weights`` file. Intervals
are numbered from 0, the first ``T`` line of the vector file. Weights are the
part of the execution that a cluster stands for, printed in six significant
digits (C++ stream default).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

from livepro.errors import LiveproError
from livepro.formats.files import open_text


class SimPoint(NamedTuple):
    """Interval `interval` represents cluster `cluster`."""

    interval: int
    cluster: int


class Weight(NamedTuple):
    """Cluster `cluster` stands for the part `weight` (0 to 1) of the execution."""

    weight: float
    cluster: int


class WeightedPoint(NamedTuple):
    """An interval to simulate, and how much of the execution it stands for."""

    interval: int
    cluster: int
    weight: float


def read_simpoints(name: str) -> list[SimPoint]:
    """Read a ``.simpoints`` file, gzipped if its name ends in ``.gz``. Raises LiveproError."""
    out = []
    for number, first, second in _pairs(name):
        if not (first.isdecimal() and second.isdecimal()):
            raise _malformed(name, number, "is not 'interval cluster', two whole numbers")
        out.append(SimPoint(int(first), int(second)))
    return out


def read_weights(name: str) -> list[Weight]:
    """Read a ``.weights`` file, gzipped if its name ends in ``.gz``. Raises LiveproError."""
    out = []
    for number, first, second in _pairs(name):
        try:
            weight = float(first)
        except ValueError:
            weight = -1.0
        if not (0 <= weight <= 1 and second.isdecimal()):
            raise _malformed(name, number, "is not 'weight cluster', a part of 1 and a whole number")
        out.append(Weight(weight, int(second)))
    return out


def write_simpoints(out: TextIO, points: Iterable[SimPoint]) -> None:
    """Write a ``.simpoints`` file in the order of `points`."""
    out.writelines(f"{p.interval} {p.cluster}\n" for p in points)


def write_weights(out: TextIO, weights: Iterable[Weight]) -> None:
    """Write a ``.weights`` file in the order of `weights`: six digits where they are enough, else all."""
    for w in weights:
        short = f"{w.weight:.6g}"
        out.write(f"{short if float(short) == w.weight else repr(w.weight)} {w.cluster}\n")


def join(points: Iterable[SimPoint], weights: Iterable[Weight]) -> list[WeightedPoint]:
    """Each simulation point with its cluster's weight, in order of interval.

    Raises LiveproError if the two do not name the same clusters, each once.
    """
    points, weights = list(points), list(weights)
    weight_of = {w.cluster: w.weight for w in weights}
    if sorted(p.cluster for p in points) != sorted(w.cluster for w in weights) or len(weight_of) != len(
        weights
    ):
        raise LiveproError(
            "The simulation points and the weights do not name the same clusters.",
            "Take both files from the same run of SimPoint.",
        )
    return sorted(WeightedPoint(p.interval, p.cluster, weight_of[p.cluster]) for p in points)


def _pairs(name: str) -> Iterator[tuple[int, str, str]]:
    """(line number, first word, second word) of each line that is not empty."""
    with open_text(name, "r") as stream:
        for number, line in enumerate(stream, 1):
            words = line.split()
            if len(words) == 2:
                yield number, words[0], words[1]
            elif words:
                raise _malformed(name, number, "does not have two words")


def _malformed(name: str, number: int, reason: str) -> LiveproError:
    return LiveproError(
        f"{name}:{number}: the line {reason}.", "Check that it is a file that SimPoint wrote."
    )
