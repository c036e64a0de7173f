"""What the subcommands share in reading their arguments: errors, numbers, suggestions."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable
from typing import NoReturn

from livepro.errors import LiveproError

SUFFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
NUMBER = re.compile(r"(?P<digits>[0-9][0-9_]*(\.[0-9_]+)?(e\+?[0-9]+)?)(?P<suffix>[KMGT]?)", re.IGNORECASE)

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>ms|s|m|h)?")

PERCENT = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<sign>%)?")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `LiveproError`: cause, remedy, status 2.

    Abbreviated options are refused: argparse would look for them in the
    traced command's arguments too, and call those ambiguous.
    """

    def __init__(self, prog: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown and not unknown[1].startswith("-"):
            raise LiveproError(
                f"There is one argument too many, {unknown[1]}.",
                f"See `{self.prog} --help` for what it takes.",
            )
        if unknown:
            name = unknown[1].partition("=")[0]
            hint = suggest(name, (s for s in self._option_string_actions if s.startswith("--")))
            raise LiveproError(
                f"There is no option {name}.", f"{hint}See `{self.prog} --help` for the options it takes."
            )
        raise LiveproError(f"{message[:1].upper()}{message[1:]}.", f"See `{self.prog} --help`.")


def suggest(name: str, known: Iterable[str]) -> str:
    """``Did you mean X? `` for the known name nearest to `name`, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"Did you mean {near[0]}? " if near else ""


def count(text: str) -> int:
    """A whole positive number as people write it: 100000000, 100_000_000, 1e8, 100M, 1.5G.

    K, M, G and T are powers of 1000. Raises argparse.ArgumentTypeError, which
    the parser turns into a message that names the option.
    """
    from decimal import Decimal, InvalidOperation  # late: few command lines have such a number

    match = NUMBER.fullmatch(text.strip())
    try:
        value = Decimal(match["digits"]) * SUFFIXES[match["suffix"].upper()] if match else None
    except InvalidOperation:
        value = None
    if value is None or value != int(value):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number (write 100000000, 100_000_000, 1e8 or 100M)"
        )
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is too small, the least is 1")
    return int(value)


def duration(text: str) -> float:
    """Seconds, as people write them: 10, 10s, 1.5s, 200ms, 2m, 1h. Raises argparse.ArgumentTypeError."""
    match = DURATION.fullmatch(text.strip())
    seconds = float(match["number"]) * UNITS[match["unit"] or "s"] if match else 0.0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time (write 10s, 200ms, 2m or 1h)")
    return seconds


def part(text: str) -> float:
    """A part as people write it, in percent: 1%, 0.5 %, or 0.01. Raises argparse.ArgumentTypeError."""
    match = PERCENT.fullmatch(text.strip())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a part (write 1% or 0.01)")
    return float(match["number"]) / (100 if match["sign"] else 1)


def names(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list, in order, without repetitions."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
