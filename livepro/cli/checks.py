"""What is checked before the program starts: a long run must not end in an error that
could have been seen at its beginning."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Mapping, Sequence

from livepro.errors import LiveproError


def command(words: Sequence[str]) -> tuple[str, ...]:
    """The command behind an optional ``--``. Raises LiveproError when there is none."""
    words = words[1:] if words[:1] == ["--"] else words
    if not words or not words[0]:
        raise LiveproError(
            "There is no command to run.", "Name one behind the options: `livepro run -- ls -l`."
        )
    return tuple(words)


def tiers(chosen: Sequence[str] | None, known: Collection[str]) -> None:
    """Raise LiveproError for the name of a compilation tier that there is not."""
    for name in chosen or ():
        if name not in known:
            raise LiveproError(
                f"There is no compilation tier '{name}'.", f"The tiers are {', '.join(known)}."
            )


def distinct(outputs: Mapping[str, str]) -> None:
    """Raise LiveproError when two options name the same file (option to file name)."""
    seen: dict[str, str] = {}
    for option, name in outputs.items():
        if name.startswith("/dev/"):  # /dev/stdout, /dev/fd/3: several may share it
            continue
        real = os.path.realpath(name)
        if real in seen:
            raise LiveproError(
                f"{seen[real]} and {option} name the same file, {name}.", "Give each a file of its own."
            )
        seen[real] = option


def process_or_program(args: argparse.Namespace) -> int | None:
    """Check that --pid or a program is given, and not both; divide into two processes for the former. Returns
    the status to end with in the front, else None. Raises LiveproError."""
    if args.pid is None:
        args.command = command(args.command)
        return None
    if args.command:
        raise LiveproError("There is both a process and a program.", "Give --pid or a program.")
    from livepro import front

    return front.divide()


def counts_lines(args: argparse.Namespace) -> bool:
    """Whether something is simulated whose counts by source line go into a file, as Cachegrind's do."""
    return bool(args.cachesim or args.branch_sim or args.hierarchy)
