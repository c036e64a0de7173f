"""From interval vectors to simulation points, and the proof that they stand for the run.

`read` a vector file (or `of_thread`, of a run that livepro made), `study` it, and look at the
`Study`: its `choice` has the points, its `proof` the errors. Clustering needs scikit-learn, the extra
``livepro[simpoint]``.
"""

from __future__ import annotations

from livepro.simpoint.choosing import Choice, Point
from livepro.simpoint.counted import busiest, of_thread
from livepro.simpoint.phases import Phase, phases
from livepro.simpoint.proof import Error, Proof
from livepro.simpoint.reading import read, with_places
from livepro.simpoint.study import Options, Study, study
from livepro.simpoint.vectors import Blocks, Metric, Source, Vectors, from_rows

__all__ = [
    "Blocks",
    "Choice",
    "Error",
    "Metric",
    "Options",
    "Phase",
    "Point",
    "Proof",
    "Source",
    "Study",
    "Vectors",
    "busiest",
    "from_rows",
    "of_thread",
    "phases",
    "read",
    "study",
    "with_places",
]
