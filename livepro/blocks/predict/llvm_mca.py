"""llvm-mca: one process for each block, so that one that it cannot read spoils no other."""

from __future__ import annotations

import re
import shutil
import subprocess

from livepro.blocks.files.assembly import NoText
from livepro.blocks.files.llvm_mca import region
from livepro.blocks.predict.models import Prediction, Processor
from livepro.blocks.rows import BlockRow
from livepro.errors import LiveproError

ITERATIONS = 100
_PATIENCE = 120  # seconds for one block
_NUMBER = re.compile(r"^Total Cycles:\s+(\d+)$", re.MULTILINE)
_BOUNDS = re.compile(
    r"^\s*-? ?(Resource Pressure|Register Dependencies|Memory Dependencies)\s+\[ ([\d.]+)% \]", re.MULTILINE
)
_NONE = "none that it names"


def find() -> str:
    """The program. Raises LiveproError where it is not installed."""
    found = shutil.which("llvm-mca")
    if found is None:
        raise LiveproError(
            "llvm-mca is not installed.",
            "Debian has it in its package llvm; or leave it out: `--with osaca`.",
        )
    return found


def version() -> str:
    """The version, for what is remembered of its answers."""
    done = subprocess.run([find(), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"version (\S+)", done.stdout)
    return match[1] if match else ""


def predict(row: BlockRow, processor: Processor) -> Prediction:
    """What it says of a block."""
    try:
        text = region(row, "block")
    except NoText as error:
        return Prediction(None, "", str(error))
    command = [
        find(),
        f"-mtriple={row.isa}",
        f"-mcpu={processor.llvm}",
        f"-iterations={ITERATIONS}",
        "--bottleneck-analysis",
    ]
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return Prediction(None, "", f"no answer within {_PATIENCE} s")
    return parse(done.returncode, done.stdout, done.stderr)


def parse(status: int, out: str, err: str) -> Prediction:
    """Its answer. Instructions that it cannot read it leaves out with an error: that is no prediction."""
    error = re.search(r"error: (.*)", err)
    unknown = re.search(r"'\S+' is not a recognized processor", err)
    match = _NUMBER.search(out)
    if unknown or error or status or match is None:
        said = (
            unknown[0] if unknown else error[1] if error else err.strip().splitlines()[-1:] or ["no answer"]
        )
        return Prediction(None, "", said if isinstance(said, str) else said[0])
    bounds = {name: float(share) for name, share in _BOUNDS.findall(out)}
    top = max(bounds, key=bounds.__getitem__, default="")
    return Prediction(int(match[1]) / ITERATIONS, top.lower() if top and bounds[top] > 0 else _NONE)
