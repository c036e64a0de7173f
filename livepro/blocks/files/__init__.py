"""The files that blocks are written to, by the name of their format.

Tables (`csv`, `json`, `parquet`, `sqlite`) hold every column of every row; the others
are what throughput models read.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from livepro.errors import LiveproError

if TYPE_CHECKING:  # NumPy comes with it: the names of the formats are needed without
    from livepro.blocks.rows import BlockRow


class Format(NamedTuple):
    """One format: `module` of this package writes it, `suffix` its files' names end in. `text` says
    that one file of text holds all blocks, so that it can go to standard output; `each`
    that blocks can have a file each, in a directory, and `only_each` that they must."""

    module: str
    suffix: str
    text: bool
    each: bool = False
    only_each: bool = False


FORMATS = {
    "csv": Format("tables", ".csv", True),
    "json": Format("tables", ".json", True),
    "parquet": Format("parquet", ".parquet", False),
    "sqlite": Format("sqlite", ".sqlite", False),
    "bhive": Format("bhive", ".bhive.csv", True),
    "llvm-mca": Format("llvm_mca", ".s", True, each=True),
    "osaca": Format("osaca", ".s", True, each=True),
    "uica": Format("uica", ".o", False, each=True, only_each=True),
}

DATASET = "blocks.parquet"
"""The table of a data set's directory."""

TABLES = ("csv", "json", "parquet", "sqlite")

_SUFFIXES = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".sqlite": "sqlite", ".db": "sqlite"}
_LONGEST_NAME = 120


def format_of(path: str) -> str:
    """The format that a file's name means. Raises LiveproError for a name that means none."""
    found = _SUFFIXES.get(Path(path).suffix)
    if found is None:
        raise LiveproError(
            f"The name {path} does not tell the format of the file.",
            f"Choose one with --format: {', '.join(FORMATS)}.",
        )
    return found


def write(rows: Sequence[BlockRow], path: Path, name: str) -> None:
    """Write `rows` to the file `path` in the format called `name`; for a format whose blocks have a
    file each, into the directory `path`. Raises LiveproError when that is not possible."""
    kind = FORMATS[name]
    module = import_module(f"livepro.blocks.files.{kind.module}")
    try:
        if kind.only_each or (kind.each and path.is_dir()):
            path.mkdir(parents=True, exist_ok=True)
            for number, row in enumerate(rows):
                (path / f"{file_name(row, number)}{kind.suffix}").write_bytes(module.one(row))
        elif kind.text:
            path.write_text(module.text(rows, name))
        else:
            module.write(rows, path)
    except OSError as error:
        raise LiveproError(
            f"{path} cannot be written: {(error.strerror or str(error)).lower()}.",
            "Choose a place that you may write to.",
        ) from error


def text(rows: Sequence[BlockRow], name: str) -> str:
    """`rows` as text in the format called `name`. Raises LiveproError for one that is no text."""
    kind = FORMATS[name]
    if not kind.text:
        raise LiveproError(
            f"{name} is not for standard output.", f"Say where it is to go: `-o NAME{kind.suffix}`."
        )
    out: str = import_module(f"livepro.blocks.files.{kind.module}").text(rows, name)
    return out


def read(path: Path) -> list[BlockRow]:
    """The rows of a CSV, JSON or Parquet file, or of a data set's directory. Raises LiveproError."""
    from livepro.blocks.files import parquet, tables

    if path.is_dir():
        path = path / DATASET
    if not path.exists():
        raise LiveproError(
            f"There is no {path}.", "Name a table (.csv, .json, .parquet) or a directory that `suite` wrote."
        )
    return parquet.read(path) if path.suffix == ".parquet" else tables.read(path)


def file_name(row: BlockRow, number: int) -> str:
    """A block's file name without its suffix: its number in the list, the hottest first, and its name."""
    safe = "".join(c if c.isalnum() or c in "._+-@" else "_" for c in row.name)
    return f"{number:05}-{safe[-_LONGEST_NAME:]}"
