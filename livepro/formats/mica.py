"""The files in which MICA reports instruction types.

MICA's README, "itypes", gives the names and the grammar: FULL holds one line,
``instruction_cnt mem_read_cnt ... nop_cnt other_cnt``, numbers separated by a
space, the groups in the order of the specification and `other` last;
OTHER_CATEGORIES holds the categories that `other` consists of, one in a line.
(MICA 1.0 itself prints two totals before the groups and leaves `other` out when
it measures a full run, contrary to its README.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from livepro.errors import LiveproError
from livepro.formats.files import open_text

FULL = "itypes_full_int_pin.out"
OTHER_CATEGORIES = "itypes_other_group_categories.txt"


def write_full(out: TextIO, instructions: int, counts: Iterable[int]) -> None:
    """Write the instructions of a run and the `counts` of its groups, `other` last."""
    out.write(" ".join(str(number) for number in (instructions, *counts)) + "\n")


def read_full(path: str) -> tuple[int, tuple[int, ...]]:
    """The instructions and group counts in file `path`, as `write_full` writes them.

    Raises LiveproError for a file that cannot be read or holds anything else.
    """
    with open_text(path, "r") as file:
        lines = file.read().splitlines()
    fields = lines[0].split(" ") if len(lines) == 1 else []
    if len(fields) < 2 or not all(field.isascii() and field.isdigit() for field in fields):
        raise LiveproError(
            f"{path} is no file of MICA's instruction types: it is not one line of numbers.",
            f"MICA calls such files {FULL}.",
        )
    total, *counts = (int(field) for field in fields)
    return total, tuple(counts)


def write_other_categories(out: TextIO, categories: Iterable[str]) -> None:
    """Write the categories that `other` consists of, one in a line."""
    out.writelines(f"{category}\n" for category in categories)
