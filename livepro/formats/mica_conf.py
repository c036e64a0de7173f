"""MICA's configuration file, `mica.conf`: a `key: value` in each line.

MICA's README, "Configuration", has the keys. There are no comments; of a key that is given twice the last
one holds. What MICA lets pass (an interval size left out, sizes that cannot be) is as its README says, or
an error here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from livepro.errors import LiveproError
from livepro.formats.files import open_text

NAME = "mica.conf"
"""What MICA calls the file, in the working directory."""

_LINE = re.compile(r"\s*(?P<key>\w+)\s*:\s*(?P<value>\S(?:.*\S)?)\s*")
_NUMBERS = {
    "interval_size": "a number of instructions, or full",
    "ilp_size": "the instructions in ilp_one's window",
    "block_size": "the binary logarithm of a number of bytes: 6 means 64 bytes",
    "page_size": "the binary logarithm of a number of bytes: 12 means 4,096 bytes",
}


class MicaConf(NamedTuple):
    """What a file says. `interval_size` is 0 for the whole run, `ilp_size` 0 where none is given,
    `itypes_spec_file` "" for MICA's own groups."""

    analyses: tuple[str, ...]
    interval_size: int = 0
    ilp_size: int = 0
    block_size: int = 6
    page_size: int = 12
    itypes_spec_file: str = ""
    append_pid: bool = False


KEYS = ("analysis_type", *_NUMBERS, "itypes_spec_file", "append_pid")


def read(path: str, known: tuple[str, ...]) -> MicaConf:
    """What the file `path` says, where `known` are the analyses there are.

    Raises LiveproError, with the line, for what is no line of such a file, an unknown key or analysis, a
    value that cannot be; for a file without `analysis_type`, and one that cannot be read.
    """
    given: dict[str, tuple[int, str]] = {}
    with open_text(path, "r") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            match = _LINE.fullmatch(line.rstrip("\n"))
            if match is None:
                raise LiveproError(
                    f"{path}:{number}: {line.strip()!r} is not a line of a mica.conf.",
                    "Write KEY: VALUE, as in `analysis_type: all`; there are no comments.",
                )
            if match["key"] not in KEYS:
                raise LiveproError(
                    f"{path}:{number}: there is no key '{match['key']}'.", f"The keys are {', '.join(KEYS)}."
                )
            given[match["key"]] = number, match["value"]
    if "analysis_type" not in given:
        raise LiveproError(
            f"{path} does not say what to analyse.",
            f"Add `analysis_type: all`, or one of {', '.join(known)}.",
        )
    analyses = _analyses(path, *given["analysis_type"], known)
    numbers = {key: _number(path, key, *given[key]) for key in _NUMBERS if key in given}
    if "ilp_one" in analyses and not numbers.get("ilp_size"):
        raise LiveproError(
            f"{path}:{given['analysis_type'][0]}: ilp_one needs a window.",
            "Add `ilp_size: 64`, with the instructions in it.",
        )
    return MicaConf(
        analyses=analyses,
        itypes_spec_file=given.get("itypes_spec_file", (0, ""))[1],
        append_pid=_yes(path, *given["append_pid"]) if "append_pid" in given else False,
        **numbers,
    )


def _analyses(path: str, line: int, value: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(value.replace(",", " ").split())
    for name in names:
        if name not in (*known, "all"):
            raise LiveproError(
                f"{path}:{line}: there is no analysis '{name}'.", f"There are all, {', '.join(known)}."
            )
    return names


def _number(path: str, key: str, line: int, value: str) -> int:
    if key == "interval_size" and value == "full":
        return 0
    number = int(value) if value.isascii() and value.isdigit() else -1
    least = 0 if key in ("block_size", "page_size") else 1
    if number < least:
        raise LiveproError(f"{path}:{line}: {key} cannot be '{value}'.", f"It is {_NUMBERS[key]}.")
    return number


def _yes(path: str, line: int, value: str) -> bool:
    if value not in ("yes", "no"):
        raise LiveproError(f"{path}:{line}: append_pid cannot be '{value}'.", "It is yes or no.")
    return value == "yes"
