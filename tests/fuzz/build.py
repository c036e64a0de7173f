"""Many sequences as one freestanding program."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass
from pathlib import Path

from .code import DATA_CENTRE, Assembled, Sequence, assemble
from .generator import Options
from .state import INPUT_SIZE, SLOT_SIZE, pack_input
from .table import vector_bits

_DRIVER = Path(__file__).with_name("driver.S")
_SLOTS_FROM_CODE = 0x0100_0000

Bend = Callable[[Assembled], bytes]
"""Gives other code of the same length, to test the harness with."""


@dataclass(frozen=True)
class Placement:
    """Where the sequences' code is: at `base`, mapped from the program's file
    (`kind` "file"), so mapped and writable ("writable"), or copied to anonymous
    memory that is writable and executable ("anonymous")."""

    kind: str = "file"
    base: int = 0x1000_0000

    def options(self) -> Options:
        """What sequences at this place can do."""
        return Options(low=self.base < 1 << 31, writable=self.kind != "file")


PLACEMENTS = (
    Placement(),
    Placement(base=0x5A5A_0000_0000),
    Placement("anonymous"),
    Placement("writable"),
    Placement("anonymous", 0x7E00_0000_0000),
)
"""The places that programs rotate through; the first one, the plainest, comes up most."""


def placement(seed: str) -> Placement:
    """The place of a program with that seed."""
    return random.Random(f"place {seed}").choice((*PLACEMENTS, *PLACEMENTS[:2]))


@dataclass(frozen=True)
class Program:
    """A built program. `codes` are where each sequence's instructions are."""

    path: Path
    placement: Placement
    sequences: tuple[Sequence, ...]
    codes: tuple[Assembled, ...]


def build(
    sequences: Many[Sequence], place: Placement, directory: Path, name: str, bend: Bend | None = None
) -> Program:
    """Lay out, assemble and link. `bend` may change each sequence's code (to test the harness).

    Raises ValueError for a sequence that cannot be laid out, CalledProcessError
    with the compiler's words on standard error.
    """
    slots = place.base + _SLOTS_FROM_CODE
    address = place.base
    codes: list[Assembled] = []
    text = bytearray()
    inputs = bytearray()
    data = bytearray()
    for index, sequence in enumerate(sequences):
        slot = slots + index * SLOT_SIZE
        made = assemble(sequence.items(), address, slot + DATA_CENTRE)
        codes.append(made)
        text += bend(made) if bend else made.code
        text += bytes(-len(text) % 16)
        inputs += pack_input(sequence.state, slot, made.address)
        data += sequence.state.data + sequence.state.stack
        address = place.base + len(text)
    if len(text) > _SLOTS_FROM_CODE:
        raise ValueError("too many sequences for one program")
    text += bytes(-len(text) % 64)
    files = {"CODE": bytes(text), "SLOT": bytes(data), "INPUT": bytes(inputs)}
    defines = [
        f"-DCOUNT={len(sequences)}",
        f"-DVECTOR={vector_bits()}",
        f"-DCODE_BASE={place.base:#x}",
        f"-DCODE_SIZE={len(text)}",
        f"-DCOPY={int(place.kind == 'anonymous')}",
        '-DCODE_FLAGS="{}"'.format({"file": "ax", "writable": "awx", "anonymous": "a"}[place.kind]),
    ]
    for kind, content in files.items():
        blob = directory / f"{name}.{kind.lower()}"
        blob.write_bytes(content)
        defines.append(f'-D{kind}_FILE="{blob}"')
    assert len(inputs) == len(sequences) * INPUT_SIZE
    path = directory / name
    starts = [f"--section-start=.slots={slots:#x}"]
    if place.kind != "anonymous":
        starts.append(f"--section-start=.seqcode={place.base:#x}")
    compiler = shutil.which("gcc") or "gcc"
    subprocess.run(
        [
            compiler,
            *("-nostdlib", "-static", "-no-pie", "-o", str(path), str(_DRIVER)),
            *defines,
            "-Wl,--build-id=none,-z,noexecstack,--no-warn-rwx-segments," + ",".join(starts),
        ],
        check=True,
    )
    return Program(path, place, tuple(sequences), tuple(codes))
