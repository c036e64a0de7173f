"""The whole way from vectors to points: the number of phases, the points, their proof, their stability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from livepro.errors import LiveproError
from livepro.simpoint.choosing import Choice, choose
from livepro.simpoint.clustering import Clusterer, default_most, smallest_good_k
from livepro.simpoint.points import DIMENSIONS, points
from livepro.simpoint.proof import Proof, Prover
from livepro.simpoint.vectors import Floats, Source, Vectors, check_same_length


@dataclass(frozen=True)
class Options:
    """How to choose. The defaults are those of SimPoint 3.2 where it has the option.

    `k` fixes the number of phases; otherwise it is the smallest up to `most` (None: the square root of
    the number of intervals, at most 30) whose score reaches `threshold`, found by bisection or, with
    `every`, by looking at all; or, with `max_error`, the smallest whose error is not above it.
    `seeds` is how many other seeds are tried to see how stable the choice is.
    `fixed_length` lets every interval count alike, however long.
    """

    k: int | None = None
    most: int | None = None
    threshold: float = 0.9
    every: bool = False
    max_error: float | None = None
    dimensions: int = DIMENSIONS
    inits: int = 5
    iterations: int = 100
    seed: int = 1
    seeds: int = 4
    coverage: float = 1.0
    early: float = 0.0
    fixed_length: bool = False


class Tried(NamedTuple):
    """One number of phases: its score, between 0 and 1 of those seen, and the proof of its points."""

    k: int
    score: float
    proof: Proof


class Again(NamedTuple):
    """The choice with another seed: its number of phases, its error, and how far its phases agree with
    those chosen (adjusted Rand index: 1 for the same partition, 0 for chance)."""

    seed: int
    k: int
    error: float
    agreement: float


@dataclass(frozen=True)
class Study:
    """All that was found out. `tried` are the numbers of phases looked at, ascending; `again` other
    seeds; `vectors` is None where only other sources were given. `instructions` (N) are those of
    each interval (1 each, where no file tells)."""

    vectors: Vectors | None
    sources: tuple[Source, ...]
    options: Options
    instructions: Floats
    weights: Floats
    choice: Choice
    proof: Proof
    tried: tuple[Tried, ...]
    again: tuple[Again, ...]
    prover: Prover


def study(
    vectors: Vectors | None,
    sources: Sequence[Source] = (),
    options: Options | None = None,
    progress: Callable[[str], None] | None = None,
) -> Study:
    """Choose simulation points for a run, and prove them.

    `vectors` are basic block vectors, `sources` other numbers of the same intervals; either may be
    missing. `progress` is told what is being done. Raises LiveproError where the vectors cannot give
    what `options` ask for, and where scikit-learn is missing.
    """
    options = options or Options()
    instructions, sources = _resolved(vectors, sources)
    weights = (instructions > 0).astype(np.float64) if options.fixed_length else instructions
    prover = Prover(vectors, sources, instructions)
    attempt = _Attempt(vectors, sources, options, options.seed, weights, instructions, prover, progress)
    k = attempt.k()
    chosen = attempt.choice(k)
    again = []
    for seed in range(options.seed + 1, options.seed + 1 + options.seeds):
        other = _Attempt(vectors, sources, options, seed, weights, instructions, prover, progress)
        again.append(other.compared(chosen))
    return Study(
        vectors=vectors,
        sources=sources,
        options=options,
        instructions=instructions,
        weights=weights,
        choice=chosen,
        proof=attempt.proof(k),
        tried=attempt.tried(),
        again=tuple(again),
        prover=prover,
    )


def prover(vectors: Vectors | None, sources: Sequence[Source] = ()) -> tuple[Prover, Floats]:
    """What proves any choice of intervals, and the instructions (N) of each. Raises LiveproError."""
    instructions, rates = _resolved(vectors, sources)
    return Prover(vectors, rates, instructions), instructions


def _resolved(vectors: Vectors | None, sources: Sequence[Source]) -> tuple[Floats, tuple[Source, ...]]:
    """The instructions of each interval (1 each, where nothing tells), and the sources as rates."""
    number = check_same_length(vectors, sources)
    told = [vectors.instructions] if vectors is not None else []
    told += [source.instructions for source in sources if source.instructions is not None]
    instructions = told[0] if told else np.ones(number)
    if not instructions.any():
        raise LiveproError("No interval has an instruction.", "Check the vector file.")
    return instructions, tuple(source.rates(told[0] if told else None) for source in sources)


class _Attempt:
    """The choice with one seed."""

    def __init__(
        self,
        vectors: Vectors | None,
        sources: tuple[Source, ...],
        options: Options,
        seed: int,
        weights: Floats,
        instructions: Floats,
        prover: Prover,
        progress: Callable[[str], None] | None,
    ) -> None:
        self._options = options
        self._seed = seed
        self._weights = weights
        self._instructions = instructions
        self._prover = prover
        self._clusterer = Clusterer(
            points(vectors, sources, options.dimensions, seed),
            weights,
            seed=seed,
            inits=options.inits,
            iterations=options.iterations,
            progress=progress,
        )

    def k(self) -> int:
        """The number of phases that the options ask for."""
        options, clusterer = self._options, self._clusterer
        if options.k is not None:
            return clusterer.at(options.k).k
        if options.most is not None and options.most > len(self._weights):
            raise LiveproError(
                f"Up to {options.most} phases are not possible with {len(self._weights)} intervals.",
                "Measure with a smaller interval size, or lower --max-k.",
            )
        most = min(options.most or default_most(len(self._weights)), clusterer.most)
        if options.max_error is not None:
            return self._accurate(options.max_error, options.most, most)
        found, _ = smallest_good_k(
            lambda k: clusterer.at(k).score, most, options.threshold, every=options.every
        )
        return found

    def _accurate(self, limit: float, asked: int | None, default: int) -> int:
        """The smallest number of phases whose error is not above `limit`; up to 30 without a `most`."""
        most = default if asked else min(self._clusterer.most, max(default, 30))
        for k in range(1, most + 1):
            if self.proof(k).error <= limit:
                return k
        best = min(range(1, most + 1), key=lambda k: self.proof(k).error)
        raise LiveproError(
            f"No choice of up to {most} phases holds an error of {100 * limit:g} %: the best, {best} phases, "
            f"has {100 * self.proof(best).error:.2f} %.",
            "Allow more phases with --max-k or a larger error, or measure with a smaller interval size.",
        )

    def choice(self, k: int) -> Choice:
        """The points for k phases."""
        return choose(
            self._clusterer.at(k),
            self._instructions,
            self._weights,
            coverage=self._options.coverage,
            early=self._options.early,
        )

    def proof(self, k: int) -> Proof:
        """How good they are."""
        return self._prover.prove([(p.interval, p.weight) for p in self.choice(k).points])

    def tried(self) -> tuple[Tried, ...]:
        """All numbers of phases that were looked at."""
        done = self._clusterer.done
        scores = [clustering.score for clustering in done.values()]
        least, spread = min(scores), (max(scores) - min(scores)) or 1.0
        return tuple(Tried(k, (done[k].score - least) / spread, self.proof(k)) for k in sorted(done))

    def compared(self, chosen: Choice) -> Again:
        """This seed's own choice beside another. One that cannot hold the error is that of the same k."""
        from sklearn.metrics import adjusted_rand_score

        try:
            k = self.k()
        except LiveproError:
            k = min(chosen.k, self._clusterer.most)
        labels = self._clusterer.at(k).labels
        agreement = float(adjusted_rand_score(chosen.clustering.labels, labels))
        return Again(self._seed, k, self.proof(k).error, agreement)
