"""Predictions for many blocks: several processes at a time, what was answered before from memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from livepro.blocks.predict import llvm_mca, osaca
from livepro.blocks.predict.models import OTHER_ISA, PROCESSORS, Prediction
from livepro.blocks.rows import BlockRow
from livepro.kept.artifacts import ArtifactStore


class Answers(NamedTuple):
    """What `model` predicts for the blocks on `processor`, one after the other."""

    model: str
    processor: str
    predictions: list[Prediction]

    def total(self, rows: Sequence[BlockRow]) -> float:
        """Cycles of all executions of the blocks that there are predictions for."""
        return sum(
            (row.occurrences or 0) * p.cycles
            for row, p in zip(rows, self.predictions, strict=True)
            if p.cycles is not None
        )


def predict(
    rows: Sequence[BlockRow],
    models: Sequence[str],
    processors: Sequence[str],
    kept: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Answers]:
    """What each of `models` says of `rows` on each of `processors` (names of `PROCESSORS`).

    Answers are remembered in the directory `kept` (None: they are not). A block of another
    instruction set than the processor's has no prediction. Raises LiveproError for a model that is
    not installed.
    """
    out = []
    for model in models:
        version = llvm_mca.version() if model == "llvm-mca" else osaca.version()
        for name in processors:
            if progress is not None:
                progress(f"{model}, {name}: {len(rows)} blocks")
            memory = _Memory(kept, f"{model} {version} {name}")
            out.append(Answers(model, name, _answers(rows, model, name, memory)))
    return out


def _answers(rows: Sequence[BlockRow], model: str, name: str, memory: _Memory) -> list[Prediction]:
    processor = PROCESSORS[name]
    known = [memory.find(row) for row in rows]
    label = processor.llvm if model == "llvm-mca" else processor.osaca
    asked = [i for i, answer in enumerate(known) if answer is None and rows[i].isa == processor.isa]
    found: list[Prediction]
    if not label:
        found = [Prediction(None, "", f"{model} does not know {name}")] * len(asked)
    elif model == "llvm-mca":
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda i: llvm_mca.predict(rows[i], processor), asked))
    else:
        parts = [asked[n :: os.cpu_count() or 1] for n in range(os.cpu_count() or 1)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = list(pool.map(lambda part: osaca.predict([rows[i] for i in part], processor), parts))
        by_row = {
            i: p for part, own in zip(parts, answers, strict=True) for i, p in zip(part, own, strict=True)
        }
        found = [by_row[i] for i in asked]
    for i, prediction in zip(asked, found, strict=True):
        known[i] = prediction
        memory.remember(rows[i], prediction)
    other = Prediction(None, "", OTHER_ISA)
    return [answer if answer is not None else other for answer in known]


class _Memory:
    """Answers given before, by a block's bytes."""

    def __init__(self, kept: Path | None, model: str) -> None:
        self._artifacts = None if kept is None else ArtifactStore(kept, "predictions", Path(__file__).parent)
        self._model = model

    def find(self, row: BlockRow) -> Prediction | None:
        if self._artifacts is None:
            return None
        arrays = self._artifacts.read(self._artifacts.key(self._model, row.isa, row.code))
        return None if arrays is None else Prediction(*json.loads(arrays["answer"].tobytes()))

    def remember(self, row: BlockRow, prediction: Prediction) -> None:
        # A refusal may have come from a busy machine, or an old installation: it is asked again.
        if self._artifacts is not None and prediction.cycles is not None:
            text = json.dumps(prediction).encode()
            key = self._artifacts.key(self._model, row.isa, row.code)
            self._artifacts.write(key, {"answer": np.frombuffer(text, np.uint8)})
