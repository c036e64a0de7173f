"""OSACA: a process of its own for several blocks, since it takes seconds to read a processor's model."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from livepro.blocks.files.assembly import NoText
from livepro.blocks.files.osaca import marked
from livepro.blocks.predict.models import Prediction, Processor
from livepro.blocks.rows import BlockRow
from livepro.errors import LiveproError

_PATIENCE = 600  # seconds for all blocks of one process


def version() -> str:
    """The version, for what is remembered of its answers. Raises LiveproError where it is not installed."""
    if find_spec("osaca") is None:
        raise LiveproError(
            "OSACA is not installed.", "`pip install 'livepro[blocks]'`, or leave it out: `--with llvm-mca`."
        )
    return metadata.version("osaca")


def predict(rows: Sequence[BlockRow], processor: Processor) -> list[Prediction]:
    """What it says of each block."""
    if not rows:
        return []
    out: dict[int, Prediction] = {}
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for number, row in enumerate(rows):
            try:
                (Path(folder) / f"{number}.s").write_text(marked(row))
                names[number] = f"{folder}/{number}.s"
            except NoText as error:
                out[number] = Prediction(None, "", str(error))
        command = [
            sys.executable,
            "-P",  # this folder has a module of OSACA's name
            str(Path(__file__).with_name("osaca_worker.py")),
            processor.osaca,
            *names.values(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
            answers = done.stdout.splitlines()
            last = done.stderr.strip().splitlines()[-1:] or ["no answer"]
        except subprocess.TimeoutExpired as error:
            said = error.stdout or b""
            answers = (said.decode() if isinstance(said, bytes) else said).splitlines()
            last = [f"no answer within {_PATIENCE} s"]
    for number, answer in zip(names, answers, strict=False):
        out[number] = parse(json.loads(answer))
    return [out.get(number, Prediction(None, "", last[0])) for number in range(len(rows))]


def parse(answer: dict[str, object]) -> Prediction:
    """One line of the worker's: the fullest port and the loop-carried dependency bound an iteration."""
    if answer.get("reason"):
        return Prediction(None, "", str(answer["reason"]))
    ports = answer["ports"]
    assert isinstance(ports, dict)
    port = max(ports, key=ports.__getitem__, default="")
    pressure = float(ports[port]) if ports else 0.0
    dependency = float(str(answer["lcd"]))
    if dependency > pressure:
        return Prediction(dependency, "loop-carried dependency")
    return Prediction(pressure, f"port {port}")
